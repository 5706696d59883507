"""What the repository ships is what its own export makes of its own checkpoints."""

from pathlib import Path

import onnx_ir as ir
import pytest
from torch import nn

import export.tracing
from export.artifact import write
from export.graphs import DecoderStepGraph
from export.signatures import Signature
from export.tracing import trace
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
CHECKPOINTS = [ROOT / "checkpoints" / path.parent.name for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_its_checkpoint(
    checkpoint: Path, tmp_path: Path, traced: dict[str, ir.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_checkpoint(checkpoint)
    architecture = loaded.config.model.model_dump_json(exclude={"source", "target", "dropout"})

    def trace_once(graph: nn.Module, signature: Signature, n_attention: int) -> ir.Model:
        if isinstance(graph, DecoderStepGraph):  # which tokens a translation may have is part of it
            return trace(graph, signature, n_attention)
        name = f"{type(graph).__name__} {architecture}"
        if name not in traced:
            traced[name] = trace(graph, signature, n_attention)
        return with_weights(traced[name], graph)

    monkeypatch.setattr(export.tracing, "trace", trace_once)
    write(checkpoint, loaded, "int8", tmp_path)
    shipped = ROOT / "artifacts" / checkpoint.name
    assert sorted(path.name for path in shipped.iterdir()) == sorted(path.name for path in tmp_path.iterdir())
    for path in tmp_path.iterdir():
        same = path.read_bytes() == (shipped / path.name).read_bytes()
        assert same, f"{shipped / path.name} is stale: python -m export {checkpoint} {shipped}"


@pytest.fixture(scope="module")
def traced() -> dict[str, ir.Model]:
    """Graphs by their architecture: models of the same one differ in their weights alone, and tracing takes long."""
    return {}


def with_weights(model: ir.Model, graph: nn.Module) -> ir.Model:
    """A copy of a traced model with the weights of another graph."""
    copy = model.clone()
    tensors = dict(graph.named_parameters()) | dict(graph.named_buffers())
    for name in copy.graph.initializers.keys() & tensors.keys():
        array = tensors[name].detach().numpy()
        of_product = isinstance(graph.get_submodule(name.rpartition(".")[0]), nn.Linear)
        tensor = ir.tensor(array.T if of_product else array, name=name)
        copy.graph.initializers[name].const_value = tensor
    return copy
