"""The causal language model: a Transformer with only a decoder, which continues a text.

Legend: B batch, T tokens, N further tokens, L cache length, H heads, D head_dim, E d_model, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import LanguageModelConfig
from model.networks.attention import Cache, Caches, cached_attention, masked_attention
from model.networks.layers import token_embedding
from model.networks.masks import causal_mask
from model.networks.transformer import Encoder


class LanguageModel(nn.Module):
    """Language model of masked self-attention without a source (lecture, "masked self-attention"; Radford et al. 2018).

    Without cross-attention a decoder layer is an encoder layer under a causal mask. One matrix embeds and projects.
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = token_embedding(config)
        self.decoder = Encoder(config.n_decoder_layers, config)

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states (B, T, E) of ids (B, T); each predicts the next token."""
        hidden: Tensor = self.decoder(self.embedding(ids), masked_attention(causal_mask(ids.shape[1], ids.device)))
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden (..., E) to vocabulary logits (..., V)."""
        return F.linear(hidden, self.embedding.tokens.weight)

    def init_caches(self, n_rows: int, cache_length: int) -> Caches:
        """Return empty caches of B = n_rows and L = cache_length."""
        caches: Caches = {}
        for layer in self.decoder.encoder_layers():
            attention = layer.self_attention
            key = self.embedding.tokens.weight.new_zeros(n_rows, attention.n_heads, cache_length, attention.head_dim)
            caches[attention] = Cache(key, key.clone())
        return caches

    def step(self, ids: Tensor, start: int, caches: Caches) -> Tensor:
        """Return logits (B, V) after N more tokens, ids (B, N) from position `start` on, and write caches in place."""
        positions = torch.arange(start, start + ids.shape[1], device=ids.device).expand(ids.shape)
        hidden = self.decoder(self.embedding(ids, positions), cached_attention(caches, positions))
        return self.logits(hidden[:, -1])
