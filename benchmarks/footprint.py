"""Cost of serving many models: `python -m benchmarks footprint`.

A service of all artifacts is started, each model gets one request of each kind, and languages are detected. The results
are the seconds from `python -m service` until it is ready, its processes, and its memory: proportional set size, which
divides shared pages among processes.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.memory import footprint

TEXTS = {
    "en": "The old house on the hill is wonderful, and its garden has many trees.",
    "fr": "La vieille maison sur la colline est merveilleuse, et son jardin a beaucoup d'arbres.",
    "de": "Das alte Haus auf dem Hügel ist wunderbar, und sein Garten hat viele Bäume.",
    "ru": "Старый дом на холме прекрасен, и в его саду много деревьев.",
    "ja": "丘の上の古い家はすばらしく、庭にはたくさんの木があります。",
}
START_S = 120.0


def measure(artifacts: Path, **environment: str) -> dict[str, float]:
    """Return the seconds until ready, and processes and MB of memory before and after the requests."""
    with started(artifacts, **environment) as (client, process_id, ready_s):
        figures = {"ready_s": ready_s}
        figures |= {f"idle_{name}": value for name, value in footprint(process_id).items()}
        for model in client.get("/models").json()["models"]:
            _ask_for_everything(client, model)
        _ask_for_languages(client)
        return figures | {f"used_{name}": value for name, value in footprint(process_id).items()}


@contextmanager
def started(artifacts: Path, **environment: str) -> Iterator[tuple[httpx.Client, int, float]]:
    """Yield a client of a service that is ready, the id of its process, and the seconds that the start took."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    variables = {**os.environ, "ATTEND_ARTIFACTS": str(artifacts), "ATTEND_PORT": str(port), **environment}
    variables |= {"ATTEND_LOG_LEVEL": "error", "ATTEND_CACHE": "0"}  # texts repeat
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "service"], env=variables) as service:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=START_S) as client:
                _wait_until_ready(client, service)
                yield client, service.pid, time.monotonic() - began
        finally:
            service.terminate()


def _wait_until_ready(client: httpx.Client, service: "subprocess.Popen[bytes]") -> None:
    ends_at = time.monotonic() + START_S
    while True:
        if service.poll() is not None or time.monotonic() > ends_at:
            raise RuntimeError("the service did not start")
        try:
            if client.get("/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)


def _ask_for_everything(client: httpx.Client, model: dict[str, Any]) -> None:
    name = model["name"]
    languages = model["sources"]
    text = TEXTS.get(languages[0], TEXTS["en"]) if languages else TEXTS["en"]
    texts = [text, f"{text} " * 6]
    bodies: list[tuple[str, dict[str, Any]]]
    if model["task"] == "translation":
        bodies = [
            ("/translate", {"beam_size": 1}),
            ("/translate", {"beam_size": 4, "alternatives": 3}),
            ("/translate", {"alignment": True, "attention": {"heads": "mean"}}),
        ]
    else:
        bodies = [("/classify", {"evidence": True}), ("/classify", {"attention": {"heads": "mean"}})]
    for path, options in [*bodies, ("/embed", {}), ("/embed", {"pooling": "none"})]:
        client.post(path, json={"text": texts, "model": name, **options}).raise_for_status()


def _ask_for_languages(client: httpx.Client) -> None:
    client.post("/detect", json={"text": [*TEXTS.values()]}).raise_for_status()
