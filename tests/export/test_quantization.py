"""int8: how far a product may be off, that rows never meet, and what is quantized at all."""

from collections import defaultdict

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from export import quantization
from export.artifact import served_model
from export.calibration import STEP, Limits, activation_limits, watch
from export.products import products as weighted_products
from export.quantization import quantize, quantize_rows
from model.checkpoint import load_checkpoint
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, MakeGraphs

Array = NDArray[np.float32]

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(6, 4, 24)).astype(np.float32)
WEIGHT = RANDOM.normal(size=(24, 40)).astype(np.float32)


def test_a_products_error_is_the_roundings() -> None:
    (y,) = run(quantized(products([WEIGHT])), X)
    assert relative_error(y, X @ WEIGHT) < 0.02


def test_a_relus_output_uses_the_bytes_that_signs_would_take() -> None:
    signed = relative_error(run(quantized(products([WEIGHT])), np.abs(X))[0], np.abs(X) @ WEIGHT)
    graph = quantized(products([WEIGHT], activation="Relu"))
    assert [node.op_type for node in graph.graph] == ["QuantizeLinear", "MatMulIntegerToFloat"]  # bytes begin at zero
    assert relative_error(run(graph, X)[0], np.maximum(X, 0) @ WEIGHT) < signed


def test_a_row_is_the_same_to_the_bit_whatever_its_neighbours_are() -> None:
    graph = quantized(products([WEIGHT]))
    (together,) = run(graph, X)
    outlier = X.copy()
    outlier[1:] *= 1000
    for other in (outlier[:1], outlier, X[:1]):
        np.testing.assert_array_equal(run(graph, other)[0][0], together[0])
    np.testing.assert_array_equal(run(graph, X[:1, 2:3])[0][0, 0], together[0, 2])


@pytest.mark.parametrize("activation", [None, "Relu"])
def test_a_row_of_zeros_gives_zeros(activation: str | None) -> None:
    x = X.copy()
    x[2, 1] = 0
    (y,) = run(quantized(products([WEIGHT], activation)), x)
    assert not y[2, 1].any()


def test_a_product_and_its_bias_are_one_node() -> None:
    bias = RANDOM.normal(size=40).astype(np.float32)
    graph = quantized(products([WEIGHT], bias=bias))
    assert [node.op_type for node in graph.graph] == ["QuantizeLinear", "MatMulIntegerToFloat"]
    np.testing.assert_allclose(run(graph, X)[0], run(quantized(products([WEIGHT])), X)[0] + bias, rtol=1e-5, atol=1e-5)


def test_a_product_that_was_not_calibrated_stays_in_float() -> None:
    graph = products([WEIGHT])
    quantize(graph, {})
    assert [node.op_type for node in graph.graph] == ["MatMul"]


