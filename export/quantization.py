"""Quantization to int8: dense layers and tables as bytes, read from a file that has them or rounded here.

The scale of activations comes from calibration (`export.calibration`), so nothing is computed across rows, and the
other rows of a batch never change an answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. A scale
computed for each row would be independent too, but costs seven more passes over the numbers, a third of a product's
time. Embeddings become bytes with one scale per token, and the output projection tied to them uses the same bytes.

The chosen scale changes the calibrated activations least: the few largest may be cut off for finer steps of all others
(Choukroun et al. 2019, "Low-bit Quantization of Neural Networks for Efficient Inference"). Where outliers in a few
channels still change the product too much, activations are divided by the factors that the columns of the weight are
multiplied by (Xiao et al. 2023, "SmoothQuant"). Layers that change too much even then stay in floats. Where the model
as a whole is still not near enough to itself in floats, more layers do, those first that change most.
"""

import math
from collections.abc import Mapping
from functools import cache, cached_property

import torch
from torch import Tensor, nn

from export.calibration import Activations, ServedModel
from export.copying import copy_model
from export.dense import POSITIVE, SIGNED, Int8Embedding, Int8Linear, Rounding
from export.graphs import MEMORY_STEP
from export.reading import Reading
from export.rehearsal import rehearse_int8
from model.networks.layers import FeedForward
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.progress import each
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
"""Number of limits, from the largest magnitude to a fifth of it."""
COARSE = 4
"""Distance of the limits that are tried first."""
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
    model: ServedModel, stored: Mapping[str, Tensor], reading: Reading | None = None, least: float = 0.0
) -> ServedModel:
    """Return a copy with int8 tables and dense layers, except narrow ones and those that int8 would change too much.

    Args:
        stored: tensors of an artifact. Its bytes, scales and activation scales are used as they are; if it has
            activation scales, its float layers also stay floats.
        reading: what calibrates all other layers; by default random tokens.
        least: the nearness to the model in floats that is asked for.
    """
    return Quantizer(model, stored, reading or Reading(model)).quantized(least)


def unchanged(hidden: Tensor) -> Tensor:
    """Replace the activation before a `POSITIVE` rounding, which sets negative numbers to zero itself."""
    return hidden


TABLES = ("embedding.tokens", "output")
"""Names of the output projection, which is not smoothed: it may be the table of tokens."""
MEMORY = "decoder.memory"
"""Name for the input of all cross-attention layers, which they multiply in one product."""
MEMORY_LAYERS = ("cross_attention.key", "cross_attention.value")
"""Suffixes of layers that read only the memory."""
FLOAT_SHARES = (0.0, 0.25, 0.5, 1.0)
"""Shares of the layers that stay in floats, tried in turn until the model is near enough."""


