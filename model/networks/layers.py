"""Sublayers around attention, and the encoder and decoder layers made of them.

Legend: B batch, S source, T target, D head_dim, E d_model.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Activation, LayerConfig, Positions, TransformerConfig
from model.networks.attention import Attend, MultiHeadAttention
from model.networks.positions import Rotation, rows_of, sinusoidal_encoding
from model.networks.ssru import SSRU


class SequenceDropout(nn.Module):
    """Dropout of whole channels of a sequence: one mask (B, 1, E) shared over positions (Gal and Ghahramani 2016).

    It regularizes like independent masks and draws T times fewer random numbers, which on a CPU cost more than layer
    normalization.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Drop channels of x (B, T, E) in training; return it unchanged otherwise."""
        if not self.training or self.probability == 0:
            return x
        return x * F.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.probability)


class AddNorm(nn.Module):
    """Residual connection and layer normalization around a sublayer (lecture, "Add, Norm").

    `post` is the lecture's and Vaswani's order, norm(x + f(x)); `pre` is x + f(norm(x)), which trains deep encoders
    without a long warm-up (Xiong et al. 2020).
    """

    def __init__(self, layer: LayerConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(layer.d_model, layer.norm_eps)
        self.dropout = SequenceDropout(layer.dropout)
        self.pre = layer.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run x (B, T, E) through the sublayer, which keeps the shape."""
        if self.pre:
            added: Tensor = x + self.dropout(sublayer(self.norm(x)))
            return added
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed


def swiglu(hidden: Tensor) -> Tensor:
    """Gate hidden (B, T, 2 * d_ff), gate and value side by side: (B, T, d_ff)."""
    gate, value = hidden.chunk(2, dim=-1)
    return F.silu(gate) * value


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "swiglu": swiglu,
}


class FeedForward(nn.Module):
    """Position-wise feed-forward network, the lecture's "1D-convolution" of width one: two dense layers.

    The activation between them is a ReLU, as in the lecture, a GELU or SiLU (Hendrycks and Gimpel 2016), or SwiGLU:
    silu(W x) * (V x), where W and V, each of d_ff rows, are stacked in one product (Shazeer 2020).
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.activate = ACTIVATIONS[activation]
        self.hidden = nn.Linear(d_model, 2 * d_ff if activation == "swiglu" else d_ff)
        self.output = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Transform x (B, T, E) position by position: (B, T, E)."""
        output: Tensor = self.output(self.activate(self.hidden(x)))
        return output


class TokenEmbedding(nn.Module):
    """Token embeddings times a factor, plus an encoding of each token's position.

    Args:
        positions: `sinusoidal` adds a fixed table, `learned` a trained one; `none` adds nothing, nor does `rotary`,
            which acts inside attention.
        scale: the factor; None is sqrt(d_model).
        norm_eps: epsilon of a layer normalization of the sum; None for no normalization.
    """

    encoding: Tensor | None

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_positions: int,
        dropout: float,
        positions: Positions = "sinusoidal",
        scale: float | None = None,
        norm_eps: float | None = None,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.max_positions = max_positions
        if positions == "learned":
            self.encoding = nn.Parameter(torch.randn(max_positions, d_model))  # as large as a scaled token
        else:
            table = sinusoidal_encoding(max_positions, d_model) if positions == "sinusoidal" else None
            # Derived from the shape alone, so it is kept out of checkpoints.
            self.register_buffer("encoding", table, persistent=False)
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.norm = nn.Identity() if norm_eps is None else nn.LayerNorm(d_model, norm_eps)
        self.dropout = SequenceDropout(dropout)

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embed ids (B, T) at positions (B, T), by default 0 .. T-1: (B, T, E).

        Raises:
            ValueError: there are more tokens than positions.
        """
        T = ids.shape[1]
        if positions is None and self.max_positions < T:
            raise ValueError(f"sequence has {T} tokens; the limit is {self.max_positions}")
        encoding = None if self.encoding is None else rows_of(self.encoding, T, positions)
        tokens = self.tokens(ids) * self.scale if self.scale != 1 else self.tokens(ids)
        embedded: Tensor = self.dropout(self.norm(tokens if encoding is None else tokens + encoding))
        return embedded


def token_embedding(layer: LayerConfig) -> TokenEmbedding:
    """Build the embedding of tokens and positions of a configuration."""
    return TokenEmbedding(
        layer.vocab_size,
        layer.d_model,
        layer.max_positions,
        layer.dropout,
        layer.positions,
        layer.embedding_scale,
        layer.norm_eps if layer.embedding_norm else None,
    )


def self_attention(layer: LayerConfig) -> MultiHeadAttention:
    """Build the self-attention of a configuration."""
    rotation = Rotation(layer.max_positions, layer.d_model // layer.n_heads) if layer.positions == "rotary" else None
    return MultiHeadAttention(
        layer.d_model, layer.n_heads, beta=layer.beta, hard=layer.attention == "hard", rotation=rotation
    )


def cross_attention(layer: LayerConfig, d_memory: int) -> MultiHeadAttention:
    """Build the cross-attention of a layer to a memory of width d_memory."""
    d_input = (layer.d_model, d_memory, d_memory)
    return MultiHeadAttention(layer.d_model, layer.n_heads, d_input, layer.beta, layer.attention == "hard")


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each inside Add & Norm (lecture, "Encoder Module").

    Under a causal mask it is a decoder layer without cross-attention.
    """

    def __init__(self, layer: LayerConfig) -> None:
        super().__init__()
        self.self_attention = self_attention(layer)
        self.feed_forward = FeedForward(layer.d_model, layer.d_ff, layer.activation)
        self.add_norm_self = AddNorm(layer)
        self.add_norm_feed_forward = AddNorm(layer)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Attend from x (B, S, E) to itself: (B, S, E)."""
        x = self.add_norm_self(x, lambda y: attend(self.self_attention, y))
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x


ToTarget = Callable[[MultiHeadAttention | SSRU, Tensor], Tensor]
"""Function with which the first sublayer of a decoder layer reads the target: from its input (B, T, E) to (B, T, E)."""


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and feed-forward, each inside Add & Norm (lecture, "Decoder Module").

    Attributes:
        self_attention: an SSRU in models that have one in place of self-attention.
    """

    def __init__(self, layer: TransformerConfig, d_memory: int) -> None:
        super().__init__()
        is_recurrent = layer.decoder_self == "ssru"
        self.self_attention = SSRU(layer.d_model) if is_recurrent else self_attention(layer)
        self.cross_attention = cross_attention(layer, d_memory)
        self.feed_forward = FeedForward(layer.d_model, layer.d_ff, layer.activation)
        self.add_norm_self = AddNorm(layer)
        self.add_norm_cross = AddNorm(layer)
        self.add_norm_feed_forward = AddNorm(layer)

    def forward(self, x: Tensor, to_target: ToTarget, to_source: Attend) -> Tensor:
        """Attend from x (B, T, E) to itself and then to the source: (B, T, E)."""
        x = self.add_norm_self(x, lambda y: to_target(self.self_attention, y))
        x = self.add_norm_cross(x, lambda y: to_source(self.cross_attention, y))
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x
