"""int8: a model's dense layers and tables as bytes, taken from a file that has them, or rounded here.

The scale of activations comes from calibration (`export.calibration`), so nothing is computed across rows: what shares
a batch with a row never changes its answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. A scale
computed for each row keeps that promise too, but costs seven more passes over the numbers, a third of a product's time.
Embeddings become bytes with one scale per token, and the output projection tied to them uses the same bytes.

The scale is the one that changes the calibrated activations least: the few largest may be cut off for finer steps of
all others (Choukroun et al. 2019, "Low-bit Quantization of Neural Networks for Efficient Inference"). Where bytes
change too much for all that, by outliers in a few channels, activations are divided by what the weight's columns are
multiplied by (Xiao et al. 2023, "SmoothQuant"). What they change too much even so stays in floats.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from export.calibration import Activations, Served, Sources, activations
from export.copying import copied
from export.dense import POSITIVE, SIGNED, Int8Embedding, Int8Linear, Rounding
from export.graphs import MEMORY_STEP
from model.networks.layers import FeedForward
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.weights import SCALES, SMOOTHING, STEP

WEIGHT_LIMIT = 90
"""Largest magnitude of a weight's byte. With activation bytes up to 182, so that every CPU computes the same numbers.

x86 CPUs without VNNI add two products of bytes in 16 bits and saturate. 2 * 182 * 90 = 32760 fits; 2 * 255 * 127, the
whole of both bytes, does not: on a Haswell (emulated) 157 of 160 sums of large products came out wrong, and none with
weights up to 64. The limits here were not run there: that they fit is arithmetic, which a test asserts.
ONNX Runtime's own remedy, `session.x64quantprecision`, makes CPUs with VNNI a half slower too.

An activation beyond its limit is cut off below, and above only at the end of the byte, at 1.4 to 1.8 times the limit:
there alone such a CPU may differ.

What it costs: nothing that BLEU shows. On 1,000 sentences each of Tatoeba and Multi30k an early English-French model
had 27.3 and 37.8 in float32, 27.5 and 38.0 so, 27.3 and 37.6 with whole bytes.
"""

MIN_ROWS = 16
"""Narrower layers stay in float: a classifier's last one costs nothing, and its answer hangs on it."""

FINENESS = 1.05
"""Limits of activations are powers of it, so that the last bits of a CPU's sums do not show in the artifact."""
N_LIMITS = 32
"""How many are tried, from the largest magnitude to a fifth of it."""
SMALLEST = FINENESS**-400
"""For what is always zero."""

LARGEST_ERROR = 0.04
"""Of what a layer says of a token in bytes, |bytes - floats| / |floats|, as a root mean square over tokens. Layers of
trained translators have 0.01 to 0.02. They add up: the states of sentiment-imdb, after six layers, were 0.11 off
with 0.05 and are 0.08."""
SHARE = 0.6
"""How much of the difference between channels smoothing moves from activations to the weight. In layers of MiniLM that
read normalized states, 0.4 and 0.5 left larger errors, and 0.75 hardly smaller ones."""
ROWS_TRIED = 200
"""Of the calibrated ones, to find that: a projection to a large vocabulary is slow, and takes much memory."""
OUTPUTS_TRIED = 60_000
"""Of a projection to a larger vocabulary every second token, or every third."""

HEADS = ("output", "pooler")
"""What makes logits of a classifier's one token. It costs next to nothing, and the answer hangs on it; the same is true
of the dense layers of an embedding."""


def in_int8(model: Served, stored: Mapping[str, Tensor], read: Sequence[Sources] = ()) -> Served:
    """A copy whose tables and dense layers are bytes, but for layers that are narrow or that bytes change too much.

    Args:
        stored: what is there of it already. Bytes, their scales and those of activations are taken as they are; beside
            scales of activations, floats too.
        read: to calibrate the others with; by default random tokens.
    """
    served, quantizer = copied(model), Quantizer(model, stored, read)
    for name, module in list(served.named_modules()):
        replaced = quantizer.replaced(name, module)
        if replaced is not None:
            served.set_submodule(name, replaced)
    for feed_forward in (module for module in served.modules() if isinstance(module, FeedForward)):
        if isinstance(feed_forward.output, Int8Linear) and feed_forward.output.rounding is POSITIVE:
            feed_forward.activate = unchanged
    if isinstance(served, Transformer) and MEMORY not in quantizer.in_floats:
        served.decoder.register_buffer(MEMORY_STEP, quantizer.step(MEMORY, SIGNED))
    return served


