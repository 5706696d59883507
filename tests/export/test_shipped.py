"""The shipped artifacts are what export makes of them."""

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from export.artifact import write
from export.slots import find_slots
from export.tracing import trace_decoder_step
from manifest.file import read_manifest, write_manifest
from model.checkpoint import load_checkpoint
from model.networks.transformer import Transformer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ARTIFACTS = [path.parent for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]
TRACED = "translate-en-fr"
LIKE_TRACED = [path.name for path in ARTIFACTS if path.name.startswith("translate-") and path.name != TRACED]
"""Artifacts whose graphs differ only in vocabulary sizes; tracing, which takes seconds, is skipped for them."""
DECODERS_OF_THEIR_OWN = ["translate-ja-en"]
"""Exceptions: decoders whose projection is their embedding."""


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_it(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped_manifest = read_manifest(artifact)
    # Slots are found by running the model on thousands of sentences; a test below does so for one model.
    monkeypatch.setattr("export.artifact.find_slots", lambda *_given: shipped_manifest.slots)
    if artifact.name in LIKE_TRACED:
        graphs = iter([graphs_of(artifact, provider) for provider in ("cpu", "cuda")])

        def trace_what_is_unlike(model: Transformer) -> dict[str, ir.Model]:
            own = artifact.name in DECODERS_OF_THEIR_OWN
            return next(graphs) | ({"decoder_step.onnx": trace_decoder_step(model)} if own else {})

        monkeypatch.setattr("export.artifact.trace_all", trace_what_is_unlike)
    write(artifact, load_checkpoint(artifact), shipped_manifest.precision, tmp_path)
    written = read_manifest(tmp_path)
    # How near it is to the checkpoint in floats was measured when that was exported.
    write_manifest(written.model_copy(update={"nearness": shipped_manifest.nearness}), tmp_path)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = artifact / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), f"{shipped} is stale: python -m export {artifact} {artifact}"


@pytest.mark.parametrize("name", LIKE_TRACED)
@pytest.mark.parametrize("provider", ["cpu", "cuda"])
def test_shipped_graphs_that_are_not_traced_are_like_one_that_is(name: str, provider: str) -> None:
    graphs, traced = (graphs_of(ROOT / "artifacts" / one, provider) for one in (name, TRACED))
    assert graphs.keys() == traced.keys()
    for file, graph in graphs.items():
        own = file == "decoder_step.onnx" and name in DECODERS_OF_THEIR_OWN
        assert (without_sizes(graph) == without_sizes(traced[file])) is not own, file


def graphs_of(artifact: Path, provider: str) -> dict[str, ir.Model]:
    paths = sorted((artifact / provider).glob("*.onnx"))
    return {path.name: ir.from_proto(onnx.load(path, load_external_data=False)) for path in paths}


def without_sizes(model: ir.Model) -> bytes:
    graph = ir.to_proto(model).graph
    for tensor in graph.initializer:
        for field in ("dims", "external_data", "raw_data"):
            tensor.ClearField(field)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            size.ClearField("dim_value")
    return graph.SerializeToString(deterministic=True)


def test_the_words_that_a_shipped_model_carries_are_found_again() -> None:
    artifact = ROOT / "artifacts" / "translate-en-fr"
    manifest = read_manifest(artifact)
    found, expected = set(find_slots(artifact, manifest, load_checkpoint(artifact))), set(manifest.slots)
    assert expected
    # Other processors compute other last bits.
    assert len(found & expected) >= 0.7 * len(expected)
