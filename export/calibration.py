"""How large the inputs of each product get, so that they can be quantized with a constant scale.

The traced graphs run on sequences of random tokens, with one more output for each product with a constant weight. That
needs no text in the model's language and finds about what text finds: with an English-French model, limits within a
third of those of news.

Legend: B sequences, S source, T target, H heads, D head_dim.
"""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
from numpy.typing import NDArray

from export.products import products
from export.signatures import LAST_HIDDEN_STATE, cache_names
from model.config import TransformerConfig
from model.networks.transformer import Transformer, TransformerClassifier
from model.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

Array = NDArray[Any]
Limits = dict[str, float]
"""Largest magnitude of a product's input, by the product's name."""

LARGEST = "largest:"
B, S, T = 24, 32, 32
STEP = 1.05
"""Limits are powers of it, so that the last bits of a CPU's sums do not show in the artifact."""


def activation_limits(graphs: dict[str, ir.Model], model: Transformer | TransformerClassifier) -> dict[str, Limits]:
    """Of every float32 graph in an artifact, by file name."""
    watched = {name: watch(graph) for name, graph in graphs.items()}
    random = np.random.default_rng(0)
    n_words = model.config.vocab_size
    first_word = max(PAD_ID, UNK_ID, BOS_ID, EOS_ID) + 1
    size = min(S, model.config.max_positions)
    ids = random.integers(first_word, n_words, (B, size))
    lengths = random.integers(1, size + 1, B)
    found: dict[str, Limits] = {name: defaultdict(float) for name in graphs}
    if isinstance(model, TransformerClassifier):
        for name in watched:
            watched[name](found[name], {"input_ids": ids, "lengths": lengths})
    else:
        ids[np.arange(B), lengths - 1] = EOS_ID
        source = {"input_ids": ids, "source_lengths": lengths}
        memory = watched["encoder.onnx"](found["encoder.onnx"], source)
        del memory[LAST_HIDDEN_STATE]
        targets = random.integers(first_word, n_words, (B, min(T, model.config.max_positions)))
        targets[:, 0] = BOS_ID
        decode(watched["decoder_step.onnx"], found["decoder_step.onnx"], model.config, memory, lengths, targets)
        watched["attention.onnx"](found["attention.onnx"], source | {"target_ids": targets})
    return {
        name: {product: STEP ** math.ceil(math.log(limit, STEP)) for product, limit in limits.items() if limit > 0}
        for name, limits in found.items()
    }


class Watched:
    """A graph that tells the largest magnitudes of its products' inputs beside its own results."""

    def __init__(self, graph: ir.Model) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        serialized = ir.to_proto(graph).SerializeToString()
        self.session = ort.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])

    def __call__(self, found: Limits, feeds: dict[str, Array]) -> dict[str, Array]:
        """The graph's own results by name; `found` is brought up to date."""
        names = [output.name for output in self.session.get_outputs()]
        results = dict(zip(names, self.session.run(names, feeds), strict=True))
        for name in [name for name in names if name.startswith(LARGEST)]:
            product = name.removeprefix(LARGEST)
            found[product] = max(found[product], float(results.pop(name)))
        return results


def watch(graph: ir.Model) -> Watched:
    """A copy of the graph with one more output for each of its products with a constant weight."""
    copy = ir.from_proto(ir.to_proto(graph))
    for node in products(copy.graph):
        magnitude = ir.node("Abs", [node.inputs[0]])
        largest = ir.node("ReduceMax", magnitude.outputs, {"keepdims": 0})
        largest.outputs[0].name = f"{LARGEST}{node.name}"
        copy.graph.extend([magnitude, largest])
        copy.graph.outputs.append(largest.outputs[0])
    return Watched(copy)


def decode(
    step: Watched,
    found: Limits,
    config: TransformerConfig,
    memory: dict[str, Array],
    source_lengths: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> None:
    """Feed targets (B, T) token by token."""
    H, D = config.n_heads, config.d_model // config.n_heads
    rows, length = targets.shape
    feeds = {name.replace("present", "past_key_values"): array for name, array in memory.items()}
    for name in cache_names("past_key_values", "decoder", config.n_decoder_layers):
        feeds[name] = np.zeros((rows, H, length, D), np.float32)
    feeds |= {
        "rows_of_sources": np.arange(rows)[:, None],
        "places_of_rows": np.arange(rows),
        "source_lengths": source_lengths,
        "k": np.array([1]),
    }
    for position in range(length):
        feeds["input_ids"] = targets[:, position : position + 1]
        feeds["positions"] = np.full(rows, position, np.int32)
        feeds["total_length"] = np.array([position + 1], np.int32)
        results = step(found, feeds)
        feeds |= {
            name.replace("present", "past_key_values"): array
            for name, array in results.items()
            if name.startswith("present")
        }
