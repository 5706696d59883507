"""Servers that are compared over HTTP, each as a real process on a free port."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.models import SHIPPED, BenchmarkModel
from benchmarks.peers import libretranslate_server
from benchmarks.workspace import ROOT, workspace
from service.base.cores import usable_cores

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0


class ServerError(RuntimeError):
    """A server did not start, or answered with an error."""


@dataclass(frozen=True)
class Variant:
    """A server with candidate settings.

    Args:
        command: returns the command that starts it on a port.
        health: path that answers 200 once the server is ready.
        body: returns the JSON to translate one text or several.
        texts: returns the translations in an answer to several.
        max_connections: most connections that it keeps open.
        directory: its working directory.
    """

    server: str
    label: str
    command: Callable[[int], list[str]]
    environment: Mapping[str, str]
    health: str
    body: Callable[[str | list[str]], dict[str, Any]]
    texts: Callable[[dict[str, Any]], list[str]]
    max_connections: int = 512
    directory: Path = ROOT


def variants(server: str, beam_size: int) -> list[Variant]:
    """Return the settings in which the best of a server is searched; all use this beam."""
    return {"attend": _attend, "fastapi": _fastapi, "libretranslate": _libretranslate}[server](beam_size)


def _attend(beam_size: int) -> list[Variant]:
    environment = {
        **os.environ,
        "ATTEND_ARTIFACTS": str(BenchmarkModel(SHIPPED).artifacts("int8")),
        "ATTEND_PROVIDER": "cpu",
        "ATTEND_CACHE": "0",  # sentences repeat
        "ATTEND_LOG_LEVEL": "warning",
    }

    def command(port: int) -> list[str]:
        return ["env", f"ATTEND_PORT={port}", sys.executable, "-m", "service"]

    return [Variant("attend", "defaults", command, environment, "/health/ready", *_our_format(beam_size))]


def _fastapi(beam_size: int) -> list[Variant]:
    model = BenchmarkModel(SHIPPED)
    files = ["--model", str(model.ctranslate2("int8")), "--tokenizer", str(model.checkpoint() / "tokenizer.json")]

    def variant(delay_ms: int, max_batch: int) -> Variant:
        settings = json.dumps({"workers": usable_cores(), "max_batch": max_batch, "delay_s": delay_ms / 1000})

        def command(port: int) -> list[str]:
            program = [sys.executable, "-m", "benchmarks.peers.fastapi_ctranslate2", "--port", str(port)]
            return [*program, *files, "--settings", settings]

        label = f"{usable_cores()} workers, batches of {max_batch}, {delay_ms} ms for company"
        return Variant("fastapi", label, command, os.environ, "/health", *_our_format(beam_size))

    return [variant(0, 32), variant(2, 32), variant(5, 64)]


def _libretranslate(beam_size: int) -> list[Variant]:
    programs = libretranslate_server.install()
    environment = libretranslate_server.environment(BenchmarkModel(SHIPPED).checkpoint())
    environment |= {"ARGOS_BEAM_SIZE": str(beam_size)}
    cores = str(usable_cores())

    def variant(label: str, command: Callable[[int], list[str]], translators: str, max_connections: int) -> Variant:
        return Variant(
            "libretranslate",
            label,
            command,
            {**environment, "ARGOS_INTER_THREADS": translators},
            "/languages",
            lambda text: {"q": text, "source": "en", "target": "fr", "format": "text"},
            lambda answer: list(answer["translatedText"]),
            max_connections,
            directory=workspace("libretranslate-data"),  # it writes where it runs
        )

    def threads(number: int) -> Variant:
        def command(port: int) -> list[str]:
            program = str(programs / "libretranslate")
            return [program, "--host", "127.0.0.1", "--port", str(port), "--threads", str(number)]

        label = f"one process of {number} threads, {cores} translators"
        return variant(label, command, cores, max_connections=96)  # its web server keeps 100

    def gunicorn(port: int) -> list[str]:
        where = ["--bind", f"127.0.0.1:{port}", "--chdir", str(Path(libretranslate_server.__file__).parent)]
        size = ["--workers", cores, "--threads", "4", "--keep-alive", "60"]
        return [str(programs / "gunicorn"), *where, *size, "libretranslate_wsgi:app"]

    label = f"gunicorn, {cores} processes of 4 threads, a translator each"
    return [threads(4), threads(8), variant(label, gunicorn, "1", max_connections=512)]


class Server:
    """A running variant; leaving the context stops it."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self._port = _free_port()
        self._log = (workspace("logs") / f"{variant.server}.log").open("wb")
        self._process = subprocess.Popen(
            variant.command(self._port),
            env=dict(variant.environment),
            cwd=variant.directory,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/translate"

    @property
    def process_id(self) -> int:
        return self._process.pid

    def translate(self, texts: list[str]) -> list[str]:
        """Translate texts in one request. Raises ServerError: the answer was not 200."""
        body = json.dumps(self.variant.body(texts)).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=START_TIMEOUT_S) as response:
                return self.variant.texts(json.load(response))
        except urllib.error.HTTPError as error:
            raise ServerError(f"{self.variant.server} answered {error.code}: {error.read()[:500]!r}") from error

    def bodies(self, requests: Sequence[str | list[str]]) -> Path:
        """Write a file with the body of each request, one per line."""
        return bodies_of(self.variant, requests)

    def __enter__(self) -> Self:
        ends_at = time.monotonic() + START_TIMEOUT_S
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > ends_at:
                self.__exit__(None, None, None)
                raise ServerError(f"{self.variant.server} did not start; see {self._log.name}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _is_up(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self._port}{self.variant.health}"
            with urllib.request.urlopen(url, timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def bodies_of(variant: Variant, requests: Sequence[str | list[str]]) -> Path:
    """Write a file with the body of each request, one per line, in the format of a variant."""
    path = workspace("bodies") / f"{variant.server}.jsonl"
    path.write_text("\n".join(json.dumps(variant.body(request)) for request in requests) + "\n")
    return path


def _our_format(beam_size: int) -> tuple[Callable[[str | list[str]], dict[str, Any]], Callable[[Any], list[str]]]:
    def body(text: str | list[str]) -> dict[str, Any]:
        return {"text": text, "beam_size": beam_size}

    def texts(answer: dict[str, Any]) -> list[str]:
        return [translation["text"] for translation in answer["translations"]]

    return body, texts


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
