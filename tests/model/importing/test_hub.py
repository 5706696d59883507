"""A hub gives the files of a model, and no others; what it refuses is a sentence."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from model.importing.families import import_model
from model.importing.hub import fetch, wanted_files
from model.importing.imported import ModelImportError, NotOnHubError, Options
from tests.model.importing.encoder_checkpoints import write_encoder
from tests.model.importing.local_hub import COMMIT, Hub, at_address, running_hub

WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    write_encoder(tmp_path / "served/owner/name", "bert", "ForSequenceClassification")
    with running_hub(tmp_path / "served", tmp_path / "cache", monkeypatch) as server:
        yield server


@pytest.fixture
def model(hub: Hub) -> Path:
    """The folder of the model on the hub."""
    return hub.directory / "owner/name"


def test_a_model_of_a_hub_is_the_one_of_its_files(
    hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    for name in ("pytorch_model.bin", "model.onnx", "tf_model.h5"):
        (model / name).write_bytes(b"another format")
    imported = import_model("owner/name", tmp_path / "c", Options())
    provenance = imported.config.provenance
    assert provenance is not None
    assert (imported.config.name, provenance.source, provenance.revision) == ("name", "owner/name", COMMIT)
    assert sorted(hub.fetched) == ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]
    assert hub.tokens == {"Bearer hf_mine"}
    import_model("owner/name", tmp_path / "c", Options())
    assert len(hub.fetched) == 4, "files are kept"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("GatedRepo", "owner/name is gated: ask for access at {url}/owner/name, and set `HF_TOKEN` to a token"),
        ("RepoNotFound", "{url} has no owner/name, or it is private: set `HF_TOKEN` to a token that may read it"),
        ("RevisionNotFound", "{url}/owner/name has no revision v9"),
        ("Other", "{url} refuses the token in `HF_TOKEN`: "),
    ],
)
def test_what_a_hub_refuses_is_told(hub: Hub, tmp_path: Path, error: str, sentence: str) -> None:
    hub.error = error
    with pytest.raises(ModelImportError) as told:
        import_model("owner/name", tmp_path / "c", Options(), "v9")
    assert str(told.value).startswith(sentence.format(url=hub.url))


def test_a_model_that_is_not_there_is_told_apart(hub: Hub) -> None:
    with pytest.raises(NotOnHubError):
        fetch("owner/other", None)


def test_a_download_goes_on_where_its_connection_broke(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    hub.cuts[WEIGHTS] = 5000
    directory, _ = fetch("owner/name", None)
    assert hub.ranges == ["bytes=5000-"]
    assert (directory / WEIGHTS).read_bytes() == (model / WEIGHTS).read_bytes()


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_with_another_sum_is_refused_and_fetched_anew(hub: Hub, model: Path, name: str) -> None:
    hub.wrong.add(name)
    with pytest.raises(ModelImportError, match=f"owner/name/{name} was damaged on its way: its sum is [0-9a-f]+, and"):
        fetch("owner/name", None)
    hub.wrong.clear()
    hub.fetched.clear()
    directory, _ = fetch("owner/name", None)
    assert hub.fetched == [name]
    assert (directory / name).read_bytes() == (model / name).read_bytes()


def test_a_hub_that_cannot_be_reached_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no route to host\nmore")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    with pytest.raises(ModelImportError, match=r"^https?://\S+ cannot be reached: no route to host$"):
        import_model("owner/name", tmp_path / "c", Options())


def test_a_hub_may_be_behind_a_proxy(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTP_PROXY", hub.url)
    at_address("http://only.the.proxy.knows.invalid", monkeypatch)
    huggingface_hub.close_session()  # it would be without a proxy
    directory, commit = fetch("owner/name", None)
    huggingface_hub.close_session()
    assert commit == COMMIT
    assert (directory / "config.json").is_file()


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["config.json", "model.safetensors", "pytorch_model.bin"], ["config.json", "model.safetensors"]),
        (["pytorch_model.bin", "flax_model.msgpack", "rust_model.ot"], ["pytorch_model.bin"]),
        (
            ["model.safetensors.index.json", "model-00001-of-00002.safetensors", "pytorch_model.bin.index.json"],
            ["model-00001-of-00002.safetensors", "model.safetensors.index.json"],
        ),
        (
            ["1_Pooling/config.json", "2_Dense/pytorch_model.bin"],
            ["1_Pooling/config.json", "2_Dense/pytorch_model.bin"],
        ),
        (["onnx/config.json", "checkpoint-500/model.safetensors", "openvino/a.json", "adapter.safetensors"], []),
        (["README.md", "source.spm", "spiece.model", "vocab.txt"], None),
        ([".gitattributes", "a.py", "LICENSE"], []),
    ],
)
def test_files_of_other_formats_are_left_out(names: list[str], wanted: list[str] | None) -> None:
    assert wanted_files(names) == (names if wanted is None else wanted)
