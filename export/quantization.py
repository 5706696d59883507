"""Quantization to int8: dense layers and tables as bytes, read from a file that has them or rounded here.

The scale of activations comes from calibration (`export.calibration`), so nothing is computed across rows, and the
other rows of a batch never change an answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. A scale
computed for each row would be independent too, but costs seven more passes over the numbers, a third of a product's
time. Embeddings become bytes with one scale per token, and the output projection tied to them uses the same bytes.

The chosen scale changes the calibrated activations least: the few largest may be cut off for finer steps of all others
(Choukroun et al. 2019, "Low-bit Quantization of Neural Networks for Efficient Inference"). Where outliers in a few
channels still change the product too much, activations are divided by the factors that the columns of the weight are
multiplied by (Xiao et al. 2023, "SmoothQuant"). Layers that change too much even then stay in floats.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from export.calibration import Activations, CalibrationSources, ServedModel, record_activations
from export.copying import copy_model
from export.dense import POSITIVE, SIGNED, Int8Embedding, Int8Linear, Rounding
from export.graphs import MEMORY_STEP
from model.networks.layers import FeedForward
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.weights import SCALES, SMOOTHING, STEP

WEIGHT_LIMIT = 90
"""Largest magnitude of a weight's byte. With activation bytes up to 182, every CPU computes the same numbers.

x86 CPUs without VNNI add two products of bytes in 16 bits and saturate. 2 * 182 * 90 = 32760 fits; 2 * 255 * 127, the
whole of both bytes, does not: on a Haswell (emulated) 157 of 160 sums of large products came out wrong, and none with
weights up to 64. The limits here were not run there: that they fit is arithmetic, which a test asserts.
ONNX Runtime's own remedy, `session.x64quantprecision`, makes CPUs with VNNI a half slower too.

An activation below minus its limit is cut off; above, only at the end of the byte, at 1.4 to 1.8 times the limit. Only
there may a CPU without VNNI differ.

