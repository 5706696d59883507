"""Sublayers around attention, and the encoder and decoder layers made of them.

Legend: B batch, S source, T target, D head_dim, E d_model.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Activation, LayerConfig, Positions, TransformerConfig
from model.networks.attention import Attend, Biases, MultiHeadAttention
from model.networks.distances import DisentangledScores
from model.networks.positions import DistanceBias, Rotation, rows_of, sinusoidal_encoding
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


def normalization(layer: LayerConfig) -> nn.Module:
    """Build a normalization of a configuration."""
    if layer.norm_type == "rms":
        return nn.RMSNorm(layer.d_model, layer.norm_eps)
    return nn.LayerNorm(layer.d_model, layer.norm_eps, bias=layer.bias)


class AddNorm(nn.Module):
    """Residual connection and layer normalization around a sublayer (lecture, "Add, Norm").

    `post` is the lecture's and Vaswani's order, norm(x + f(x)); `pre` is x + f(norm(x)), which trains deep encoders
    without a long warm-up (Xiong et al. 2020).

    Args:
        normalize: whether there is a normalization at all.
    """

    def __init__(self, layer: LayerConfig, normalize: bool = True) -> None:
        super().__init__()
        self.norm = normalization(layer) if normalize else nn.Identity()
        self.dropout = SequenceDropout(layer.dropout)
        self.pre = layer.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run x (B, T, E) through the sublayer, which keeps the shape."""
        if self.pre:
            added: Tensor = x + self.dropout(sublayer(self.norm(x)))
            return added
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed


def gated(activate: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
    """Gate hidden (B, T, 2 * d_ff), gate and value side by side: (B, T, d_ff)."""
    gate, value = hidden.chunk(2, dim=-1)
    return activate(gate) * value


gelu_tanh = partial(F.gelu, approximate="tanh")

GATES: dict[Activation, Callable[[Tensor], Tensor]] = {
    "reglu": torch.relu,
    "geglu": F.gelu,
    "geglu_tanh": gelu_tanh,
    "swiglu": F.silu,
}
"""Functions of the gate (Shazeer 2020, "GLU Variants Improve Transformer")."""
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
    **{name: partial(gated, activate) for name, activate in GATES.items()},
}


class FeedForward(nn.Module):
    """Position-wise feed-forward network, the lecture's "1D-convolution" of width one: two dense layers.

    The activation between them is a ReLU, as in the lecture, a GELU or SiLU (Hendrycks and Gimpel 2016), or one with a
    gate, f(W x) * (V x), where W and V, each of d_ff rows, are stacked in one product (Shazeer 2020).
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu", bias: bool = True) -> None:
        super().__init__()
        self.activate = ACTIVATIONS[activation]
        self.hidden = nn.Linear(d_model, 2 * d_ff if activation in GATES else d_ff, bias)
        self.output = nn.Linear(d_ff, d_model, bias)

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
        norm: normalization of the sum; None for none.
        separator: the token after the first of two texts; a vector is added to all tokens after it. None: no vector.
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
        norm: nn.Module | None = None,
        separator: int | None = None,
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
        self.separator = separator
        self.second = None if separator is None else nn.Parameter(torch.randn(d_model))
        self.norm = nn.Identity() if norm is None else norm
        self.dropout = SequenceDropout(dropout)

    def forward(self, ids: Tensor, positions: Tensor | None = None, side: "SidePositions | None" = None) -> Tensor:
        """Embed ids (B, T) at positions (B, T), by default 0 .. T-1: (B, T, E).

        Args:
            side: positions and normalization of another side that shares the tokens; by default its own.

        Raises:
            ValueError: there are more tokens than positions.
        """
        T = ids.shape[1]
        if positions is None and self.max_positions < T:
            raise ValueError(f"sequence has {T} tokens; the limit is {self.max_positions}")
        layer_side = side or self
        encoding = None if layer_side.encoding is None else rows_of(layer_side.encoding, T, positions)
        tokens = self.tokens(ids) * self.scale if self.scale != 1 else self.tokens(ids)
        summed = tokens if encoding is None else tokens + encoding
        if self.second is not None and self.separator is not None:
            summed = summed + self.second * after_separator(ids, self.separator).to(self.second.dtype)
        embedded: Tensor = self.dropout(layer_side.norm(summed))
        return embedded


class SidePositions(nn.Module):
    """Learned positions, and a normalization, of a side that shares another one's table of tokens."""

    def __init__(self, layer: LayerConfig) -> None:
        super().__init__()
        self.encoding = nn.Parameter(torch.randn(layer.max_positions, layer.d_model))
        self.norm = normalization(layer) if layer.embedding_norm else nn.Identity()


