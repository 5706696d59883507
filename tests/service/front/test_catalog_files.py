import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from service.base.artifact import read_artifacts
from service.front.catalog import Watch

WEIGHTS = Path("tiny-en-fr/weights.safetensors")


@pytest.fixture
def root(artifacts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(artifacts, tmp_path / "artifacts"))


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"others")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"x" * path.stat().st_size)
    shutil.copystat(path, other)
    other.rename(path)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("change", [overwrite, replace, empty, Path.unlink])
@pytest.mark.parametrize("file", ["weights.safetensors", "manifest.json", "cpu/encoder.onnx"])
def test_a_file_that_is_not_what_was_read_is_noticed_and_forgotten_when_it_is_put_back(
    root: Path, change: Callable[[Path], None], file: str
) -> None:
    path = root / "tiny-en-fr" / file
    content = path.read_bytes()
    watch = Watch(read_artifacts(root))
    assert watch.changed() == {}
    change(path)
    assert watch.changed() == watch.changed() == {"tiny-en-fr": [file]}
    path.write_bytes(content)
    assert watch.changed() == {}


def test_a_file_that_was_written_anew_with_the_same_content_has_not_changed(root: Path) -> None:
    watch = Watch(read_artifacts(root))
    os.utime(root / WEIGHTS, ns=(1, 1))
    assert watch.changed() == {}


def test_a_file_that_nobody_touched_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(read_artifacts(root))
    monkeypatch.setattr("service.base.artifact.sum_of", lambda path: pytest.fail(f"{path} is read"))
    assert watch.changed() == {}


def test_a_change_while_models_load_is_noticed(root: Path) -> None:
    artifacts = read_artifacts(root)
    overwrite(root / WEIGHTS)
    assert Watch(artifacts).changed() == {"tiny-en-fr": [WEIGHTS.name]}
