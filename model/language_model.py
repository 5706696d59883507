"""The causal language model: a Transformer of a decoder alone, which continues a text.

Legend: B batch, T tokens, N further tokens, L cache length, H heads, D head_dim, E d_model, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import LanguageModelConfig
from model.layers import EncoderLayer, TokenEmbedding
from model.transformer import Encoder, causal_mask


@dataclass
class SelfCache:
    """Keys and values of what a layer has read."""

    key: Tensor  # (B, H, L, D)
    value: Tensor


class LanguageModel(nn.Module):
    """Self-attention that sees no future, and no source (lecture, "masked self-attention"; Radford et al. 2018).

    Without cross-attention a decoder layer is an encoder layer under a causal mask. One matrix serves as embedding and
    output projection.
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        layer = (config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm)
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, config.max_positions, config.dropout)
        self.decoder = Encoder(config.n_decoder_layers, *layer)

    def forward(self, ids: Tensor) -> Tensor:
        """Hidden states (B, T, E) of ids (B, T), each of which predicts the next token."""
        hidden: Tensor = self.decoder(self.embedding(ids), causal_mask(ids.shape[1], ids.device))
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., E) to vocabulary logits (..., V)."""
        return F.linear(hidden, self.embedding.tokens.weight)

    def init_caches(self, n_rows: int, cache_length: int) -> list[SelfCache]:
        """Empty caches of B = n_rows and L = cache_length."""
        caches = []
        for layer in self.decoder.encoder_layers():
            attention = layer.self_attention
            key = self.embedding.tokens.weight.new_zeros(n_rows, attention.n_heads, cache_length, attention.head_dim)
            caches.append(SelfCache(key, key.clone()))
        return caches

    def step(self, ids: Tensor, start: int, caches: list[SelfCache]) -> Tensor:
        """Logits (B, V) after N more tokens, ids (B, N) from position `start` on. Caches are written in place."""
        stop = start + ids.shape[1]
        positions = torch.arange(start, stop, device=ids.device).expand(ids.shape)
        mask = causal_mask(stop, ids.device)[start:]  # (N, stop)
        x = self.embedding(ids, positions)
        for layer, cache in zip(self.decoder.encoder_layers(), caches, strict=True):
            x = _layer_step(layer, x, start, cache, mask)
        return self.logits(self.decoder.final_norm(x)[:, -1])


def _layer_step(layer: EncoderLayer, x: Tensor, start: int, cache: SelfCache, mask: Tensor) -> Tensor:
    """x (B, N, E) through one layer, attending to what is in the cache and to itself."""
    stop = start + x.shape[1]

    def attend_to_past(y: Tensor) -> Tensor:
        q, k, v = layer.self_attention.project_self(y)
        cache.key[:, :, start:stop] = k
        cache.value[:, :, start:stop] = v
        return layer.self_attention.attend(q, cache.key[:, :, :stop], cache.value[:, :, :stop], mask)

    x = layer.add_norm_self(x, attend_to_past)
    x = layer.add_norm_feed_forward(x, layer.feed_forward)
    return x
