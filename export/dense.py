"""Dense layers and tables as a graph computes them: in floats, or in bytes.

Every product of activations x (..., K) with a weight (N, K) of bytes, and its bias, is

    q = QuantizeLinear(x / s)                            unsigned bytes around a zero point, on a constant scale
    y = MatMulIntegerToFloat(q, w, ..., bias)            with the weight's bytes w, and one scale for each of its rows

or, for the last product of a decoder step, MatMulInteger(q, w) and its scales and bias afterwards.

A layer has a smoothing s (K) only where some channels of x are much larger than others. The columns of its weight were
multiplied by s before they became bytes.

A graph changes weights (chooses, joins, transposes or scales rows) in nodes that ONNX Runtime computes once, at load.
So the stored tensors are always those of the model itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from export.onnx_attention import OPSET, look_up
from model.networks.attention import MultiHeadAttention, inverse_temperature
from model.networks.layers import DecoderLayer


@dataclass(frozen=True)
class Rounding:
    """How activations become bytes: 0 becomes `zero_point`, and the largest calibrated number lies `limit` above it."""

    zero_point: int
    limit: int

    def __call__(self, x: Tensor, step: Tensor | float) -> Tensor:
        """Round activations x to bytes on a scale `step` and back to floats, as a graph computes it."""
        return (x / step).round().clamp(-self.zero_point, 255 - self.zero_point) * step


SIGNED = Rounding(zero_point=91, limit=91)
POSITIVE = Rounding(zero_point=0, limit=182)
"""After a ReLU no byte is needed for signs; this rounding sets negative numbers to zero, so the ReLU is left out."""


@dataclass(frozen=True)
class Dense:
    """A weight (N, K) and its bias (N). A weight of bytes has scales (N, 1), and the scale, rounding and perhaps
    smoothing (K) of its activations."""

    weight: Tensor
    bias: Tensor | None
    scales: Tensor | None = None
    step: Tensor | None = None
    smoothing: Tensor | None = None
    rounding: Rounding = SIGNED

    def rows(self, rows: slice) -> "Dense":
        """Return the product with a slice of the rows."""
        bias, scales = (None if x is None else x[rows] for x in (self.bias, self.scales))
        return replace(self, weight=self.weight[rows], bias=bias, scales=scales)

    def chosen(self, rows: Tensor) -> "Dense":
        """Return the product with the rows at these indices; the weight must have no bias."""
        scales = None if self.scales is None else look_up(self.scales, rows)
        return replace(self, weight=look_up(self.weight, rows), scales=scales)

    def biased(self, bias: Tensor) -> "Dense":
        """Return the product with a bias (N)."""
        return replace(self, bias=bias)

    def times(self, factor: float) -> "Dense":
        """Return the product multiplied by a factor."""

        # In float32, because ONNX Runtime folds no multiplications of float16 constants at load.
        def scaled(x: Tensor) -> Tensor:
            return (x.float() * factor).to(x.dtype)

        bias = None if self.bias is None else scaled(self.bias)
        if self.scales is not None:
            return replace(self, bias=bias, scales=scaled(self.scales))
        return replace(self, bias=bias, weight=scaled(self.weight))

    def __call__(self, x: Tensor) -> Tensor:
        """Compute x (..., K) to (..., N)."""
        if self.scales is None or self.step is None:
            return F.linear(x, self.weight, self.bias)
        rows, zero_point = self._bytes(x)
        return torch.onnx.ops.symbolic(
            "com.microsoft::MatMulIntegerToFloat",
            (rows, self.weight.t(), self.step, self.scales.flatten(), zero_point, None, self.bias),
            dtype=torch.float32,
            shape=(*x.shape[:-1], self.weight.shape[0]),
            version=1,
        )

    def scaled_afterwards(self, x: Tensor) -> Tensor:
        """Compute the same, with scales and bias in nodes of their own: where N is thousands, that takes ONNX Runtime
        much less time for one row of x, and no more for many."""
        if self.scales is None or self.step is None:
            return self(x)
        rows, zero_point = self._bytes(x)
        sums = torch.onnx.ops.symbolic(
            "MatMulInteger",
            (rows, self.weight.t(), zero_point),
            dtype=torch.int32,
            shape=(*x.shape[:-1], self.weight.shape[0]),
            version=OPSET,
        )
        y = sums.float() * (self.scales.flatten() * self.step)
        return y if self.bias is None else y + self.bias

    def _bytes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.step is not None
        if self.smoothing is not None:
            x = x / self.smoothing
        zero_point = torch.tensor(self.rounding.zero_point, dtype=torch.uint8)
        rows = torch.onnx.ops.symbolic(
            "QuantizeLinear", (x, self.step, zero_point), dtype=torch.uint8, shape=x.shape, version=OPSET
        )
        return rows, zero_point


def concatenate(parts: Sequence[Dense]) -> Dense:
    """Return several products of one input as one product."""
    weight = torch.cat([part.weight for part in parts])
    bias, scales = (
        torch.cat([x for x in xs if x is not None]) if xs[0] is not None else None
        for xs in ([part.bias for part in parts], [part.scales for part in parts])
    )
    return replace(parts[0], weight=weight, bias=bias, scales=scales)


class Int8Linear(nn.Module):
    """A dense layer with an int8 weight.

    Args:
        weight, scales, bias: tensors (N, K), (N, 1) and (N).
        step: the scale of activations; None if another layer quantizes them.
        smoothing: (K), the divisors of activations; None for none.
    """

    weight: Tensor
    weight_scales: Tensor
    step: Tensor | None
    smoothing: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        scales: Tensor,
        bias: Tensor | None,
        step: Tensor | None,
        rounding: Rounding = SIGNED,
        smoothing: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.rounding = rounding
        self.bias = bias
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scales", scales)
        self.register_buffer("step", step)
        self.register_buffer("smoothing", smoothing)

    def forward(self, x: Tensor) -> Tensor:
        """Compute x (..., K) to (..., N)."""
        return dense(self)(x)


class Int8Embedding(nn.Module):
    """An int8 table (V, K) with scales (V, 1).

    Args:
        step: the scale of activations where the table is also the output projection.
    """

    weight: Tensor
    weight_scales: Tensor
    step: Tensor | None

    def __init__(self, weight: Tensor, scales: Tensor, step: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scales", scales)
        self.register_buffer("step", step)

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids (B, S): vectors (B, S, K) in float32."""
        scales = look_up(self.weight_scales, ids).float()
        return look_up(self.weight, ids).float() * scales


