"""int8: the error of products, independence of rows, and the choice of quantized layers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim

from export import dense, quantization
from export.dense import POSITIVE, SIGNED, Int8Embedding, Int8Linear, Rounding
from export.graphs import MEMORY_STEP
from export.quantization import best_limit, choose_smoothing, quantize_model, quantize_rows
from export.tracing import export_module, named_tensors
from model.checkpoint import load_checkpoint
from model.networks.layers import FeedForward
from model.networks.transformer import Transformer, TransformerClassifier
from model.weights import dequantize
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, classifier_of, translator_of

pytestmark = pytest.mark.slow

Array = NDArray[np.float32]

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(6, 4, 24)).astype(np.float32)
WEIGHT = RANDOM.normal(size=(40, 24)).astype(np.float32)
BIAS = RANDOM.normal(size=40).astype(np.float32)


def test_a_products_error_is_the_roundings() -> None:
    assert relative_error(run(int8()), X @ WEIGHT.T) < 0.02


def test_a_relus_output_uses_the_bytes_that_signs_would_take() -> None:
    signed = relative_error(run(int8(), np.abs(X)), np.abs(X) @ WEIGHT.T)
    assert relative_error(run(int8(POSITIVE)), np.maximum(X, 0) @ WEIGHT.T) < signed


def test_a_row_is_the_same_to_the_bit_whatever_its_neighbours_are() -> None:
    layer = int8()
    together = run(layer)
    outlier = X.copy()
    outlier[1:] *= 1000
    for other in (outlier[:1], outlier, X[:1]):
        np.testing.assert_array_equal(run(layer, other)[0], together[0])
    np.testing.assert_array_equal(run(layer, X[:1, 2:3])[0, 0], together[0, 2])


@pytest.mark.parametrize("rounding", [SIGNED, POSITIVE])
def test_smoothing_makes_room_for_a_channel_that_is_larger_than_others(rounding: Rounding) -> None:
    x, weight = (np.abs(X) if rounding is POSITIVE else X).copy(), WEIGHT.copy()
    x[..., 5] *= 20
    weight[:, 5] /= 20
    rough, smooth = (int8(rounding, x=x, weight=weight, smoothed=smoothed) for smoothed in (False, True))
    assert relative_error(run(smooth, x), x @ weight.T) < relative_error(run(rough, x), x @ weight.T) / 3
    np.testing.assert_array_equal(run(smooth, x[:1])[0], run(smooth, x)[0])


@pytest.mark.parametrize("rounding", [SIGNED, POSITIVE])
def test_a_row_of_zeros_gives_zeros(rounding: Rounding) -> None:
    x = X.copy()
    x[2, 1] = 0
    assert not run(int8(rounding), x)[2, 1].any()


def test_a_product_and_its_bias_are_one_node() -> None:
    operators = [node.op_type for node in traced(int8(bias=BIAS)).graph]
    assert {"QuantizeLinear", "MatMulIntegerToFloat"} <= set(operators)
    assert not {"MatMul", "Add"} & set(operators)
    np.testing.assert_allclose(run(int8(bias=BIAS)), run(int8()) + BIAS, rtol=1e-5, atol=1e-5)


def test_rows_of_several_layers_are_multiplied_at_once_and_scaled() -> None:
    class Joined(nn.Module):
        def __init__(self, layer: Int8Linear) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            whole = dense.dense(self.layer)
            return dense.concatenate([whole.rows(slice(30, 40)), whole.rows(slice(0, 8)).times(0.3)])(x)

    y = run(int8(bias=BIAS))
    np.testing.assert_allclose(
        run(Joined(int8(bias=BIAS))), np.concatenate([y[..., 30:], 0.3 * y[..., :8]], -1), 1e-4, 1e-5
    )


def test_a_few_outliers_are_cut_off_for_finer_steps_of_all_others() -> None:
    x = torch.randn(500, 24, generator=torch.Generator().manual_seed(1))
    largest = float(x.abs().max())
    x[7, 3] = 4 * largest
    for kind in (SIGNED, POSITIVE):
        rows = x.relu() if kind is POSITIVE else x
        assert best_limit(rows, kind) < 3 * largest
    assert largest <= best_limit(torch.full((4, 24), -largest), SIGNED) <= largest * quantization.FINENESS


def test_the_best_limit_changes_rows_less_than_others_do() -> None:
    x = torch.randn(500, 24, generator=torch.Generator().manual_seed(1)) ** 3
    best = best_limit(x, SIGNED)

    def error(limit: float) -> float:
        return quantization.relative_error(SIGNED(x, limit / SIGNED.limit), x)

    assert error(best) < min(error(best * 1.4), error(best / 1.4), error(float(x.abs().max())))


def test_rows_far_larger_than_others_do_not_hide_them() -> None:
    expected = torch.ones(10, 4)
    expected[0] = 1e6
    actual = expected.clone()
    actual[1:] = 0
    assert quantization.relative_error(actual, expected) == pytest.approx(0.9**0.5)


def test_what_bytes_would_change_too_much_stays_in_floats(checkpoint: MakeCheckpoint) -> None:
    model = translator_of(checkpoint("translation"))
    with_outlier(
        model.encoder.get_submodule("layers.1.add_norm_feed_forward.norm"),
        [model.encoder.get_submodule("layers.1.feed_forward.hidden")],
        times=1e6,
    )
    served = quantize_model(model, {})
    assert [name for name, module in served.named_modules() if isinstance(module, nn.Linear)] == [
        "encoder.layers.1.feed_forward.hidden"
    ]
    assert set(tensors_in_bytes(quantize_model(model, named_tensors(served)))) == set(tensors_in_bytes(served))


def test_what_smoothing_makes_bytes_of_is_smoothed_and_nothing_else(checkpoint: MakeCheckpoint) -> None:
    model = classifier_of(checkpoint("mean_classifier"))
    name = "encoder.layers.1.feed_forward.hidden"
    with_outlier(
        model.encoder.get_submodule("layers.1.add_norm_feed_forward.norm"), [model.get_submodule(name)], times=20
    )
    served = quantize_model(model, {})
    assert isinstance(served.get_submodule(name), Int8Linear)
    stored = named_tensors(served)
    assert [key for key in stored if key.endswith(".smoothing")] == [f"{name}.smoothing"]
    whole = dequantize(f"{name}.weight", stored)
    assert quantization.relative_error(whole, model.get_parameter(f"{name}.weight").detach()) < 0.02
    again = named_tensors(quantize_model(model, stored))
    assert again.keys() == stored.keys()
    assert all(torch.equal(again[key], stored[key]) for key in stored)


def test_what_a_relu_may_have_silenced_is_not_smoothed(checkpoint: MakeCheckpoint) -> None:
    """A channel that no calibration text uses would have no bytes in a text that uses it."""
    model = classifier_of(checkpoint("mean_classifier"))
    feed_forward = model.encoder.get_submodule("layers.1.feed_forward")
    assert isinstance(feed_forward, FeedForward)
    assert feed_forward.activate is torch.relu
    with torch.no_grad():
        feed_forward.hidden.weight[5] *= 60
        feed_forward.hidden.bias[5] *= 60
        feed_forward.output.weight[:, 5] /= 60
    served = quantize_model(model, {})
    assert isinstance(served.get_submodule("encoder.layers.1.feed_forward.output"), nn.Linear)


def test_if_one_layer_that_reads_the_source_stays_in_floats_all_do(checkpoint: MakeCheckpoint) -> None:
    """They are one product."""
    model = translator_of(checkpoint("translation"))
    name = "decoder.layers.0.add_norm_cross.norm"
    with_outlier(model.get_submodule(name), [model.get_submodule("decoder.layers.0.cross_attention.input")], rows=24)
    served = quantize_model(model, {})
    floats = [name for name, module in served.named_modules() if isinstance(module, nn.Linear)]
    assert floats == [f"decoder.layers.{i}.cross_attention.input" for i in range(2)]
    assert not hasattr(served.decoder, MEMORY_STEP)
    again = quantize_model(model, named_tensors(served))
    assert named_tensors(again).keys() == named_tensors(served).keys()


GATED = {("translation_rotary", f"{half}.feed_forward.output") for half in ("encoder.layers.1", "decoder.layers.0")}
"""Layers of the rotary model where a random gate leaves a few numbers far larger than all others."""


@pytest.mark.parametrize("kind", ["translation", "translation_rotary", "mean_classifier", "max_classifier"])
def test_every_table_and_every_dense_layer_that_is_not_narrow_is_bytes(checkpoint: MakeCheckpoint, kind: Kind) -> None:
    loaded = load_checkpoint(checkpoint(kind))
    model = loaded.model
    assert isinstance(model, Transformer | TransformerClassifier)
    served = quantize_model(model, {})
    for name, module in served.named_modules():
        in_floats = name == "output" or (kind, name) in GATED
        assert not isinstance(module, nn.Linear | nn.Embedding) or in_floats, name
    for module in served.modules():
        if isinstance(module, Int8Linear | Int8Embedding):
            assert module.weight.shape[0] >= quantization.MIN_ROWS


def test_what_is_stored_is_taken_as_it_is(checkpoint: MakeCheckpoint) -> None:
    """Rounding or choosing limits a second time would change the numbers."""
    model = translator_of(checkpoint("translation"))
    stored = named_tensors(quantize_model(model, {}))
    random = torch.Generator().manual_seed(4)
    for name, tensor in stored.items():
        if tensor.dtype == torch.int8:
            tensor.copy_(torch.randint(-90, 91, tensor.shape, generator=random))
        elif name.endswith((".scales", ".step")):
            tensor.copy_(torch.rand(tensor.shape, generator=random))
    taken = named_tensors(quantize_model(model, stored))
    assert taken.keys() == stored.keys()
    assert all(torch.equal(taken[name], stored[name]) for name in stored)


def test_every_row_uses_the_whole_range_of_bytes() -> None:
    numbers, scales = quantize_rows(torch.from_numpy(WEIGHT))
    assert (numbers.abs().amax(dim=1) == quantization.WEIGHT_LIMIT).all()
    assert (numbers * scales - torch.from_numpy(WEIGHT)).abs().max() <= scales.max() / 2 + 1e-6
    assert not quantize_rows(torch.zeros(2, 3))[0].any()


def test_a_large_table_becomes_the_same_bytes_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = quantize_rows(torch.from_numpy(WEIGHT))
    monkeypatch.setattr(quantization, "ROWS_AT_ONCE", 3)
    parts = quantize_rows(torch.from_numpy(WEIGHT))
    assert all(torch.equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_no_pair_of_products_overflows_sixteen_bits() -> None:
    """x86 CPUs without VNNI add two products of bytes in 16 bits, and saturate where the sum is larger."""
    for kind in (SIGNED, POSITIVE):
        assert kind.limit <= kind.zero_point or kind is POSITIVE
        assert 2 * (kind.zero_point + kind.limit) * quantization.WEIGHT_LIMIT <= np.iinfo(np.int16).max


def test_what_is_looked_up_in_a_table_is_what_is_stored() -> None:
    random = torch.Generator().manual_seed(3)
    numbers = torch.randint(-127, 128, (300, 5), generator=random, dtype=torch.int8)
    scales = torch.rand(300, 1, generator=random)
    ids = np.array([[5, 299, 0], [7, 7, 1]])
    expected = dequantize("table", {"table": numbers, "table.scales": scales})[ids]
    np.testing.assert_array_equal(run(Int8Embedding(numbers, scales), ids), expected.numpy())


def test_only_bytes_of_the_embedding_and_the_weights_are_read(artifact: MakeArtifact) -> None:
    for name in ("encoder.onnx", "decoder_step.onnx", "attention.onnx"):
        path = artifact("translation", "int8") / "cpu" / name
        tensors = onnx.load(path, load_external_data=False).graph.initializer
        floats = {t.name for t in tensors if len(t.dims) == 2 and t.data_type == onnx.TensorProto.FLOAT}
        assert {name for name in floats if not name.endswith(".scales")} == {"embedding.encoding"}
        assert len([t for t in tensors if list(t.dims) in ([300, 24], [24, 300])]) == 1, "kept twice"


@torch.no_grad()
def with_outlier(norm: nn.Module, layers: Sequence[nn.Module], rows: int | None = None, times: float = 1000) -> None:
    """Multiply a channel of the norm and divide the weights that read it: the model computes the same."""
    assert isinstance(norm, nn.LayerNorm)
    norm.weight[5] *= times
    norm.bias[5] *= times
    for layer in layers:
        assert isinstance(layer, nn.Linear)
        layer.weight[:rows, 5] /= times


def tensors_in_bytes(model: nn.Module) -> list[str]:
    return [name for name, tensor in named_tensors(model).items() if tensor.dtype == torch.int8]


def int8(
    rounding: Rounding = SIGNED, bias: Array | None = None, x: Array = X, weight: Array = WEIGHT, smoothed: bool = False
) -> Int8Linear:
    rows, columns = torch.from_numpy(x).flatten(0, 1), torch.from_numpy(weight)
    smoothing = choose_smoothing(rows, columns) if smoothed else torch.ones(rows.shape[1])
    step = (rows / smoothing).abs().max() / rounding.limit
    offset = None if bias is None else nn.Parameter(torch.from_numpy(bias))
    numbers, scales = quantize_rows(columns * smoothing)
    return Int8Linear(numbers, scales, offset, step, rounding, smoothing if smoothed else None)


def traced(module: nn.Module, x: NDArray[Any] = X) -> ir.Model:
    """Export a module with one input, whose sizes are free except the last."""
    sizes = dict.fromkeys(range(2), Dim.DYNAMIC)
    return export_module(module, (torch.from_numpy(x),), (sizes,), ["x"], ["y"])


def run(module: nn.Module, x: NDArray[Any] = X) -> Array:
    example = X if x.ndim == X.ndim else x  # traced with one row, a graph would take one row alone
    serialized = ir.to_proto(traced(module, example)).SerializeToString()
    outputs: list[Array] = ort.InferenceSession(serialized, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    return outputs[0]


def relative_error(actual: Array, expected: Array) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))
