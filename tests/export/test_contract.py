"""The two ends of the artifact directory: what `export` writes, `service` reads, and refuses when it was touched."""

import json
import shutil
from pathlib import Path

import pytest

from export.manifest import Precision, read_manifest
from service.artifact import read_artifact
from service.errors import ArtifactRefused
from tests.export.tiny_checkpoints import Kind, MakeArtifact


@pytest.mark.parametrize(
    ("kind", "precision"), [("translation", "int8"), ("translation", "fp16"), ("mean_classifier", "int8")]
)
def test_the_service_reads_what_was_written(artifact: MakeArtifact, kind: Kind, precision: Precision) -> None:
    directory = artifact(kind, precision)
    written = read_manifest(directory).model_dump(mode="json")
    assert read_artifact(directory).manifest.model_dump(mode="json") == written


@pytest.mark.parametrize("name", ["encoder.onnx", "decoder_step.onnx", "tokenizer.json"])
def test_one_flipped_byte_is_refused(artifact: MakeArtifact, tmp_path: Path, name: str) -> None:
    touched = tmp_path / "touched"
    shutil.copytree(artifact("translation", "int8"), touched)
    content = bytearray((touched / name).read_bytes())
    content[len(content) // 2] ^= 1
    (touched / name).write_bytes(content)
    with pytest.raises(ArtifactRefused, match=name):
        read_artifact(touched)


def test_another_format_version_is_refused(artifact: MakeArtifact, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    shutil.copytree(artifact("translation", "int8"), touched)
    manifest = json.loads((touched / "manifest.json").read_text())
    (touched / "manifest.json").write_text(json.dumps(manifest | {"format_version": 2}))
    with pytest.raises(ArtifactRefused, match="format_version"):
        read_artifact(touched)
