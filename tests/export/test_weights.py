"""weights.bin: what goes in, how often, and what the graphs find in it."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from export.artifact import graphs
from export.manifest import Precision
from export.weights import ALIGNMENT, SMALLEST, WEIGHTS, store_weights
from model.checkpoint import load_checkpoint
from model.networks.transformer import TransformerClassifier
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint

Array = NDArray[np.float32]

RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(2, 24)).astype(np.float32)
WEIGHT, OTHER = RANDOM.normal(size=(2, 24, 40)).astype(np.float32)
ARTIFACTS: list[tuple[Kind, Precision]] = [
    ("translation", "int8"),
    ("translation", "fp16"),
    ("translation", "fp32"),
    ("max_classifier", "int8"),
]


def test_a_weight_of_two_graphs_is_stored_once(tmp_path: Path) -> None:
    models = [product(WEIGHT), product(WEIGHT.copy()), product(OTHER)]
    store_weights(models, tmp_path)
    assert (tmp_path / WEIGHTS).stat().st_size == WEIGHT.nbytes + OTHER.nbytes
    assert [places(model)["weight"][0] for model in models] == [0, 0, WEIGHT.nbytes]
    for model, weight in zip(models, (WEIGHT, WEIGHT, OTHER), strict=True):
        np.testing.assert_allclose(run(model, tmp_path), X @ weight, rtol=1e-5, atol=1e-5)


def test_a_small_weight_stays_in_its_graph(tmp_path: Path) -> None:
    small = WEIGHT[:, :8].copy()
    assert small.nbytes < SMALLEST
    model = product(small)
    store_weights([model], tmp_path)
    assert (tmp_path / WEIGHTS).read_bytes() == b""
    np.testing.assert_allclose(run(model, tmp_path), X @ small, rtol=1e-5, atol=1e-5)


def test_every_weight_is_aligned(tmp_path: Path) -> None:
    odd = RANDOM.normal(size=(24, 11)).astype(np.float32)
    assert odd.nbytes % ALIGNMENT
    models = [product(odd), product(WEIGHT)]
    store_weights(models, tmp_path)
    (offset, length) = places(models[1])["weight"]
    assert (offset % ALIGNMENT, offset - odd.nbytes < ALIGNMENT, length) == (0, True, WEIGHT.nbytes)


def test_the_graphs_of_an_artifact_hold_what_was_exported(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    model = load_checkpoint(checkpoint("max_classifier")).model
    assert isinstance(model, TransformerClassifier)
    for name, exported in graphs(model, "fp16").items():
        stored = ir.load(artifact("max_classifier", "fp16") / name)
        assert stored.graph.initializers.keys() == exported.graph.initializers.keys()
        for weight, value in exported.graph.initializers.items():
            tensor = stored.graph.initializers[weight].const_value
            assert tensor is not None
            assert value.const_value is not None
            assert tensor.tobytes() == value.const_value.tobytes()
            assert isinstance(tensor, ir.ExternalTensor) == (tensor.nbytes >= SMALLEST)


@pytest.mark.parametrize(("kind", "precision"), ARTIFACTS)
def test_no_bytes_of_an_artifact_are_stored_twice(artifact: MakeArtifact, kind: Kind, precision: Precision) -> None:
    directory = artifact(kind, precision)
    content = (directory / WEIGHTS).read_bytes()
    found = {place for path in directory.glob("*.onnx") for place in places(ir.load(path)).values()}
    stored = [content[offset : offset + length] for offset, length in found]
    assert len(set(stored)) == len(stored) >= 5
    assert sum(map(len, stored)) <= len(content) < sum(map(len, stored)) + ALIGNMENT * len(stored)


def test_matrices_are_computed_with_the_bytes_of_the_other_graphs(artifact: MakeArtifact) -> None:
    """But for the keys and values of all decoder layers, of which no matrix depends on the last."""
    directory = artifact("translation", "int8")
    others = {
        place for name in ("encoder.onnx", "decoder_step.onnx") for place in places(ir.load(directory / name)).values()
    }
    of_attention = places(ir.load(directory / "attention.onnx"))
    own = {name for name, place in of_attention.items() if place not in others and name.endswith(".bytes")}
    assert own == {"memory_projection.bytes"}


def product(weight: Array) -> ir.Model:
    """x (M, K) times the weight (K, N)."""
    x = ir.val("x", ir.DataType.FLOAT, ["M", weight.shape[0]])
    constant = ir.Value(name="weight", const_value=ir.tensor(weight, name="weight"), shape=ir.Shape(weight.shape))
    node = ir.node("MatMul", [x, constant])
    y = node.outputs[0]
    y.name, y.dtype, y.shape = "y", ir.DataType.FLOAT, ir.Shape(["M", "N"])
    graph = ir.Graph([x], [y], nodes=[node], initializers=[constant], opset_imports={"": 24}, name="product")
    return ir.Model(graph, ir_version=10)


def places(model: ir.Model) -> dict[str, tuple[int, int]]:
    """Offset and length of each weight that is stored outside the model, by its name."""
    tensors = {name: value.const_value for name, value in model.graph.initializers.items()}
    return {
        name: (tensor.offset or 0, tensor.length or 0)
        for name, tensor in tensors.items()
        if isinstance(tensor, ir.ExternalTensor)
    }


def run(model: ir.Model, directory: Path) -> Array:
    """What ONNX Runtime computes with the weights beside the graph."""
    path = directory / "graph.onnx"
    path.write_bytes(ir.to_proto(model).SerializeToString())
    outputs: list[Array] = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    return outputs[0]
