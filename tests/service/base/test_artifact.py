import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.base.artifact import read_artifact, read_artifacts
from service.base.errors import ArtifactRefused
from tests.service.tiny_artifacts import TinyTranslator, V
from tests.service.tiny_classifier import TinyClassifier


@pytest.fixture
def artifact(tmp_path: Path, tiny_translator: TinyTranslator) -> Path:
    return tiny_translator.save(tmp_path / "tiny-en-fr")


def edit(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def refusal(directory: Path) -> str:
    with pytest.raises(ArtifactRefused) as refused:
        read_artifact(directory)
    return str(refused.value).removeprefix(str(directory) + "/")


def test_a_good_artifact_is_read(artifact: Path) -> None:
    manifest = read_artifact(artifact).manifest
    assert manifest.name == "tiny-en-fr"
    assert manifest.targets[0].code == "fr"
    assert read_artifact(artifact).path("cpu/encoder.onnx").is_file()


@pytest.mark.parametrize("file", ["cpu/encoder.onnx", "cpu/decoder_step.onnx", "weights.safetensors", "tokenizer.json"])
def test_one_flipped_bit_in_any_file_is_refused(artifact: Path, file: str) -> None:
    content = bytearray((artifact / file).read_bytes())
    content[len(content) // 2] ^= 1
    (artifact / file).write_bytes(content)
    assert refusal(artifact).startswith(f"{file}: sha256 is ")


@pytest.mark.parametrize("file", ["cpu/encoder.onnx", "weights.safetensors"])
def test_a_shortened_file_is_refused_with_both_sizes(artifact: Path, file: str) -> None:
    size = (artifact / file).stat().st_size
    (artifact / file).write_bytes(b"short")
    assert "(5 bytes)" in refusal(artifact)
    assert f"({size} bytes)" in refusal(artifact)


@pytest.mark.parametrize("file", ["cpu/encoder.onnx", "weights.safetensors"])
def test_a_missing_file_is_refused(artifact: Path, file: str) -> None:
    (artifact / file).unlink()
    assert refusal(artifact) == f"{file}: is missing"


def test_a_file_that_cannot_be_read_is_refused(artifact: Path) -> None:
    (artifact / "tokenizer.json").unlink()
    (artifact / "tokenizer.json").mkdir()
    assert refusal(artifact).startswith("tokenizer.json: cannot be read: ")


def test_files_that_the_manifest_does_not_name_are_left_alone(artifact: Path) -> None:
    for name in (".DS_Store", "README.md", "config.yaml", "cpu/notes.txt", "cuda/encoder.onnx"):
        (artifact / name).parent.mkdir(exist_ok=True)
        (artifact / name).touch()
    assert read_artifact(artifact).manifest.providers == ["cpu"]


def test_files_may_be_links_to_where_their_owner_keeps_them(artifact: Path, tmp_path: Path) -> None:
    (artifact / "weights.safetensors").rename(tmp_path / "blob")
    (artifact / "weights.safetensors").symlink_to(tmp_path / "blob")
    assert read_artifact(artifact).manifest.name == "tiny-en-fr"


@pytest.mark.parametrize("name", ["../tiny-en-fr/cpu/encoder.onnx", "/etc/hostname", "cpu/../../a", r"..\a", "C:a"])
def test_a_manifest_names_no_file_outside_its_directory(artifact: Path, name: str) -> None:
    edit(artifact, lambda manifest: manifest["files"].update({name: {"sha256": "", "bytes": 0}}))
    assert refusal(artifact) == f"manifest.json: Value error, files.{name} is not in the artifact's directory"


def test_graphs_for_another_provider_come_all_together_or_not_at_all(artifact: Path) -> None:
    def add(manifest: dict[str, Any], *names: str) -> None:
        for name in names:
            manifest["graphs"][f"cuda/{name}"] = manifest["graphs"][f"cpu/{name}"]
            manifest["files"][f"cuda/{name}"] = manifest["files"][f"cpu/{name}"]

    shutil.copytree(artifact / "cpu", artifact / "cuda")
    edit(artifact, lambda manifest: add(manifest, "encoder.onnx", "attention.onnx"))
    missing = "graphs.cuda/decoder_step.onnx, files.cuda/decoder_step.onnx"
    assert refusal(artifact) == f"manifest.json: Value error, translation needs {missing}"
    edit(artifact, lambda manifest: add(manifest, "decoder_step.onnx"))
    assert read_artifact(artifact).manifest.providers == ["cpu", "cuda"]


def test_another_format_version_is_refused_before_anything_else(artifact: Path) -> None:
    edit(artifact, lambda manifest: (manifest.update(format_version=1, new_field=1), manifest.pop("labels")))
    assert refusal(artifact) == "manifest.json: format_version is 1, this version of attend reads 9"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(surprise=1), "surprise: Extra inputs are not permitted"),
        (lambda m: m.pop("limits"), "limits: Field required"),
        (lambda m: m["dimensions"].update(n_heads="3"), "dimensions.n_heads: Input should be a valid integer"),
        (lambda m: m.update(task="speech"), "task: Input should be 'translation', 'classification' or 'embedding'"),
        (lambda m: m["decoding"].update(beam_size=9), "decoding.beam_size: Input should be less than or equal to 8"),
        (
            lambda m: m["decoding"].update(length_penalty=float("nan")),
            "decoding.length_penalty: Input should be a finite number",
        ),
        (
            lambda m: m["special_tokens"].update(pad=-1),
            "special_tokens.pad: Input should be greater than or equal to 0",
        ),
        (
            lambda m: m["special_tokens"].update(eos=m["dimensions"]["vocab_size"]),
            f"Value error, special_tokens.eos is {V}, the vocabulary has {V} tokens",
        ),
        (lambda m: m.update(sources=[]), "Value error, translation needs sources"),
        (
            lambda m: m.update(task="classification"),
            "Value error, classification needs labels, label_activation, pooling, "
            "graphs.cpu/classifier.onnx, files.cpu/classifier.onnx",
        ),
        (lambda m: m["files"].pop("tokenizer.json"), "Value error, translation needs files.tokenizer.json"),
        (lambda m: m["files"].pop("weights.safetensors"), "Value error, translation needs files.weights.safetensors"),
        (lambda m: m["graphs"].pop("cpu/encoder.onnx"), "Value error, translation needs graphs.cpu/encoder.onnx"),
        (
            lambda m: m["graphs"]["cpu/encoder.onnx"].update(bfloat16=["embedding"]),
            "graphs.cpu/encoder.onnx.bfloat16.[key]: Input should be 'bool', 'uint8', 'int8', 'int32', 'int64', "
            "'float16' or 'float32'",
        ),
    ],
)
def test_a_foreign_manifest_is_refused_with_the_field(
    artifact: Path, change: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    edit(artifact, change)
    assert refusal(artifact) == f"manifest.json: {sentence}"


def test_a_manifest_that_is_not_json_is_refused(artifact: Path) -> None:
    (artifact / "manifest.json").write_text("{")
    assert refusal(artifact).startswith("manifest.json: Invalid JSON")


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "manifest.json: does not exist; is this an artifact directory?"


def test_every_artifact_under_the_root_is_read_by_name(artifacts: Path) -> None:
    assert [artifact.manifest.name for artifact in read_artifacts(artifacts)] == ["tiny-en-fr", "tiny-sentiment"]


def test_hidden_directories_and_files_beside_the_artifacts_are_skipped(tmp_path: Path, artifact: Path) -> None:
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / "README.md").touch()
    assert len(read_artifacts(tmp_path)) == 1