BLEU does not show the cost. On 1,000 sentences each of Tatoeba and Multi30k an early English-French model had 27.3 and
37.8 in float32, 27.5 and 38.0 with these limits, 27.3 and 37.6 with whole bytes.
"""

MIN_ROWS = 16
"""Smallest number of rows of a quantized layer: the last one of a classifier costs nothing, and decides the answer."""

FINENESS = 1.05
"""Activation limits are powers of it, so that rounding differences between CPUs do not reach the artifact."""
N_LIMITS = 32
"""Number of limits that are tried, from the largest magnitude to a fifth of it."""
MIN_LIMIT = FINENESS**-400
"""Smallest magnitude of a limit, for activations that are always zero."""

MAX_ERROR = 0.04
"""Largest error of a layer in bytes, |bytes - floats| / |floats|, as a root mean square over tokens. Layers of trained
translators have 0.01 to 0.02. Errors add up: with 0.05 the states of sentiment-imdb, after six layers, were 0.11 off;
with this they are 0.08 off."""
SMOOTHING_SHARE = 0.6
"""Share of the difference between channels that smoothing moves from activations to the weight. In layers of MiniLM
that read normalized states, 0.4 and 0.5 left larger errors, and 0.75 hardly smaller ones."""
ROWS_TRIED = 200
"""Rows, about, that measure an error: projecting to a large vocabulary is slow, and takes much memory."""
ROWS_AT_ONCE = 1 << 14
"""Rows of a weight that become bytes at once."""
OUTPUTS_TRIED = 60_000
"""Output rows used to measure an error; of a larger vocabulary only every second token, or every third."""

HEAD_LAYERS = ("output", "pooler")
"""Layers of a classifier that compute logits from one state of a text. They cost next to nothing and decide the answer;
the dense layers of an embedding stay in floats for the same reason."""


def quantize_model(
    model: ServedModel, stored: Mapping[str, Tensor], read: Sequence[CalibrationSources] = ()
) -> ServedModel:
    """Return a copy with int8 tables and dense layers, except narrow ones and those that int8 would change too much.

    Args:
        stored: tensors of an artifact. Its bytes, scales and activation scales are used as they are; if it has
            activation scales, its float layers also stay floats.
        read: sources that calibrate all other layers; by default random tokens.
    """
    served, quantizer = copy_model(model), Quantizer(model, stored, read)
    for name, module in list(served.named_modules()):
        replaced = quantizer.quantize(name, module)
        if replaced is not None:
            served.set_submodule(name, replaced)
    for feed_forward in (module for module in served.modules() if isinstance(module, FeedForward)):
        if isinstance(feed_forward.output, Int8Linear) and feed_forward.output.rounding is POSITIVE:
            feed_forward.activate = unchanged
    if isinstance(served, Transformer) and MEMORY not in quantizer.in_floats:
        served.decoder.register_buffer(MEMORY_STEP, quantizer.step(MEMORY, SIGNED))
    return served


def unchanged(hidden: Tensor) -> Tensor:
    """Replace the activation before a `POSITIVE` rounding, which sets negative numbers to zero itself."""
    return hidden


MEMORY = "decoder.memory"
"""Name for the input of all cross-attention layers, which they multiply in one product."""
MEMORY_LAYERS = ("cross_attention.key", "cross_attention.value")
"""Suffixes of layers that read only the memory."""


class Quantizer:
    """Quantizes the layers of a model."""

    def __init__(self, model: ServedModel, stored: Mapping[str, Tensor], read: Sequence[CalibrationSources]) -> None:
        self.model = model
        self.stored = stored
        self.read = read
        self.limits: dict[str, float] = {}
        self.smoothings: dict[str, Tensor] = {}
        self.in_floats = (
            self.stored_float_layers() if any(name.endswith(STEP) for name in stored) else self.inexact_layers()
        )

    @cached_property
    def activations(self) -> Activations:
        """Recorded activations, computed only if a scale is missing."""
        return record_activations(self.model, self.read)

    def quantize(self, name: str, module: nn.Module) -> nn.Module | None:
        """Return the int8 module for a float module, or None if it stays as it is."""
        match module:
            case _ if name in self.in_floats:
                return None
            case nn.Embedding():
                is_tied = (
                    isinstance(self.model, Transformer) and self.model.output is None and name == "embedding.tokens"
                )
                step = self.step(name, SIGNED) if is_tied else None
                return Int8Embedding(*self.rows(f"{name}.weight", module.weight), step)
            case nn.Linear() if module.weight.shape[0] >= MIN_ROWS and not self.is_kept(name):
                rounding = self.rounding(name)
                step = None if name.endswith(MEMORY_LAYERS) else self.step(name, rounding)
                smoothing, weight = self.smoothing(name), module.weight
                smoothed = weight if smoothing is None else weight * smoothing
                return Int8Linear(*self.rows(f"{name}.weight", smoothed), module.bias, step, rounding, smoothing)
        return None

    def is_kept(self, name: str) -> bool:
        """Whether a dense layer always stays in floats, however wide it is."""
        is_head = isinstance(self.model, TransformerClassifier) and name in HEAD_LAYERS
        is_dense = isinstance(self.model, TransformerEncoder) and name.startswith("dense.")
        return is_head or is_dense

    def rounding(self, name: str) -> Rounding:
        """Return how the input of a layer becomes bytes: after a ReLU it has no negative numbers."""
        parent, _, own = name.rpartition(".")
        feed_forward = self.model.get_submodule(parent) if own == "output" else None
        return POSITIVE if isinstance(feed_forward, FeedForward) and feed_forward.activate is torch.relu else SIGNED

    def rows(self, name: str, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return a weight (N, K) as bytes (N, K) and scales (N, 1)."""
        numbers, scales = self.stored.get(name), self.stored.get(name + SCALES)
        if numbers is not None and scales is not None:
            return numbers, scales
        return quantize_rows(weight.detach())

    def step(self, name: str, rounding: Rounding) -> Tensor:
        """Return the scale () of a layer's activations."""
        if (stored := self.stored.get(name + STEP)) is not None:
            return stored
        return torch.tensor(self.limit(name, rounding) / rounding.limit, dtype=torch.float32)

    def smoothing(self, name: str) -> Tensor | None:
        """Return the divisors (K) of a layer's activations, if it is smoothed."""
        return self.stored.get(name + SMOOTHING, self.smoothings.get(name))

    def limit(self, name: str, rounding: Rounding) -> float:
        """Return the magnitude of a layer's activations up to which all CPUs compute the same."""
        if name not in self.limits:
            smoothing = self.smoothing(name)
            x = self.activations[name]
            self.limits[name] = best_limit(x if smoothing is None else x / smoothing, rounding)
        return self.limits[name]

    def stored_float_layers(self) -> set[str]:
        """Return the layers that an int8 artifact stores as floats."""
        found = {name.removesuffix(".weight") for name, tensor in self.stored.items() if tensor.is_floating_point()}
        return found if MEMORY + STEP in self.stored else {*found, MEMORY}

    def inexact_layers(self) -> set[str]:
        """Return the layers that int8 would change too much. If one of them reads the memory, all that do are included.

        Layers that smoothing makes quantizable are noted in `smoothings` and `limits`.
        """
        model, found, of_memory, weights = self.model, set[str](), {MEMORY}, []
        projection = model.projection if isinstance(model, Transformer) else None
        products: list[tuple[str, Tensor]] = []
        tables = set[str]()
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and not self.is_kept(name) and module is not projection:
                weight = module.weight.detach()
                if name.endswith(("cross_attention.input", *MEMORY_LAYERS)):
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
            rounding, x = self.rounding(name), self.activations[name]
            if output_error(x, weight, rounding, self.limit(name, rounding)) <= MAX_ERROR:
                continue
            if name in of_memory:
                found |= of_memory
                continue
            found.add(name)
            # After a ReLU a channel can be zero in most texts and large in a few: no calibrated factor fits.
            if rounding is SIGNED and name not in tables:
                smoothing = choose_smoothing(x, weight)
                limit = best_limit(x / smoothing, rounding)
                if output_error(x / smoothing, weight * smoothing, rounding, limit) <= MAX_ERROR:
                    self.smoothings[name], self.limits[name] = smoothing, limit
                    found.remove(name)
        return found


