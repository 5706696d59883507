"""What the repository ships is what its own export makes of its own checkpoints."""

from pathlib import Path

import pytest

from export.artifact import write
from model.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]
CHECKPOINTS = [ROOT / "checkpoints" / path.parent.name for path in sorted(ROOT.glob("artifacts/*/manifest.json"))]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda path: path.name)
def test_a_shipped_artifact_is_what_export_makes_of_its_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    write(checkpoint, load_checkpoint(checkpoint), "int8", tmp_path)
    shipped = ROOT / "artifacts" / checkpoint.name
    assert sorted(path.name for path in shipped.iterdir()) == sorted(path.name for path in tmp_path.iterdir())
    for path in tmp_path.iterdir():
        same = path.read_bytes() == (shipped / path.name).read_bytes()
        assert same, f"{shipped / path.name} is stale: python -m export {checkpoint} {shipped}"
