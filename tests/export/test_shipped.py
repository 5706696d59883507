"""What the repository ships is what its own export makes of it."""

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from export.artifact import write
from export.manifest import read_manifest
from export.slots import find_slots
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
ARTIFACTS = [path.parent for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]
LIKE = {
    f"translate-{direction}": "translate-en-fr" for direction in ("de-en", "en-de", "en-ja", "en-ru", "fr-en", "ru-en")
}
"""Those whose graphs have the same nodes as another one's: only the sizes of their vocabularies differ."""


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_it(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped_manifest = read_manifest(artifact)
    # Slots are found by running the model on thousands of sentences: of one model, below.
    monkeypatch.setattr("export.artifact.find_slots", lambda *_given: shipped_manifest.slots)
    if artifact.name in LIKE:  # tracing takes seconds
        graphs = iter([graphs_of(artifact, provider) for provider in ("cpu", "cuda")])
        monkeypatch.setattr("export.artifact.trace_all", lambda _model: next(graphs))
    write(artifact, load_checkpoint(artifact), shipped_manifest.precision, tmp_path)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = artifact / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), f"{shipped} is stale: python -m export {artifact} {artifact}"


@pytest.mark.parametrize(("name", "other"), LIKE.items())
def test_shipped_graphs_that_differ_in_sizes_alone_have_the_same_nodes(name: str, other: str) -> None:
    for provider in ("cpu", "cuda"):
        graphs, others = (graphs_of(ROOT / "artifacts" / one, provider) for one in (name, other))
        assert {file: nodes_of(graph) for file, graph in graphs.items()} == {
            file: nodes_of(graph) for file, graph in others.items()
        }


def graphs_of(artifact: Path, provider: str) -> dict[str, ir.Model]:
    return {
        path.name: ir.from_proto(onnx.load(path, load_external_data=False))
        for path in sorted((artifact / provider).glob("*.onnx"))
    }


def nodes_of(model: ir.Model) -> list[bytes]:
    return [node.SerializeToString(deterministic=True) for node in ir.to_proto(model).graph.node]


def test_the_words_that_a_shipped_model_carries_are_found_again() -> None:
    artifact = ROOT / "artifacts" / "translate-en-fr"
    manifest = read_manifest(artifact)
    found, expected = set(find_slots(artifact, manifest, load_checkpoint(artifact))), set(manifest.slots)
    assert expected
    # The last bits of what a model computes are other ones on other processors.
    assert len(found & expected) >= 0.7 * len(expected)