def best_limit(x: Tensor, rounding: Rounding) -> float:
    """Return the limit with which bytes change rows x (N, K) least."""
    first = math.ceil(math.log(max(float(x.abs().max()), MIN_LIMIT), FINENESS))
    limits = [FINENESS ** (first - i) for i in range(N_LIMITS)]
    return min(limits, key=lambda limit: relative_error(rounding(x, limit / rounding.limit), x))


def choose_smoothing(x: Tensor, weight: Tensor) -> Tensor:
    """Return the factors (K), powers of FINENESS, that divide rows x (N, K) and multiply columns of a weight (M, K)."""
    largest, of_weight = (each.abs().amax(dim=0) for each in (x, weight))
    # Channels that were nearly silent in calibration may have larger numbers later.
    largest, of_weight = (each.clamp(min=max(float(each.median()) / 10, MIN_LIMIT)) for each in (largest, of_weight))
    smoothing = largest**SMOOTHING_SHARE / of_weight ** (1 - SMOOTHING_SHARE)
    exponents = (smoothing.log() / math.log(FINENESS)).round()
    return torch.tensor([FINENESS**exponent for exponent in exponents.tolist()])


def output_error(x: Tensor, weight: Tensor, rounding: Rounding, limit: float) -> float:
    """Return how much bytes change the products of rows x (N, K) with a weight (M, K)."""
    x, weight = x[:: 1 + len(x) // ROWS_TRIED], weight[:: 1 + len(weight) // OUTPUTS_TRIED]
    numbers, scales = quantize_rows(weight)
    return relative_error(rounding(x, limit / rounding.limit) @ (numbers * scales).t(), x @ weight.t())


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Return |actual - expected| / |expected|, a root mean square over rows (N, K).

    Rows smaller than the median count by their absolute error, as they are added to others in the end. The few much
    larger rows that some models have at punctuation (Sun et al. 2024, "Massive Activations") do not hide the others.
    """
    norms = expected.norm(dim=-1)
    ratios = (actual - expected).norm(dim=-1) / norms.clamp(min=max(float(norms.median()), MIN_LIMIT))
    return float(ratios.square().mean().sqrt())


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight (N, K) as bytes (N, K) times a scale per row (N, 1)."""
    # Of a large table all rows at once would take its memory twice more.
    parts = [_quantize(rows) for rows in weight.split(ROWS_AT_ONCE)]
    numbers, scales = (torch.cat(each) for each in zip(*parts, strict=True))
    return numbers, scales


def _quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    largest = torch.maximum(weight.amax(dim=1, keepdim=True), -weight.amin(dim=1, keepdim=True))
    scales = torch.where(largest > 0, largest, 1.0) / WEIGHT_LIMIT
    return (weight / scales).round_().to(torch.int8), scales
