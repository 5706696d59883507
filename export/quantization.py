"""int8: a model's dense layers and tables as bytes, taken from a file that has them, or rounded here.

The scale of activations comes from calibration (`export.calibration`), so nothing is computed across rows: what shares
a batch with a row never changes its answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. A scale
computed for each row keeps that promise too, but costs seven more passes over the numbers, a third of a product's time.
Embeddings become bytes with one scale per token, and the output projection tied to them uses the same bytes.
"""

import copy
from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor, nn

from export.calibration import activation_limits
from export.dense import POSITIVE, SIGNED, Int8Embedding, Int8Linear, Rounding
from export.graphs import MEMORY_STEP
from model.networks.layers import FeedForward
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.weights import SCALES, STEP

WEIGHT_LIMIT = 90
"""Largest magnitude of a weight's byte. With activation bytes up to 182, so that every CPU computes the same numbers.

x86 CPUs without VNNI add two products of bytes in 16 bits and saturate. 2 * 182 * 90 = 32760 fits; 2 * 255 * 127, the
whole of both bytes, does not: on a Haswell (emulated) 157 of 160 sums of large products came out wrong, and none with
weights up to 64. The limits here were not run there: that they fit is arithmetic, which a test asserts.
ONNX Runtime's own remedy, `session.x64quantprecision`, makes CPUs with VNNI a half slower too.

An activation beyond its calibrated limit is cut off below, and above only at the end of the byte, at 1.4 to 1.8 times
the limit: there alone such a CPU may differ.

What it costs: nothing that BLEU shows. On 1,000 sentences each of Tatoeba and Multi30k an early English-French model
had 27.3 and 37.8 in float32, 27.5 and 38.0 so, 27.3 and 37.6 with whole bytes.
"""

MIN_ROWS = 16
"""Narrower weights stay in float: a classifier's last layer and tables cost nothing, and its answer hangs on them."""

AS_THEY_ARE = "regions."
"""Parts whose numbers are not rounded: of two regions that a detector sees nearly alike, bytes may call the other the
strongest, whose token then gets what the detector says."""

HEADS = ("output", "pooler")
"""What makes logits of a classifier's one token. It costs next to nothing, and the answer hangs on it; the same is true
of the dense layers of an embedding."""


def in_int8(
    model: Transformer | TransformerClassifier | TransformerEncoder, stored: Mapping[str, Tensor]
) -> Transformer | TransformerClassifier | TransformerEncoder:
    """A copy whose dense layers and tables are bytes, if they are not narrow.

    Args:
        stored: what is there of it already. Bytes, their scales and those of activations are taken as they are.
    """
    served, quantizer = copy.deepcopy(model), Quantizer(model, stored)
    for name, module in list(served.named_modules()):
        replaced = quantizer.replaced(name, module)
        if replaced is not None:
            served.set_submodule(name, replaced)
    for feed_forward in (module for module in served.modules() if isinstance(module, FeedForward)):
        if isinstance(feed_forward.output, Int8Linear) and feed_forward.output.rounding is POSITIVE:
            feed_forward.activate = unchanged
    if isinstance(served, Transformer):
        served.decoder.register_buffer(MEMORY_STEP, quantizer.step("decoder.memory", SIGNED))
    return served


def unchanged(hidden: Tensor) -> Tensor:
    """What bytes make of negative numbers, they make without a ReLU."""
    return hidden


class Quantizer:
    """Makes bytes of a model's layers."""

    def __init__(
        self, model: Transformer | TransformerClassifier | TransformerEncoder, stored: Mapping[str, Tensor]
    ) -> None:
        self.model = model
        self.stored = stored

    @cached_property
    def limits(self) -> dict[str, float]:
        """Computed only where a scale of activations is missing."""
        return activation_limits(self.model)

    def replaced(self, name: str, module: nn.Module) -> nn.Module | None:
        """The module of bytes for one of floats, if there is one."""
        match module:
            case nn.Embedding() if name.startswith(AS_THEY_ARE):
                numbers, scales = (self.stored.get(f"{name}.weight{end}") for end in ("", SCALES))
                return module.half() if numbers is None or scales is None else Int8Embedding(numbers, scales)
            case nn.Embedding() if module.weight.shape[1] >= MIN_ROWS:
                is_tied = (
                    isinstance(self.model, Transformer) and self.model.output is None and name == "embedding.tokens"
                )
                step = self.step(name, SIGNED) if is_tied else None
                return Int8Embedding(*self.rows(f"{name}.weight", module.weight), step)
            case nn.Linear() if module.weight.shape[0] >= MIN_ROWS and not self.stays(name):
                kind = POSITIVE if self.follows_relu(name) else SIGNED
                step = None if name.endswith(("_attention.key", "_attention.value")) else self.step(name, kind)
                return Int8Linear(*self.rows(f"{name}.weight", module.weight), module.bias, step, kind)
        return None

    def stays(self, name: str) -> bool:
        """Whether a dense layer stays as it is, however wide."""
        is_head = isinstance(self.model, TransformerClassifier) and name in HEADS
        is_dense = isinstance(self.model, TransformerEncoder) and name.startswith("dense.")
        return is_head or is_dense or name.startswith(AS_THEY_ARE)

    def follows_relu(self, name: str) -> bool:
        """Whether a dense layer is the second of a feed-forward network with a ReLU."""
        parent, _, own = name.rpartition(".")
        feed_forward = self.model.get_submodule(parent)
        return isinstance(feed_forward, FeedForward) and own == "output" and feed_forward.activate is torch.relu

    def rows(self, name: str, weight: Tensor) -> tuple[Tensor, Tensor]:
        """A weight (N, K) as bytes (N, K) and scales (N, 1)."""
        numbers, scales = self.stored.get(name), self.stored.get(name + SCALES)
        if numbers is not None and scales is not None and scales.dtype == torch.float32:
            return numbers, scales
        return quantize_rows(weight.detach())

    def step(self, name: str, kind: Rounding) -> Tensor:
        """The scale of a layer's activations: ()."""
        if (stored := self.stored.get(name + STEP)) is not None:
            return stored
        return torch.tensor(self.limits[name] / kind.limit, dtype=torch.float32)


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight (N, K) as bytes (N, K) times a scale per row (N, 1)."""
    largest = weight.abs().amax(dim=1, keepdim=True)
    scales = torch.where(largest > 0, largest, 1.0) / WEIGHT_LIMIT
    return (weight / scales).round().to(torch.int8), scales