def test_two_artifacts_of_one_name_are_refused(tmp_path: Path, artifact: Path, tiny_classifier: TinyClassifier) -> None:
    tiny_classifier.save(tmp_path / "twin", name="tiny-en-fr")
    with pytest.raises(ArtifactRefused, match="are both named tiny-en-fr"):
        read_artifacts(tmp_path)


def test_directories_without_a_manifest_are_passed_over_with_a_warning(
    tmp_path: Path, artifact: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("@eaDir", "__pycache__"):
        (tmp_path / name).mkdir()
    assert len(read_artifacts(tmp_path)) == 1
    assert caplog.messages == [
        f"{tmp_path / name} is skipped: it has no manifest.json" for name in ("@eaDir", "__pycache__")
    ]


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """forbid(path) makes a file, or all that lies in a directory, one that this user may not read; root too."""

    def forbid(path: Path) -> None:
        for name in ("open", "stat", "iterdir"):
            real = getattr(Path, name)

            def checked(self: Path, *args: Any, real: Any = real, name: str = name, **kwargs: Any) -> Any:
                if path in self.parents or (self == path and name != "stat"):
                    raise PermissionError(errno.EACCES, "Permission denied", str(self))
                return real(self, *args, **kwargs)

            monkeypatch.setattr(Path, name, checked)

    return forbid


@pytest.mark.parametrize("file", ["weights.safetensors", "manifest.json"])
def test_a_file_that_this_user_may_not_read_is_refused(
    artifact: Path, forbid: Callable[[Path], None], file: str
) -> None:
    forbid(artifact / file)
    path = artifact / file
    assert refusal(artifact) == f"{file}: cannot be read: [Errno 13] Permission denied: '{path}'"


@pytest.mark.parametrize("place", [".", "tiny-en-fr"])
def test_a_directory_that_this_user_may_not_read_is_refused(
    tmp_path: Path, artifact: Path, forbid: Callable[[Path], None], place: str
) -> None:
    forbid(tmp_path / place)
    with pytest.raises(ArtifactRefused, match=f"^{tmp_path / place}.*: cannot be read: .*Permission denied"):
        read_artifacts(tmp_path)


def test_a_folder_of_lost_files_of_ext4_is_not_read(
    tmp_path: Path, artifact: Path, forbid: Callable[[Path], None]
) -> None:
    (tmp_path / "lost+found").mkdir()
    forbid(tmp_path / "lost+found")
    assert len(read_artifacts(tmp_path)) == 1


def test_an_artifact_instead_of_the_folder_it_lies_in_is_refused(artifact: Path) -> None:
    with pytest.raises(ArtifactRefused, match=f"^{artifact}: .*ATTEND_ARTIFACTS"):
        read_artifacts(artifact)


@pytest.mark.parametrize(("make", "sentence"), [(False, "does not exist"), (True, "no artifact directory")])
def test_a_root_without_artifacts_is_refused(tmp_path: Path, make: bool, sentence: str) -> None:
    root = tmp_path / "artifacts"
    if make:
        (root / "lost+found").mkdir(parents=True)
    with pytest.raises(ArtifactRefused, match=sentence):
        read_artifacts(root)