class Quantizer:
    """Quantizes the layers of a model."""

    def __init__(self, model: ServedModel, stored: Mapping[str, Tensor], reading: Reading) -> None:
        self.model = model
        self.stored = stored
        self.reading = reading
        self.limits: dict[str, float] = {}
        self.smoothings: dict[str, Tensor] = {}
        self.in_floats: set[str] = set()

    @cached_property
    def activations(self) -> Activations:
        """What each layer reads."""
        return self.reading.activations()

    def quantized(self, least: float) -> ServedModel:
        """Return the quantized copy whose nearness is at least `least`, with as few float layers as were tried."""
        if any(name.endswith(STEP) for name in self.stored):
            self.in_floats = self.stored_float_layers()
            return self.replaced()
        errors = self.errors()
        del self.activations  # all limits are known
        worst_first = sorted(errors, key=lambda name: -errors[name])
        for share in FLOAT_SHARES:
            too_much = {name for name, error in errors.items() if error > MAX_ERROR}
            self.in_floats = self.with_memory({*too_much, *worst_first[: math.ceil(share * len(errors))]})
            served = self.replaced()
            if least <= 0 or self.reading.nearness(rehearse_int8(self.model, served)).value >= least:
                break
        return served

    def replaced(self) -> ServedModel:
        """Return a copy of the model in which all layers but `in_floats` are int8."""
        served = copy_model(self.model)
        for name, module in list(served.named_modules()):
            replaced = self.quantize(name, module)
            if replaced is not None:
                served.set_submodule(name, replaced)
        for feed_forward in (module for module in served.modules() if isinstance(module, FeedForward)):
            if isinstance(feed_forward.output, Int8Linear) and feed_forward.output.rounding is POSITIVE:
                feed_forward.activate = unchanged
        if isinstance(served, Transformer) and MEMORY not in self.in_floats:
            served.decoder.register_buffer(MEMORY_STEP, self.step(MEMORY, SIGNED))
        return served

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
        parent, _, last_part = name.rpartition(".")
        feed_forward = self.model.get_submodule(parent) if last_part == "output" else None
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
        layers = {name.removesuffix(".weight") for name, tensor in self.stored.items() if tensor.is_floating_point()}
        return layers if MEMORY + STEP in self.stored else {*layers, MEMORY}

    def errors(self) -> dict[str, float]:
        """Return how much int8 would change each layer. What smoothing makes smaller is noted in `smoothings`."""
        errors_of_layers: dict[str, float] = {}
        products = self.products()
        for name, weight in each(products, "choosing scales of layer"):
            rounding, x = self.rounding(name), self.activations[name]
            errors_of_layers[name] = output_error(x, weight, rounding, self.limit(name, rounding))
            # After a ReLU a channel can be zero in most texts and large in a few: no calibrated factor fits.
            if errors_of_layers[name] <= MAX_ERROR or rounding is not SIGNED or name in (*TABLES, *self.of_memory()):
                continue
            smoothing = choose_smoothing(x, weight)
            limit = best_limit(x / smoothing, rounding)
            error = output_error(x / smoothing, weight * smoothing, rounding, limit)
            if error <= MAX_ERROR:
                self.smoothings[name], self.limits[name], errors_of_layers[name] = smoothing, limit, error
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Embedding):
                errors_of_layers[name] = max(errors_of_layers.get(name, 0.0), table_error(module.weight.detach()))
        return errors_of_layers

    def products(self) -> list[tuple[str, Tensor]]:
        """Return the name and weight (N, K) of each product that may be int8; those with the memory are one."""
        model, products, weights = self.model, list[tuple[str, Tensor]](), []
        projection = model.projection if isinstance(model, Transformer) else None
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and not self.is_kept(name) and module is not projection:
                weight = module.weight.detach()
                if name in self.of_memory():
                    n_queries = module.in_features if name.endswith(".input") else 0
                    weights.append(weight[n_queries:])
                    weight = weight[:n_queries]
                products += [(name, weight)] * (len(weight) >= MIN_ROWS)
        if isinstance(model, Transformer):
            name = "embedding.tokens" if model.output is None else "output"
            products += [(name, model.projection.weight.detach()), (MEMORY, torch.cat(weights))]
        return products

    def of_memory(self) -> set[str]:
        """Return the layers that read the memory, which they do in one product."""
        suffixes = ("cross_attention.input", *MEMORY_LAYERS)
        return {MEMORY, *(name for name, _ in self.model.named_modules() if name.endswith(suffixes))}

    def with_memory(self, layers: set[str]) -> set[str]:
        """Return layers that stay in floats: if one of them reads the memory, with all that do."""
        of_memory = self.of_memory()
        return layers | of_memory if layers & of_memory else layers


def best_limit(x: Tensor, rounding: Rounding) -> float:
    """Return the limit with which bytes change rows x (N, K) least."""
    first = math.ceil(math.log(max(float(x.abs().max()), MIN_LIMIT), FINENESS))
    norms = row_norms(x)

    @cache
    def error(i: int) -> float:
        step = FINENESS ** (first - i) / rounding.limit
        rounded = (x / step).round_().clamp_(-rounding.zero_point, 255 - rounding.zero_point).mul_(step).sub_(x)
        return float((rounded.norm(dim=-1) / norms).square().mean())

    # The error falls and then rises, but for ripples: look at every fourth limit, then around the best of these.
    coarse = min(range(0, N_LIMITS, COARSE), key=error)
    fine = range(max(0, coarse - COARSE + 1), min(N_LIMITS, coarse + COARSE))
    return FINENESS ** (first - min(fine, key=error))


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


def table_error(table: Tensor) -> float:
    """Return how much bytes change the rows of a table (V, K)."""
    rows = table[:: 1 + len(table) // ROWS_TRIED]
    numbers, scales = quantize_rows(rows)
    return relative_error(numbers * scales, rows)


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Return |actual - expected| / |expected|, a root mean square over rows (N, K).

    Rows smaller than the median count by their absolute error, as they are added to others in the end. The few much
    larger rows that some models have at punctuation (Sun et al. 2024, "Massive Activations") do not hide the others.
    """
    ratios = (actual - expected).norm(dim=-1) / row_norms(expected)
    return float(ratios.square().mean().sqrt())


def row_norms(x: Tensor) -> Tensor:
    """Return the norms (N) of rows x (N, K), and the median for smaller ones."""
    norms: Tensor = x.norm(dim=-1)
    return norms.clamp(min=max(float(norms.median()), MIN_LIMIT))


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight (N, K) as bytes (N, K) times a scale per row (N, 1)."""
    # Of a large table all rows at once would take its memory twice more.
    parts = [_quantize(rows) for rows in torch.split(weight, ROWS_AT_ONCE)]
    numbers, scales = (torch.cat(each) for each in zip(*parts, strict=True))
    return numbers, scales


def _quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    largest = torch.maximum(weight.amax(dim=1, keepdim=True), -weight.amin(dim=1, keepdim=True))
    scales = torch.where(largest > 0, largest, 1.0) / WEIGHT_LIMIT
    return (weight / scales).round_().to(torch.int8), scales
