"""The causal language model: a Transformer of a decoder alone, which continues a text.

Legend: B batch, T tokens, N further tokens, L cache length, H heads, D head_dim, E d_model, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import LanguageModelConfig
from model.networks.layers import EncoderLayer
from model.networks.masks import causal_mask
from model.networks.transformer import Encoder, token_embedding


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
        self.embedding = token_embedding(config)
        self.decoder = Encoder(config.n_decoder_layers, config)

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
        positions = torch.arange(start, start + ids.shape[1], device=ids.device).expand(ids.shape)
        places = torch.arange(caches[0].key.shape[2], device=ids.device)
        mask = places <= positions[0].unsqueeze(1)  # (N, L)
        x = self.embedding(ids, positions)
        for layer, cache in zip(self.decoder.encoder_layers(), caches, strict=True):
            x = _layer_step(layer, x, positions, cache, mask)
        return self.logits(self.decoder.final_norm(x)[:, -1])


def _layer_step(layer: EncoderLayer, x: Tensor, positions: Tensor, cache: SelfCache, mask: Tensor) -> Tensor:
    """x (B, N, E) at positions (B, N) through one layer, which attends to its cache under mask (N, L)."""

    def attend_to_past(y: Tensor) -> Tensor:
        q, k, v = layer.self_attention.project_self(y, positions)
        cache.key[:, :, positions[0]] = k
        cache.value[:, :, positions[0]] = v
        return layer.self_attention.attend(q, cache.key, cache.value, mask)

    x = layer.add_norm_self(x, attend_to_past)
    x = layer.add_norm_feed_forward(x, layer.feed_forward)
    return x
