"""A hub on this machine, as huggingface_hub asks one."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from urllib.parse import urlsplit

import huggingface_hub
import pytest

COMMIT = "c0ffee" * 6 + "c0ff"
MODEL = re.compile(r"/api/models/([^/]+/[^/]+)|/([^/]+/[^/]+)/resolve/[^/]+/(.+)")
"""The paths of a model, and of one of its files."""


class Hub(ThreadingHTTPServer):
    """A hub whose models are the folders OWNER/NAME of a directory.

    Attributes:
        fetched: names of files that were asked for.
        ranges: what of them was asked for, where it was not all.
        error: code of the error that each request gets.
        cuts: numbers of bytes after which a file's connection breaks, once, by the file's name.
        wrong: names of files for which the hub tells the sum of others.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory, self.fetched, self.error, self.tokens = directory, list[str](), "", set[str | None]()
        self.ranges, self.cuts, self.wrong, self.asked = list[str](), dict[str, int](), set[str](), 0
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        """Answer a request, which may be for another host if this is a proxy."""
        hub, path = self.server, urlsplit(self.path).path
        hub.asked += 1
        matched = MODEL.match(path)
        model, name = (matched[1] or matched[2], matched[3]) if matched else ("", None)
        if model:
            hub.tokens.add(self.headers.get("Authorization"))
        folder = hub.directory / model
        if hub.error or not model or not folder.is_dir():
            self.answer(401, b"{}", {"X-Error-Code": hub.error or "RepoNotFound"})
        elif name is None:
            paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            listed = [self.listed(path, path.relative_to(folder).as_posix()) for path in paths]
            about = {"id": model, "sha": COMMIT, "cardData": {"license": "cc-by-4.0"}, "siblings": listed}
            self.answer(200, json.dumps(about).encode())
        elif (folder / name).is_file():
            if self.command == "GET":
                hub.fetched.append(name)
            self.answer(200, (folder / name).read_bytes(), {"ETag": f'"{model}/{name}"', "X-Repo-Commit": COMMIT}, name)
        else:
            self.answer(404, b"{}")

    do_HEAD = do_GET  # noqa: N815

    def listed(self, path: Path, name: str) -> Mapping[str, object]:
        content = b"another" if name in self.server.wrong else path.read_bytes()
        listed: dict[str, object] = {"rfilename": name, "size": path.stat().st_size}
        if name.endswith((".safetensors", ".bin")):
            listed["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return listed | {"blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}

    def answer(
        self, status: int, content: bytes, headers: Mapping[str, str] = MappingProxyType({}), name: str = ""
    ) -> None:
        hub, length = self.server, len(content)
        if asked := self.headers.get("Range"):
            hub.ranges.append(asked)
            content = content[int(asked.removeprefix("bytes=").rstrip("-")) :]
            headers = {**headers, "Content-Range": f"bytes {length - len(content)}-{length - 1}/{length}"}
            status = 206
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[: hub.cuts.pop(name, len(content))])

    def log_message(self, *_: object) -> None:
        pass


def at_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what HF_ENDPOINT does when the library is imported."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@contextmanager
def running_hub(directory: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the models of a directory, which this process asks."""
    with Hub(directory) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        at_address(server.url, monkeypatch)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server
        server.shutdown()
