"""The sublayers around attention, and the encoder and decoder layers made of them.

Legend: B batch, S source, T target, L cache length, H heads, D head_dim, E d_model. Masks: True = may be attended.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.attention import MultiHeadAttention

Norm = Literal["post", "pre"]


class SequenceDropout(nn.Module):
    """Dropout of whole channels of a sequence: one mask (B, 1, E) shared over positions (Gal and Ghahramani 2016).

    It regularizes like independent masks and draws T times fewer random numbers, which on a CPU cost more than
    layer normalization.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, E), unchanged outside training."""
        if not self.training or self.probability == 0:
            return x
        return x * F.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.probability)


class AddNorm(nn.Module):
    """Residual connection and layer normalization around a sublayer (lecture, "Add, Norm").

    `post` is the lecture's and Vaswani's order, norm(x + f(x)); `pre` is x + f(norm(x)), which trains deep encoders
    without a long warm-up (Xiong et al. 2020).
    """

    def __init__(self, d_model: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = SequenceDropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x (B, T, E) through the sublayer, which keeps the shape."""
        if self.pre:
            added: Tensor = x + self.dropout(sublayer(self.norm(x)))
            return added
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed


class FeedForward(nn.Module):
    """Position-wise feed-forward network, the lecture's "1D-convolution" of width one: two dense layers and a ReLU."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.output(torch.relu(self.hidden(x)))
        return output


def sinusoidal_encoding(n_positions: int, d_model: int) -> Tensor:
    """(n_positions, d_model) table: sines in even columns, cosines in odd ones (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(n_positions, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency[: d_model // 2])
    return table.float()


class TokenEmbedding(nn.Module):
    """Token embeddings scaled by sqrt(d_model), plus the sinusoidal encoding of each token's position."""

    encoding: Tensor

    def __init__(self, vocab_size: int, d_model: int, max_positions: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        # Derived from the shape alone, so it is kept out of checkpoints.
        self.register_buffer("encoding", sinusoidal_encoding(max_positions, d_model), persistent=False)
        self.scale = math.sqrt(d_model)
        self.dropout = SequenceDropout(dropout)

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """ids (B, T) at positions (B, T), by default 0 .. T-1: (B, T, E).

        Raises:
            ValueError: there are more tokens than encoded positions.
        """
        T, limit = ids.shape[1], self.encoding.shape[0]
        if positions is None and limit < T:
            raise ValueError(f"sequence is {T} tokens, the limit is {limit}")
        encoding = self.encoding[:T] if positions is None else F.embedding(positions, self.encoding)
        embedded: Tensor = self.dropout(self.tokens(ids) * self.scale + encoding)
        return embedded


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each inside Add & Norm (lecture, "Encoder Module")."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.add_norm_self = AddNorm(d_model, dropout, norm)
        self.add_norm_feed_forward = AddNorm(d_model, dropout, norm)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, S, E) attending to itself under mask (B, 1, 1, S): (B, S, E)."""
        x = self.add_norm_self(x, lambda y: self.self_attention(y, y, y, mask))
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x


@dataclass
class LayerCache:
    """What one decoder layer remembers between steps."""

    key: Tensor  # (B, H, L, D) self-attention
    value: Tensor
    memory_key: Tensor  # (B, H, S, D) cross-attention
    memory_value: Tensor


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and feed-forward, each inside Add & Norm (lecture, "Decoder Module")."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.add_norm_self = AddNorm(d_model, dropout, norm)
        self.add_norm_cross = AddNorm(d_model, dropout, norm)
        self.add_norm_feed_forward = AddNorm(d_model, dropout, norm)

    def forward(self, x: Tensor, memory: Tensor, target_mask: Tensor, source_mask: Tensor | None) -> Tensor:
        """x (B, T, E) over memory (B, S, E), with target_mask (T, T) and source_mask (B, 1, 1, S): (B, T, E)."""
        x = self.add_norm_self(x, lambda y: self.self_attention(y, y, y, target_mask))
        x = self.add_norm_cross(x, lambda y: self.cross_attention(y, memory, memory, source_mask))
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x

    def step(self, x: Tensor, positions: Tensor, cache: LayerCache, source_mask: Tensor | None) -> Tensor:
        """One token per row, x (B, 1, E), each row at its own position (B): (B, 1, E). Writes the cache in place."""
        L = cache.key.shape[2]
        rows = torch.arange(x.shape[0], device=x.device)
        written = (torch.arange(L, device=x.device) <= positions.unsqueeze(1))[:, None, None, :]  # (B, 1, 1, L)

        def attend_to_past(y: Tensor) -> Tensor:
            q, k, v = self.self_attention.project_self(y)
            cache.key[rows, :, positions] = k[:, :, 0]
            cache.value[rows, :, positions] = v[:, :, 0]
            return self.self_attention.attend(q, cache.key, cache.value, written)

        def attend_to_source(y: Tensor) -> Tensor:
            q = self.cross_attention.project_query(y)
            return self.cross_attention.attend(q, cache.memory_key, cache.memory_value, source_mask)

        x = self.add_norm_self(x, attend_to_past)
        x = self.add_norm_cross(x, attend_to_source)
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x
