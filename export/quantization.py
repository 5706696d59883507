"""int8 weights and activations, as a pass over an exported graph.

Every product of activations x (..., K) with a constant weight (K, N) becomes

    row_scale = ReduceMax(Abs(x))                                   over K: one for each row
    q         = QuantizeLinear(x / row_scale)                       unsigned bytes around a zero point
    y         = Cast(MatMulInteger(q, w)) * row_scale * column_scale

with the weight's bytes w and one constant scale for each of its columns. Nothing is computed across rows: what shares a
batch with a row never changes its answer, as one scale for the whole batch (`DynamicQuantizeLinear`) would. Embeddings
become bytes with one scale per token, and the output projection tied to them uses the same bytes.

A row of zeros divides zero by zero. Whatever byte that becomes, it is multiplied by its row's scale, which is zero.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.passes.common import RemoveUnusedNodesPass

WEIGHT_LIMIT = 90
"""Largest magnitude of a weight's byte. With activation bytes up to 182, so that every CPU computes the same numbers.

x86 CPUs without VNNI add two products of bytes in 16 bits and saturate. 2 * 182 * 90 = 32760 fits; 2 * 255 * 127, the
whole of both bytes, does not: on a Haswell (emulated) 157 of 160 sums of large products came out wrong, and none with
weights up to 64. The limits here were not run there: that they fit is arithmetic, which a test asserts.
ONNX Runtime's own remedy, `session.x64quantprecision`, makes CPUs with VNNI a half slower too.

What it costs, on the English-French model early in training: a divergence from float32 of 6.5e-4 nats per token, where
whole bytes have 3.5e-4, 7-bit weights 8.3e-4 and 7-bit activations 9.2e-4; cross-entropy is 2.446 in place of 2.444.
"""

MIN_COLUMNS = 16
"""Narrower weights stay in float: a classifier's last layer and tables cost nothing, and its answer hangs on them."""


@dataclass(frozen=True)
class ActivationBytes:
    """How activations become bytes: the largest magnitude of a row is `limit` away from `zero_point`."""

    zero_point: int
    limit: int


SIGNED = ActivationBytes(zero_point=91, limit=91)
POSITIVE = ActivationBytes(zero_point=0, limit=182)
"""After a ReLU no byte is spent on signs."""


def quantize(model: ir.Model) -> None:
    """Rewrite the graph's embedding and products in place."""
    rewriter = Rewriter(model.graph)
    for node in list(model.graph):
        if node.op_type == "Gather" and node.inputs[1] in model.graph.inputs:
            rewriter.rewrite_embedding(node)
    for node in list(model.graph):
        if node.op_type == "MatMul":
            rewriter.rewrite_product(node)
    RemoveUnusedNodesPass()(model)


class Rewriter:
    """Puts int8 nodes in the place of float ones, and remembers what is quantized already."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.rows: dict[ir.Value, tuple[ir.Value, ir.Value, ActivationBytes]] = {}
        self.embedding: NDArray[np.float32] | None = None

    def rewrite_embedding(self, node: ir.Node) -> None:
        """Gather(embedding, ids) to Cast(Gather(bytes, ids)) * Gather(scales, ids), if not narrow."""
        table, ids = operands(node)
        embedding = constant_array(table)
        if embedding is None or embedding.shape[1] < MIN_COLUMNS:
            return
        self.embedding = embedding
        quantized, scales = quantize_rows(embedding)
        byte_table = self.constant("embedding.bytes", quantized)  # (V, E)
        scale_table = self.constant("embedding.scales", scales)  # (V, 1)
        gathered = self.insert(node, "Gather", "bytes", byte_table, ids, axis=0)
        scale = self.insert(node, "Gather", "scales", scale_table, ids, axis=0)
        floats = self.insert(node, "Cast", "floats", gathered, to=ir.DataType.FLOAT)
        self.replace(node, self.insert(node, "Mul", "scaled", floats, scale))

    def rewrite_product(self, node: ir.Node) -> None:
        """MatMul(x, weight) as the module's docstring has it, where the weight is constant and not narrow."""
        x, weight_value = operands(node)
        weight = constant_array(weight_value)
        if weight is None or weight.shape[1] < MIN_COLUMNS:
            return
        rows, row_scale, kind = self.quantize_activations(node, x)
        quantized, scales = quantize_rows(weight.T)
        columns = self.tied_weight(node, weight)
        if columns is None:
            columns = self.constant(f"{layer(node)}.bytes", np.ascontiguousarray(quantized.T))
        column_scale = self.constant(f"{layer(node)}.scales", scales[:, 0] / np.float32(kind.limit))
        zero_point = self.zero_point(kind)
        product = self.insert(node, "MatMulInteger", "integers", rows, columns, zero_point)
        floats = self.insert(node, "Cast", "floats", product, to=ir.DataType.FLOAT)
        by_row = self.insert(node, "Mul", "row_scaled", floats, row_scale)
        self.replace(node, self.insert(node, "Mul", "scaled", by_row, column_scale))

    def quantize_activations(self, node: ir.Node, x: ir.Value) -> tuple[ir.Value, ir.Value, ActivationBytes]:
        """Bytes of x, the scale of each row, and which bytes they are: once for all products that share x."""
        if x not in self.rows:
            producer = x.producer()
            positive = producer is not None and producer.op_type == "Relu"
            kind = POSITIVE if positive else SIGNED
            magnitude = x if positive else self.insert(node, "Abs", "magnitude", x)
            last_axis = self.constant("last_axis", np.array([-1]))
            row_scale = self.insert(node, "ReduceMax", "row_scale", magnitude, last_axis)
            unit = self.insert(node, "Div", "unit", x, row_scale)
            step = self.constant(f"step_{kind.limit}", np.array(1 / kind.limit, np.float32))
            rows = self.insert(node, "QuantizeLinear", "rows", unit, step, self.zero_point(kind))
            self.rows[x] = rows, row_scale, kind
        return self.rows[x]

    def tied_weight(self, node: ir.Node, weight: NDArray[np.float32]) -> ir.Value | None:
        """The embedding's bytes, transposed, where the weight is the embedding; ONNX Runtime transposes at load."""
        if self.embedding is None or not np.array_equal(weight.T, self.embedding):
            return None
        return self.insert(node, "Transpose", "columns", self.graph.initializers["embedding.bytes"], perm=(1, 0))

    def zero_point(self, kind: ActivationBytes) -> ir.Value:
        """The byte that stands for zero."""
        return self.constant(f"zero_point_{kind.zero_point}", np.array(kind.zero_point, np.uint8))

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

    def insert(self, before: ir.Node, op_type: str, name: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        """The result of a new node in front of `before`, both named after its layer."""
        node = ir.node(op_type, inputs, attributes, name=f"{layer(before)}/{name}")
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


def operands(node: ir.Node) -> tuple[ir.Value, ir.Value]:
    """Both inputs of a product or a look-up."""
    left, right = node.inputs
    assert left is not None
    assert right is not None
    return left, right


def constant_array(value: ir.Value) -> NDArray[np.float32] | None:
    """What a value holds, if it is an initializer or the transpose of one."""
    producer = value.producer()
    if producer is not None and producer.op_type == "Transpose":
        transposed = producer.inputs[0]
        held = constant_array(transposed) if transposed is not None else None
        return None if held is None else held.transpose(producer.attributes["perm"].as_ints())
    return value.const_value.numpy() if value.const_value is not None and value.is_initializer() else None


def layer(node: ir.Node) -> str:
    """The layer that a node is named after."""
    assert node.name is not None
    return node.name.split("/")[0]
