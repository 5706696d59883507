"""Measures the service over HTTP with clients on the same machine, where wrk cannot be installed without network."""

import http.client
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from benchmarks.gpu.inputs import CLASSIFIER, ProviderName, artifacts, read_inputs, say
from benchmarks.models import SHIPPED
from benchmarks.servers import Server, Variant

TRANSLATION = "Where is the station?"
REVIEW = "Dull, slow and far too long."
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("/translate", {"text": [TRANSLATION, "Hello."], "target": "fr", "alternatives": 1}),
    ("/translate", {"text": "The <b>red car</b> is old.", "target": "fr", "format": "html"}),
    ("/translate", {"text": TRANSLATION, "target": "fr", "alignment": True, "attention": True}),
    ("/classify", {"text": REVIEW, "attention": True}),
    ("/classify", {"text": REVIEW, "evidence": True}),
    ("/embed", {"text": TRANSLATION, "model": SHIPPED}),
]
LOADS = ((1, 1), (64, 1), (16, 32))
"""Connections, and texts per request."""
PROCESSES = 8


def measure(provider: ProviderName, seconds: float, servers: int | None) -> None:
    """Print whether every route answers, and how many texts per second the service translates under some loads.

    Args:
        servers: number of server processes; None for the default.
    """
    texts = read_inputs().texts
    start = time.monotonic()
    with serving(provider, servers) as server:
        say(part="http", servers=servers, ready_s=round(time.monotonic() - start, 1))
        for path, asked in QUESTIONS:
            status, said, took_s = ask(http.client.HTTPConnection(server.address), path, asked)
            answer = said[:200].decode(errors="replace")
            say(part="http", path=path, status=status, ms=round(1000 * took_s, 1), answer=answer)
        for connections, size in LOADS:
            latencies = _load(server.address, texts, connections, size, seconds)
            say(part="http", servers=servers, connections=connections, texts=size, **latencies)


def serving(provider: ProviderName, servers: int | None = None) -> Server:
    """Return a service with a translator and a classifier; entering the context starts it."""
    environment = {
        **os.environ,
        "ATTEND_ARTIFACTS": str(artifacts(SHIPPED, CLASSIFIER)),
        "ATTEND_PROVIDER": provider,
        "ATTEND_CACHE": "0",
        "ATTEND_SERVERS": str(servers or ""),
        "ATTEND_LOG_LEVEL": "warning",
    }

    def command(port: int) -> list[str]:
        return ["env", f"ATTEND_PORT={port}", sys.executable, "-m", "service"]

    def body(text: str | list[str]) -> dict[str, Any]:
        return {"text": text, "target": "fr"}

    def texts_of(answer: dict[str, Any]) -> list[str]:
        return [translation["text"] for translation in answer["translations"]]

    return Server(Variant("attend", "gpu", command, environment, "/health/ready", body, texts_of))


def ask(connection: http.client.HTTPConnection, path: str, body: object) -> tuple[int, bytes, float]:
    """Send one request, by POST if it has a body; return status, answer and seconds."""
    start = time.monotonic()
    if body is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read(), time.monotonic() - start


def _load(address: str, texts: list[str], connections: int, size: int, seconds: float) -> dict[str, float]:
    n = min(PROCESSES, connections)
    with multiprocessing.get_context("fork").Pool(n) as pool:  # fork starts fast
        tasks = [(address, texts, connections // n, size, seconds, i) for i in range(n)]
        start = time.monotonic()
        latencies = sorted(latency for of_client in pool.starmap(_client, tasks) for latency in of_client)
        took_s = time.monotonic() - start
    answered = [latency for latency in latencies if latency > 0]
    return {
        "texts_per_s": round(size * len(answered) / took_s),
        "refused": len(latencies) - len(answered),
        "p50_ms": round(1000 * answered[len(answered) // 2], 1),
        "p99_ms": round(1000 * answered[int(len(answered) * 0.99)], 1),
    }


def _client(address: str, texts: list[str], connections: int, size: int, seconds: float, number: int) -> list[float]:
    """Return the seconds of each answer of one client process; -1 for a failed one."""
    ends_at = time.monotonic() + seconds

    def one(thread: int) -> list[float]:
        connection = http.client.HTTPConnection(address)
        latencies: list[float] = []
        for request in count(37 * (100 * number + thread)):
            if time.monotonic() > ends_at:
                return latencies
            asked = [texts[(request * size + i) % len(texts)] for i in range(size)]
            status, _, took_s = ask(connection, "/translate", {"text": asked, "target": "fr"})
            latencies.append(took_s if status == http.client.OK else -1.0)
        raise AssertionError

    with ThreadPoolExecutor(connections) as threads:
        return [latency for of_connection in threads.map(one, range(connections)) for latency in of_connection]