def unchanged(hidden: Tensor) -> Tensor:
    """What bytes make of negative numbers, they make without a ReLU."""
    return hidden


MEMORY = "decoder.memory"
"""What cross-attention reads of the source: all its layers multiply it in one product."""
OF_MEMORY = ("cross_attention.key", "cross_attention.value")
"""Ends of the names of layers that read nothing else."""


class Quantizer:
    """Makes bytes of a model's layers."""

    def __init__(self, model: Served, stored: Mapping[str, Tensor], read: Sequence[Sources]) -> None:
        self.model = model
        self.stored = stored
        self.read = read
        self.limits: dict[str, float] = {}
        self.smoothings: dict[str, Tensor] = {}
        self.in_floats = self.stored_in_floats() if any(name.endswith(STEP) for name in stored) else self.changed()

    @cached_property
    def activations(self) -> Activations:
        """Computed only where a scale of activations is missing."""
        return activations(self.model, self.read)

    def replaced(self, name: str, module: nn.Module) -> nn.Module | None:
        """The module of bytes for one of floats, if there is one."""
        match module:
            case _ if name in self.in_floats:
                return None
            case nn.Embedding():
                is_tied = (
                    isinstance(self.model, Transformer) and self.model.output is None and name == "embedding.tokens"
                )
                step = self.step(name, SIGNED) if is_tied else None
                return Int8Embedding(*self.rows(f"{name}.weight", module.weight), step)
            case nn.Linear() if module.weight.shape[0] >= MIN_ROWS and not self.stays(name):
                kind = self.kind(name)
                step = None if name.endswith(OF_MEMORY) else self.step(name, kind)
                smoothing, weight = self.smoothing(name), module.weight
                smoothed = weight if smoothing is None else weight * smoothing
                return Int8Linear(*self.rows(f"{name}.weight", smoothed), module.bias, step, kind, smoothing)
        return None

    def stays(self, name: str) -> bool:
        """Whether a dense layer stays as it is, however wide."""
        is_head = isinstance(self.model, TransformerClassifier) and name in HEADS
        is_dense = isinstance(self.model, TransformerEncoder) and name.startswith("dense.")
        return is_head or is_dense

    def kind(self, name: str) -> Rounding:
        """How what a layer reads becomes bytes: the second of a feed-forward network with a ReLU reads no negatives."""
        parent, _, own = name.rpartition(".")
        feed_forward = self.model.get_submodule(parent) if own == "output" else None
        return POSITIVE if isinstance(feed_forward, FeedForward) and feed_forward.activate is torch.relu else SIGNED

    def rows(self, name: str, weight: Tensor) -> tuple[Tensor, Tensor]:
        """A weight (N, K) as bytes (N, K) and scales (N, 1)."""
        numbers, scales = self.stored.get(name), self.stored.get(name + SCALES)
        if numbers is not None and scales is not None:
            return numbers, scales
        return quantize_rows(weight.detach())

    def step(self, name: str, kind: Rounding) -> Tensor:
        """The scale of a layer's activations: ()."""
        if (stored := self.stored.get(name + STEP)) is not None:
            return stored
        return torch.tensor(self.limit(name, kind) / kind.limit, dtype=torch.float32)

    def smoothing(self, name: str) -> Tensor | None:
        """What a layer's activations are divided by: (K)."""
        return self.stored.get(name + SMOOTHING, self.smoothings.get(name))

    def limit(self, name: str, kind: Rounding) -> float:
        """The magnitude of a layer's activations up to which all CPUs compute the same."""
        if name not in self.limits:
            smoothing = self.smoothing(name)
            x = self.activations[name]
            self.limits[name] = best_limit(x if smoothing is None else x / smoothing, kind)
        return self.limits[name]

    def stored_in_floats(self) -> set[str]:
        """The layers that are no bytes in an artifact of bytes."""
        found = {name.removesuffix(".weight") for name, tensor in self.stored.items() if tensor.is_floating_point()}
        return found if MEMORY + STEP in self.stored else {*found, MEMORY}

    def changed(self) -> set[str]:
        """The layers that bytes would change too much. If one reads the encoder's output, all that do.

        Where smoothing makes bytes of another one, that is noted.
        """
        model, found, of_memory, weights = self.model, set[str](), {MEMORY}, []
        projection = model.projection if isinstance(model, Transformer) else None
        products: list[tuple[str, Tensor]] = []
        tables = set[str]()
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and not self.stays(name) and module is not projection:
                weight = module.weight.detach()
                if name.endswith(("cross_attention.input", *OF_MEMORY)):
                    n_queries = module.in_features if name.endswith(".input") else 0
                    of_memory.add(name)
                    weights.append(weight[n_queries:])
                    weight = weight[:n_queries]
                products += [(name, weight)] * (len(weight) >= MIN_ROWS)
        if isinstance(model, Transformer):
            name = "embedding.tokens" if model.output is None else "output"
            products += [(name, model.projection.weight.detach()), (MEMORY, torch.cat(weights))]
            tables = {name}
        for name, weight in products:
            kind, x = self.kind(name), self.activations[name]
            if change(x, weight, kind, self.limit(name, kind)) <= LARGEST_ERROR:
                continue
            if name in of_memory:
                found |= of_memory
                continue
            found.add(name)
            # A ReLU silences channels in a few texts that it lets through in others.
            if kind is SIGNED and name not in tables:
                smoothing = smoothing_of(x, weight)
                limit = best_limit(x / smoothing, kind)
                if change(x / smoothing, weight * smoothing, kind, limit) <= LARGEST_ERROR:
                    self.smoothings[name], self.limits[name] = smoothing, limit
                    found.remove(name)
        return found


