"""What the repository ships is what its own export makes of it."""

from pathlib import Path

import pytest

from export.artifact import write
from export.manifest import read_manifest
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
ARTIFACTS = [path.parent for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_it(artifact: Path, tmp_path: Path) -> None:
    write(artifact, load_checkpoint(artifact), read_manifest(artifact).precision, tmp_path)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = artifact / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), f"{shipped} is stale: python -m export {artifact} {artifact}"
