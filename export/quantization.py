"""int8 weights and activations, as a pass over an exported graph.

Every product of activations x (..., K) with a constant weight (K, N), and its bias, becomes

    q = QuantizeLinear(x)                                unsigned bytes around a zero point, on a constant scale
    y = MatMulIntegerToFloat(q, w, ..., bias)            with the weight's bytes w, and one scale for each column

The scale of x comes from calibration (`export.calibration`), so nothing is computed across rows: what shares a batch
with a row never changes its answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. A scale computed
for each row keeps that promise too, but costs seven more passes over the numbers, a third of a product's time.
Embeddings become bytes with one scale per token, and the output projection tied to them uses the same bytes.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.passes.common import RemoveUnusedNodesPass

from export.calibration import Limits
from export.products import biased, constant_array, layer, operands, products

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

CONTRIB = "com.microsoft"
"""ONNX Runtime's own operators."""

MIN_COLUMNS = 16
"""Narrower weights stay in float: a classifier's last layer and tables cost nothing, and its answer hangs on them."""

AS_THEY_ARE = ("regions.embedding.tokens", "regions.labelled_embedding.tokens", "regions.detectors")
"""Layers whose numbers are not rounded: of two regions that a detector sees nearly alike, bytes may call the other the
strongest, whose token then gets what the detector says."""


@dataclass(frozen=True)
class ActivationBytes:
    """How activations become bytes: the largest magnitude is `limit` away from `zero_point`."""

    zero_point: int
    limit: int


SIGNED = ActivationBytes(zero_point=91, limit=91)
POSITIVE = ActivationBytes(zero_point=0, limit=182)
"""After a ReLU no byte is spent on signs; what is negative becomes zero here, without it."""


def quantize(model: ir.Model, limits: Limits) -> None:
    """Rewrite the graph's embedding, and the products whose inputs have a limit, in place."""
    rewriter = Rewriter(model.graph, limits)
    model.opset_imports[CONTRIB] = 1
    for node in list(model.graph):
        if node.op_type == "Gather" and node.inputs[1] in model.graph.inputs:
            rewriter.rewrite_embedding(node)
    for node in products(model.graph):
        rewriter.rewrite_product(node)
    RemoveUnusedNodesPass()(model)


class Rewriter:
    """Puts int8 nodes in the place of float ones."""

    def __init__(self, graph: ir.Graph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self.embedding: NDArray[np.float32] | None = None
        self.inserted: Counter[str] = Counter()

    def rewrite_embedding(self, node: ir.Node) -> None:
        """Gather(embedding, ids) to Cast(Gather(bytes, ids)) * Gather(scales, ids), if not narrow."""
        table, ids = operands(node)
        embedding = constant_array(table)
        if embedding is None or embedding.shape[1] < MIN_COLUMNS or layer(node) in AS_THEY_ARE:
            return
        self.embedding = embedding
        quantized, scales = quantize_rows(embedding)
        name = layer(node).removesuffix(".tokens")  # an encoder of another width has an embedding of its own
        byte_table = self.constant(f"{name}.bytes", quantized)  # (V, E)
        scale_table = self.constant(f"{name}.scales", scales)  # (V, 1)
        gathered = self.insert(node, "Gather", "bytes", byte_table, ids, axis=0)
        scale = self.insert(node, "Gather", "scales", scale_table, ids, axis=0)
        floats = self.insert(node, "Cast", "floats", gathered, to=ir.DataType.FLOAT)
        self.replace(node, self.insert(node, "Mul", "scaled", floats, scale))

    def rewrite_product(self, node: ir.Node) -> None:
        """MatMul(x, weight) and its bias as the module's docstring has it, if the weight is not narrow."""
        x, weight_value = operands(node)
        weight = constant_array(weight_value)
        assert weight is not None
        if weight.shape[1] < MIN_COLUMNS or node.name not in self.limits or layer(node) in AS_THEY_ARE:
            return
        quantized, column_scales = quantize_rows(weight.T)
        columns = self.tied_weight(node, weight)
        if columns is None:
            columns = self.constant(f"{layer(node)}.bytes", np.ascontiguousarray(quantized.T))
        column_scale = self.constant(f"{layer(node)}.scales", column_scales[:, 0])
        producer = x.producer()
        kind, rounded = (POSITIVE, producer.inputs[0]) if producer and producer.op_type == "Relu" else (SIGNED, x)
        scale = self.constant(f"{layer(node)}.step", np.array(self.limits[node.name] / kind.limit, np.float32))
        zero_point = self.constant(f"zero_point_{kind.zero_point}", np.array(kind.zero_point, np.uint8))
        rows = self.insert(node, "QuantizeLinear", "rows", rounded, scale, zero_point)
        last, bias = biased(node)
        inputs = (rows, columns, scale, column_scale, zero_point, None, bias)
        self.replace(last, self.insert(last, "MatMulIntegerToFloat", "product", *inputs, domain=CONTRIB))
        if last is not node:
            self.graph.remove(node, safe=True)

    def tied_weight(self, node: ir.Node, weight: NDArray[np.float32]) -> ir.Value | None:
        """The embedding's bytes, or some rows of them, transposed, where the weight (K, N) is that of the embedding.

        ONNX Runtime selects and transposes when it loads.
        """
        if self.embedding is None:
            return None
        places = {row.tobytes(): place for place, row in enumerate(self.embedding)}
        rows = [places.get(column.tobytes()) for column in weight.T]
        if None in rows:
            return None
        table = self.graph.initializers["embedding.bytes"]
        if len(rows) < len(self.embedding):
            chosen = self.constant(f"{layer(node)}.rows", np.array(rows))
            table = self.insert(node, "Gather", "rows_of_table", table, chosen, axis=0)
        return self.insert(node, "Transpose", "columns", table, perm=(1, 0))

    def constant(self, name: str, array: NDArray[Any]) -> ir.Value:
        """The initializer of this name, made of `array` if it is new."""
        if name not in self.graph.initializers:
            self.graph.register_initializer(
                ir.Value(
                    name=name,
                    shape=ir.Shape(array.shape),
                    type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
                    const_value=ir.tensor(array, name=name),
                )
            )
        return self.graph.initializers[name]

    def insert(
        self, before: ir.Node, op_type: str, name: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any
    ) -> ir.Value:
        """The result of a new node in front of `before`, both named after its layer, which may be used twice."""
        name = f"{layer(before)}/{name}"
        times = self.inserted[name]
        self.inserted[name] += 1
        node = ir.node(op_type, inputs, attributes, domain=domain, name=f"{name}.{times}" if times else name)
        node.outputs[0].name = node.name
        self.graph.insert_before(before, node)
        return node.outputs[0]

    def replace(self, node: ir.Node, result: ir.Value) -> None:
        """Take `node` out of the graph and let `result` stand for its own, under the same name."""
        old = node.outputs[0]
        result.shape, result.type = old.shape, old.type
        old.replace_all_uses_with(result, replace_graph_outputs=True)
        self.graph.remove(node, safe=True)
        result.name = old.name


def quantize_rows(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """weight (N, K) as bytes (N, K) times a scale per row (N, 1)."""
    largest = np.abs(weight).max(axis=1, keepdims=True)
    scales = np.where(largest > 0, largest, 1) / np.float32(WEIGHT_LIMIT)
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)