def after_separator(ids: Tensor, separator: int) -> Tensor:
    """Return 1 for each of ids (B, T) that comes after the first separator, and 0 for others: (B, T, 1)."""
    is_separator = torch.eq(ids, separator).to(torch.int64)
    n_before: Tensor = is_separator.cumsum(dim=1) - is_separator
    return (n_before > 0).unsqueeze(-1)


def token_embedding(layer: LayerConfig, separator: int | None = None) -> TokenEmbedding:
    """Build the embedding of tokens and positions of a configuration."""
    return TokenEmbedding(
        layer.vocab_size,
        layer.d_model,
        layer.max_positions,
        layer.dropout,
        layer.positions,
        layer.embedding_scale,
        normalization(layer) if layer.embedding_norm else None,
        separator,
    )


def self_attention(layer: LayerConfig) -> MultiHeadAttention:
    """Build the self-attention of a configuration."""
    rotation = (
        Rotation(layer.max_positions, layer.width_of_head, layer.rotary_base) if layer.positions == "rotary" else None
    )
    disentangled = DisentangledScores(layer) if layer.disentangled else None
    hard = layer.attention == "hard"
    return MultiHeadAttention(
        layer.d_model, layer.n_heads, None, layer.beta, hard, rotation, layer.head_dim, layer.bias, disentangled
    )


def cross_attention(layer: LayerConfig, d_memory: int) -> MultiHeadAttention:
    """Build the cross-attention of a layer to a memory of width d_memory."""
    d_input, hard = (layer.d_model, d_memory, d_memory), layer.attention == "hard"
    return MultiHeadAttention(layer.d_model, layer.n_heads, d_input, layer.beta, hard, None, layer.head_dim, layer.bias)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each inside Add & Norm (lecture, "Encoder Module").

    Under a causal mask it is a decoder layer without cross-attention.
    """

    def __init__(self, layer: LayerConfig) -> None:
        super().__init__()
        self.self_attention = self_attention(layer)
        self.feed_forward = FeedForward(layer.d_model, layer.d_ff, layer.activation, layer.bias)
        self.add_norm_self = AddNorm(layer, normalize=layer.first_norm)
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
        self.feed_forward = FeedForward(layer.d_model, layer.d_ff, layer.activation, layer.bias)
        self.add_norm_self = AddNorm(layer)
        self.add_norm_cross = AddNorm(layer)
        self.add_norm_feed_forward = AddNorm(layer)

    def forward(self, x: Tensor, to_target: ToTarget, to_source: Attend) -> Tensor:
        """Attend from x (B, T, E) to itself and then to the source: (B, T, E)."""
        x = self.add_norm_self(x, lambda y: to_target(self.self_attention, y))
        x = self.add_norm_cross(x, lambda y: to_source(self.cross_attention, y))
        x = self.add_norm_feed_forward(x, self.feed_forward)
        return x


def distance_biases(layer: LayerConfig, n_layers: int, both_ways: bool) -> nn.ModuleList:
    """Build the biases by distance of a stack: none, one for all layers, or one for each."""
    if (relative := layer.relative_positions) is None:
        return nn.ModuleList()
    n = n_layers if relative.per_layer else 1
    return nn.ModuleList(
        DistanceBias(layer.n_heads, relative.buckets, relative.max_distance, both_ways) for _ in range(n)
    )


def biases_of(modules: nn.ModuleList, layers: Iterable[EncoderLayer | DecoderLayer], distances: Tensor) -> Biases:
    """Return the biases (B, H, T, S) of the self-attention of layers, given the modules of `distance_biases`.

    Args:
        distances: (B, T, S), or (T, S) for all rows: the position of each key minus that of each query.
    """
    if not modules:
        return {}
    attentions = [layer.self_attention for layer in layers if isinstance(layer.self_attention, MultiHeadAttention)]
    biases = [module(distances if distances.dim() == 3 else distances.unsqueeze(0)) for module in modules]
    return dict(zip(attentions, biases if len(biases) > 1 else biases * len(attentions), strict=True))
