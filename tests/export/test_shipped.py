"""What the repository ships is what its own export makes of it."""

from pathlib import Path

import pytest

from export.artifact import write
from export.manifest import read_manifest
from export.slots import find_slots
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
ARTIFACTS = [path.parent for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_it(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped_manifest = read_manifest(artifact)
    # Slots are found by running the model on thousands of sentences: of one model, below.
    monkeypatch.setattr("export.artifact.find_slots", lambda *_given: shipped_manifest.slots)
    write(artifact, load_checkpoint(artifact), shipped_manifest.precision, tmp_path)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = artifact / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), f"{shipped} is stale: python -m export {artifact} {artifact}"


def test_the_words_that_a_shipped_model_carries_are_found_again() -> None:
    artifact = ROOT / "artifacts" / "translate-en-fr"
    manifest = read_manifest(artifact)
    found, expected = set(find_slots(artifact, manifest, load_checkpoint(artifact))), set(manifest.slots)
    assert expected
    # The last bits of what a model computes are other ones on other processors.
    assert len(found & expected) >= 0.7 * len(expected)