def dense(layer: nn.Module) -> Dense:
    """Return the product of a dense layer, or of a table that is used as a projection."""
    match layer:
        case Int8Linear():
            return Dense(layer.weight, layer.bias, layer.weight_scales, layer.step, layer.smoothing, layer.rounding)
        case Int8Embedding():
            return Dense(layer.weight, None, layer.weight_scales, layer.step)
        case nn.Linear():
            return Dense(layer.weight, layer.bias)
        case nn.Embedding():
            return Dense(layer.weight, None)
    raise TypeError(f"{type(layer).__name__} is neither a dense layer nor a table")


def scaled_input(attention: MultiHeadAttention) -> Dense:
    """Return the stacked projection of self-attention, its queries scaled so that scores need no factor.

    The weights are scaled because ONNX Runtime's products of one row are fast only without a factor.
    """
    whole, d = dense(attention.input), attention.width
    return concatenate([scaled(attention, whole.rows(slice(0, d))), whole.rows(slice(d, 3 * d))])


def scaled_query(attention: MultiHeadAttention) -> Dense:
    """Return the query projection of cross-attention, scaled in the same way."""
    if attention.stacked:
        return scaled(attention, dense(attention.input).rows(slice(0, attention.width)))
    return scaled(attention, dense(attention.query))


def scaled(attention: MultiHeadAttention, query: Dense) -> Dense:
    """Scale a query projection by the factor of its scores; hard attention, which takes the highest, needs none."""
    return query if attention.hard else query.times(inverse_temperature(attention.beta, attention.head_dim))


def memory_projection(layers: Sequence[DecoderLayer], step: Tensor | None) -> Dense:
    """Return the key and value projections of all layers in turn as one product, as they all read the same memory."""
    parts = []
    for attention in (layer.cross_attention for layer in layers):
        d = attention.width
        if attention.stacked:
            parts.append(dense(attention.input).rows(slice(d, 3 * d)))
        else:
            parts += [dense(attention.key), dense(attention.value)]
    return replace(concatenate(parts), step=step)
