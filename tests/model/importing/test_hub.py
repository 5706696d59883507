"""A hub gives the files of a model, and no others; what it refuses is a sentence."""

import json
import os
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import huggingface_hub
import pytest

from model.importing.families import import_model
from model.importing.hub import fetch, wanted_files
from model.importing.imported import ModelImportError, Options
from tests.model.importing.encoder_checkpoints import write_encoder

COMMIT = "c0ffee" * 6 + "c0ff"


class Hub(ThreadingHTTPServer):
    """A hub with one model, owner/name, whose files are in a directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory, self.fetched, self.error, self.tokens = directory, list[str](), "", set[str | None]()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        """Answer a request, which may be for another host if this is a proxy."""
        hub, path = self.server, urlsplit(self.path).path
        if "owner/name" in path:
            hub.tokens.add(self.headers.get("Authorization"))
        files = {one.relative_to(hub.directory).as_posix(): one for one in hub.directory.rglob("*") if one.is_file()}
        name = path.removeprefix(f"/owner/name/resolve/{COMMIT}/")
        if hub.error:
            self.answer(401, b"{}", {"X-Error-Code": hub.error})
        elif path.startswith("/api/models/owner/name"):
            listed = [{"rfilename": name, "size": file.stat().st_size} for name, file in files.items()]
            self.answer(200, json.dumps({"id": "owner/name", "sha": COMMIT, "siblings": listed}).encode())
        elif name in files:
            if self.command == "GET":
                hub.fetched.append(name)
            self.answer(200, files[name].read_bytes(), {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT})
        else:
            self.answer(404, b"{}", {})

    do_HEAD = do_GET  # noqa: N815

    def answer(self, status: int, content: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def at_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what HF_ENDPOINT does when the library is imported."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    write_encoder(tmp_path / "served", "bert", "ForSequenceClassification")
    with Hub(tmp_path / "served") as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        at_address(server.url, monkeypatch)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server
        server.shutdown()


def test_a_model_of_a_hub_is_the_one_of_its_files(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    for name in ("pytorch_model.bin", "model.onnx", "tf_model.h5"):
        (hub.directory / name).write_bytes(b"another format")
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
