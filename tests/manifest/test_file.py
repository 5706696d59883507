"""manifest.json is written as it is read."""

from pathlib import Path

import pytest

from manifest.file import read_manifest, write_manifest
from manifest.layout import MANIFEST
from tests.running_service import ROOT


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "artifacts").glob(f"*/{MANIFEST}")))
def test_a_shipped_manifest_is_written_as_it_was_read(tmp_path: Path, name: str) -> None:
    write_manifest(read_manifest(ROOT / "artifacts" / name), tmp_path)
    assert (tmp_path / MANIFEST).read_bytes() == (ROOT / "artifacts" / name / MANIFEST).read_bytes()
