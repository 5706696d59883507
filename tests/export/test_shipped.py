"""What the repository ships is what its own export makes of it."""

from pathlib import Path

import pytest

from export.artifact import write
from export.manifest import read_manifest, write_manifest
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
ARTIFACTS = [path.parent for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_it(artifact: Path, tmp_path: Path) -> None:
    shipped_manifest = read_manifest(artifact)
    made = write(artifact, load_checkpoint(artifact), shipped_manifest.precision, tmp_path)
    found, expected = set(made.slots), set(shipped_manifest.slots)
    assert len(found & expected) >= 0.7 * len(expected), "the words that a model carries"
    # They are found by running the model, and the last bits of that are other ones on other processors.
    write_manifest(made.model_copy(update={"slots": shipped_manifest.slots}), tmp_path)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = artifact / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), f"{shipped} is stale: python -m export {artifact} {artifact}"