def test_a_product_of_two_activations_is_neither_calibrated_nor_quantized() -> None:
    """As queries times keys, whose values are nobody's weights."""
    graph = products([WEIGHT])
    (x,), (y,) = graph.graph.inputs, graph.graph.outputs
    turned = ir.node("Transpose", [x], {"perm": (0, 2, 1)}, name="layer/Transpose")
    product = ir.node("MatMul", [x, turned.outputs[0]], name="layer/MatMul")
    product.outputs[0].name, product.outputs[0].dtype, product.outputs[0].shape = "scores", ir.DataType.FLOAT, y.shape
    graph.graph.extend([turned, product])
    graph.graph.outputs.append(product.outputs[0])
    found: Limits = defaultdict(float)
    watch(graph)(found, {"x": X})
    assert found.keys() == {"layer_0/MatMul"}
    _, scores = run(quantized(graph), X)
    np.testing.assert_allclose(scores, X @ X.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


def test_calibration_finds_the_largest_magnitude_that_each_product_reads() -> None:
    found: Limits = defaultdict(float)
    results = watch(products([WEIGHT, WEIGHT], activation="Relu"))(found, {"x": X})
    assert found == {f"layer_{i}/MatMul": pytest.approx(X.max()) for i in range(2)}
    assert results.keys() == {"y_0", "y_1"}


@pytest.mark.parametrize("kind", ["translation", "mean_classifier"])
def test_every_product_is_calibrated_the_same_way_each_time(
    checkpoint: MakeCheckpoint, graphs: MakeGraphs, kind: Kind
) -> None:
    model, traced = served_model(load_checkpoint(checkpoint(kind))), graphs(kind, "fp32")
    limits = activation_limits(traced, model)
    for name, graph in traced.items():
        assert limits[name].keys() == {node.name for node in weighted_products(graph.graph)}
    assert limits == activation_limits(traced, model)


@pytest.mark.parametrize("kind", ["translation", "translation_post_norm", "max_classifier"])
def test_matrices_are_computed_with_the_scales_of_the_other_graphs(
    checkpoint: MakeCheckpoint, graphs: MakeGraphs, kind: Kind
) -> None:
    """So that they are of the very model that translates or classifies."""
    found = activation_limits(graphs(kind, "fp32"), served_model(load_checkpoint(checkpoint(kind))))
    of_attention = found.pop("attention.onnx")
    shared = [
        (limit, of_attention[name])
        for limits in found.values()
        for name, limit in limits.items()
        if name in of_attention
    ]
    assert len(shared) >= 2 * 3
    assert all(limit == pytest.approx(other, rel=STEP - 1 + 1e-9) for limit, other in shared)


def test_a_narrow_product_stays_in_float() -> None:
    graph = quantized(products([WEIGHT[:, : quantization.MIN_COLUMNS - 1].copy()]))
    assert [node.op_type for node in graph.graph] == ["MatMul"]


def test_every_column_uses_the_whole_range_of_bytes() -> None:
    quantized_weight, scales = quantize_rows(WEIGHT.T)
    assert (np.abs(quantized_weight).max(axis=1) == quantization.WEIGHT_LIMIT).all()
    assert np.abs(quantized_weight * scales - WEIGHT.T).max() <= scales.max() / 2 + 1e-6
    zeros, _ = quantize_rows(np.zeros((2, 3), np.float32))
    assert not zeros.any()


def test_no_pair_of_products_overflows_sixteen_bits() -> None:
    """x86 CPUs without VNNI add two products of bytes in 16 bits, and saturate where the sum is larger."""
    for kind in (quantization.SIGNED, quantization.POSITIVE):
        assert kind.limit <= kind.zero_point or kind is quantization.POSITIVE
        assert 2 * (kind.zero_point + kind.limit) * quantization.WEIGHT_LIMIT <= np.iinfo(np.int16).max


def test_only_bytes_of_the_embedding_and_the_weights_are_kept(artifact: MakeArtifact) -> None:
    for name, tied in (("encoder.onnx", False), ("decoder_step.onnx", True), ("attention.onnx", False)):
        model = ir.load(artifact("translation", "int8") / name)
        large = [v for v in model.graph.initializers.values() if v.shape is not None and len(v.shape) == 2]
        floats = {v.name for v in large if v.dtype == ir.DataType.FLOAT}
        assert floats == {"embedding.encoding", "embedding.scales"}
        assert len([v for v in large if list(v.shape or []) in ([300, 24], [24, 300])]) == 1, "kept twice"
        table = model.graph.initializers["embedding.bytes"]
        assert ("Transpose" in {node.op_type for node, _ in table.uses()}) == tied


def products(weights: list[Array], activation: str | None = None, bias: Array | None = None) -> ir.Model:
    """x (B, S, K) times each weight (K, N), after an activation and before a bias (N)."""
    x = ir.val("x", ir.DataType.FLOAT, ["B", "S", weights[0].shape[0]])
    nodes = [ir.node(activation, [x], name="layer/activation")] if activation else []
    source = nodes[0].outputs[0] if nodes else x
    constants = [
        ir.Value(name=f"weight_{i}", const_value=ir.tensor(w, name=f"weight_{i}"), shape=ir.Shape(w.shape))
        for i, w in enumerate(weights)
    ]
    nodes += [ir.node("MatMul", [source, w], name=f"layer_{i}/MatMul") for i, w in enumerate(constants)]
    outputs = [node.outputs[0] for node in nodes if node.op_type == "MatMul"]
    if bias is not None:
        constants.append(ir.Value(name="bias", const_value=ir.tensor(bias, name="bias"), shape=ir.Shape(bias.shape)))
        nodes.append(ir.node("Add", [outputs[0], constants[-1]], name="layer_0/Add"))
        outputs = [nodes[-1].outputs[0]]
    for i, output in enumerate(outputs):
        output.name, output.dtype, output.shape = f"y_{i}", ir.DataType.FLOAT, ir.Shape(["B", "S", "N"])
    graph = ir.Graph([x], outputs, nodes=nodes, initializers=constants, opset_imports={"": 24}, name="products")
    return ir.Model(graph, ir_version=10)


def quantized(model: ir.Model) -> ir.Model:
    limit = float(np.abs(X).max())
    quantize(model, {str(node.name): limit for node in model.graph if node.op_type == "MatMul"})
    return model


def run(model: ir.Model, x: Array) -> list[Array]:
    session = ort.InferenceSession(ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"])
    outputs: list[Array] = session.run(None, {"x": x})
    return outputs


def relative_error(actual: Array, expected: Array) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))
