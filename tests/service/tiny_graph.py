"""ONNX graphs written by hand, node by node, for the tiny artifacts.

Legend: B batch, S source, T target, H heads, D head_dim, E = H * D.
"""

import itertools
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Weights = dict[str, Array]

H, D, E = 3, 8, 24


class Graph:
    """An ONNX graph in the making; weights become initializers when they are first used."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._fresh = (f"value_{i}" for i in itertools.count())

    def inputs(self, name: str, element: int, shape: list[Any]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def outputs(self, name: str, value: str, element: int, shape: list[Any]) -> str:
        """Give a value the name of an output. An Identity node would do, but would keep caches from being in place."""
        for node in self._nodes:
            node.input[:] = [name if used == value else used for used in node.input]
            node.output[:] = [name if made == value else made for made in node.output]
        self._outputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def node(self, operator: str, *arguments: str, **attributes: Any) -> str:
        return self.nodes(operator, 1, *arguments, **attributes)[0]

    def nodes(self, operator: str, n_results: int, *arguments: str, **attributes: Any) -> list[str]:
        for name in self._weights.keys() & set(arguments):
            self._initializers[name] = numpy_helper.from_array(self._weights[name], name)
        results = [next(self._fresh) for _ in range(n_results)]
        self._nodes.append(helper.make_node(operator, list(arguments), results, **attributes))
        return results

    def constant(self, value: NDArray[Any]) -> str:
        name = next(self._fresh)
        self._initializers[name] = numpy_helper.from_array(value, name)
        return name

    def heads(self, x: str, weight: str) -> str:
        """(B, T, E) projected to (B, H, T, D)."""
        split = self.node("Reshape", self.node("MatMul", x, weight), self.constant(np.array([0, 0, H, D])))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, query: str, key: str, value: str, n_valid: str) -> str:
        """Over the first n_valid keys of each row, heads merged: (B, T, E)."""
        heads = self.node("Attention", query, key, value, "", "", "", n_valid)
        merged = self.node("Transpose", heads, perm=[0, 2, 1, 3])
        return self.node("Reshape", merged, self.constant(np.array([0, 0, E])))

    def valid(self, ids: str, lengths: str) -> str:
        """(B, 1, 1, S), true where there is a token."""
        S = self.node("Gather", self.node("Shape", ids), self.constant(np.array(1)))
        places = self.node("Range", self.constant(np.array(0)), S, self.constant(np.array(1)))
        return self.node("Less", places, self.node("Unsqueeze", lengths, self.constant(np.array([1, 2, 3]))))

    def matrix(self, query: str, key: str, mask: str) -> str:
        """(B, H, T, S): what queries (B, H, T, D) attend to among keys (B, H, S, D)."""
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = self.node("Div", scores, self.constant(np.array(np.sqrt(D), np.float32)))
        low = self.constant(np.array(-np.inf, np.float32))
        return self.node("Softmax", self.node("Where", mask, scaled, low), axis=-1)

    def context(self, matrix: str, value: str) -> str:
        """(B, T, E) of a matrix (B, H, T, S) and values (B, H, S, D)."""
        merged = self.node("Transpose", self.node("MatMul", matrix, value), perm=[0, 2, 1, 3])
        return self.node("Reshape", merged, self.constant(np.array([0, 0, E])))

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self._nodes, "tiny", self._inputs, self._outputs, list(self._initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
        onnx.checker.check_model(model)
        return model
