"""The float form of a graph: the same graph, computing in float32 what it rounds to bytes or to float16.

A graph that is wrong is wrong in this form too, and the form differs from PyTorch by no more than the last bits. So a
proof need not allow for what bytes cost.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
import onnxruntime as ort

from export.session import new_session, tensors_of
from manifest.schema import Dtype, Manifest

HALF, FLOAT = ir.DataType.FLOAT16, ir.DataType.FLOAT
PRODUCT, INTEGER_PRODUCT, ROUNDING = "MatMulIntegerToFloat", "MatMulInteger", "QuantizeLinear"


def open_float_form(directory: Path, manifest: Manifest, graph: str, threads: int = 1) -> ort.InferenceSession:
    """Open a session for the float form of one graph of an artifact, for example cpu/encoder.onnx."""
    model = ir.load(directory / graph)
    to_floats(model)
    types: dict[Dtype, list[str]] = defaultdict(list)
    for dtype, names in manifest.graphs[graph].items():
        types["float32" if dtype == "float16" else dtype] += [n for n in names if n in model.graph.initializers]
    return new_session(ir.to_proto(model).SerializeToString(), tensors_of(directory, types), threads)


def to_floats(model: ir.Model) -> None:
    """Change a graph to its float form, in place."""
    for node in list(model.graph):
        if node.op_type in (PRODUCT, INTEGER_PRODUCT):
            _multiply_in_floats(model.graph, node)
    for node in [node for node in model.graph if node.op_type == ROUNDING]:
        if not node.outputs[0].uses():
            model.graph.remove(node, safe=True)
    for name in [name for name, value in model.graph.initializers.items() if not value.uses()]:
        del model.graph.initializers[name]
    _widen(model.graph)


def _multiply_in_floats(graph: ir.Graph, product: ir.Node) -> None:
    """Replace a product of bytes by (x * weight) * scales + bias, where x is what would be rounded to bytes; a product
    whose scales come afterwards by (x / step) * weight."""
    if product.op_type == PRODUCT:
        rounded, weight, _step, scales, zero_point, *rest = product.inputs
    else:
        (rounded, weight, zero_point), scales, rest = product.inputs, None, []
    assert rounded is not None
    assert zero_point is not None
    rounding = rounded.producer()
    assert rounding is not None
    x, new = rounding.inputs[0], list[ir.Node]()

    def add(operator: str, *inputs: ir.Value | None, **attributes: ir.DataType) -> ir.Value:
        new.append(ir.node(operator, inputs, attributes, name=f"{product.name}/float/{operator}"))
        return new[-1].outputs[0]

    if zero_point.const_value is not None and not zero_point.const_value.numpy().any():
        x = add("Relu", x)  # bytes that begin at 0 stand for a ReLU, which the graph left out
    if scales is None:
        x = add("Div", x, rounding.inputs[1])
    y = add("MatMul", x, add("Cast", weight, to=FLOAT))
    if scales is not None:
        y = add("Mul", y, scales)
    if rest and rest[-1] is not None:
        y = add("Add", y, rest[-1])
    graph.insert_before(product, new)
    ir.convenience.replace_all_uses_with(product.outputs[0], y)
    y.name = product.outputs[0].name
    product.outputs[0].name = f"{y.name}.int8"
    graph.remove(product, safe=True)


def _widen(graph: ir.Graph) -> None:
    for value in _values(graph):
        if value.dtype == HALF:
            value.dtype = FLOAT
        tensor = value.const_value
        if tensor is None or tensor.dtype != HALF:
            continue
        if isinstance(tensor, ir.ExternalTensor):
            value.const_value = ir.ExternalTensor(
                tensor.location, None, None, FLOAT, shape=tensor.shape, name=tensor.name, base_dir=""
            )
        else:
            value.const_value = _as_float(tensor)
    for node in graph:
        for name, attribute in list(node.attributes.items()):
            if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype == HALF:
                node.attributes[name] = ir.AttrTensor(name, _as_float(attribute.as_tensor()))
            elif node.op_type == "Cast" and name == "to" and attribute.as_int() == HALF:
                node.attributes[name] = ir.AttrInt64(name, FLOAT)


def _as_float(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype("float32"), name=tensor.name)


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
