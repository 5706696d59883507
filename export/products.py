"""What can be asked of a product in a graph: its inputs, its constant weight, its bias, its layer."""

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray


def products(graph: ir.Graph) -> list[ir.Node]:
    """Products with a constant weight, in order: not those of two activations, as queries times keys."""
    return [node for node in graph if node.op_type == "MatMul" and constant_array(operands(node)[1]) is not None]


def operands(node: ir.Node) -> tuple[ir.Value, ir.Value]:
    """Both inputs of a product or a look-up."""
    left, right = node.inputs
    assert left is not None
    assert right is not None
    return left, right


def constant_array(value: ir.Value) -> NDArray[np.float32] | None:
    """What a value holds, if it is an initializer, rows of one, or the transpose of either."""
    producer = value.producer()
    if producer is not None and producer.op_type == "Gather":
        table, rows = (constant_array(operand) for operand in operands(producer))
        return None if table is None or rows is None else table[rows]
    if producer is not None and producer.op_type == "Transpose":
        transposed = producer.inputs[0]
        held = constant_array(transposed) if transposed is not None else None
        return None if held is None else held.transpose(producer.attributes["perm"].as_ints())
    return value.const_value.numpy() if value.const_value is not None and value.is_initializer() else None


def biased(product: ir.Node) -> tuple[ir.Node, ir.Value | None]:
    """The node that adds a constant bias to a product, and the bias; or the product itself and None."""
    users = product.outputs[0].consumers()
    if len(users) == 1 and users[0].op_type == "Add":
        for value in users[0].inputs:
            if value is not None and value.is_initializer():
                return users[0], value
    return product, None


def layer(node: ir.Node) -> str:
    """The layer that a node is named after."""
    assert node.name is not None
    return node.name.split("/")[0]