def best_limit(x: Tensor, kind: Rounding) -> float:
    """The limit with which bytes change rows x (N, K) least."""
    first = math.ceil(math.log(max(float(x.abs().max()), SMALLEST), FINENESS))
    limits = [FINENESS ** (first - i) for i in range(N_LIMITS)]
    return min(limits, key=lambda limit: relative_error(kind(x, limit / kind.limit), x))


def smoothing_of(x: Tensor, weight: Tensor) -> Tensor:
    """What rows x (N, K) are divided by, and the columns of a weight (M, K) multiplied: (K). Powers, as limits are."""
    largest, of_weight = (each.abs().amax(dim=0) for each in (x, weight))
    # Channels in which nearly nothing was calibrated may have more.
    largest, of_weight = (each.clamp(min=max(float(each.median()) / 10, SMALLEST)) for each in (largest, of_weight))
    smoothing = largest**SHARE / of_weight ** (1 - SHARE)
    exponents = (smoothing.log() / math.log(FINENESS)).round()
    return torch.tensor([FINENESS**exponent for exponent in exponents.tolist()])


def change(x: Tensor, weight: Tensor, kind: Rounding, limit: float) -> float:
    """How much bytes change the products of rows x (N, K) with a weight (M, K)."""
    x, weight = x[:: 1 + len(x) // ROWS_TRIED], weight[:: 1 + len(weight) // OUTPUTS_TRIED]
    numbers, scales = quantize_rows(weight)
    return relative_error(kind(x, limit / kind.limit) @ (numbers * scales).t(), x @ weight.t())


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """|actual - expected| / |expected|, a root mean square over rows (N, K).

    Rows that are smaller than most count by their absolute error: they are added to others in the end. The few that are
    much larger, as some models have them at the marks of a text (Sun et al. 2024, "Massive Activations"), do not hide
    the others.
    """
    norms = expected.norm(dim=-1)
    ratios = (actual - expected).norm(dim=-1) / norms.clamp(min=max(float(norms.median()), SMALLEST))
    return float(ratios.square().mean().sqrt())


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight (N, K) as bytes (N, K) times a scale per row (N, 1)."""
    largest = torch.maximum(weight.amax(dim=1, keepdim=True), -weight.amin(dim=1, keepdim=True))
    scales = torch.where(largest > 0, largest, 1.0) / WEIGHT_LIMIT
    return (weight / scales).round_().to(torch.int8), scales
