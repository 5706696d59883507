"""Runs the service under mixed requests: answers must equal the first to their request, and memory must not grow."""

import http.client
import json
import multiprocessing
import random
import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu.http import QUESTIONS, REVIEW, ask, serving
from benchmarks.gpu.inputs import CLASSIFIER, ProviderName, read_inputs, say
from benchmarks.memory import footprint
from benchmarks.models import SHIPPED

PROCESSES, CLIENTS = 4, 8
"""Client processes, and clients in each."""
WARM_UP = 1 / 6
"""Share of the time after which memory is first measured; the second time is at the end."""
TOLERANCE = 0.02
"""Largest difference of numbers: they are computed in float16, in batches of any size."""


@dataclass(frozen=True)
class Request:
    path: str
    body: Any
    """Body of a POST request; None for GET."""


def measure(provider: ProviderName, seconds: float) -> None:
    """Print the numbers of answers, failures and different answers, and the memory before and after."""
    requests = mixed(read_inputs().texts)
    with serving(provider) as server:
        first = [answer(server.address, request) for request in requests]
        counted = load(server.address, requests, first, WARM_UP * seconds)
        before, device_before = footprint(server.process_id)["mb"], device_mb()
        counted += load(server.address, requests, first, (1 - WARM_UP) * seconds)
        say(
            part="soak",
            seconds=seconds,
            clients=PROCESSES * CLIENTS,
            kinds=len(requests),
            answers=counted.total(),
            failed=counted["failed"],
            different=counted["different"],
            mb_before=round(before),
            mb_after=round(footprint(server.process_id)["mb"]),
            device_mb_before=device_before,
            device_mb_after=device_mb(),
        )


def mixed(texts: list[str]) -> list[Request]:
    """Return requests of every route, with one text and many, and with several options."""
    some = [texts[7 * i % len(texts)] for i in range(48)]
    translations: list[dict[str, Any]] = [
        *({"text": text, "beam_size": beam_size} for text in some[:8] for beam_size in (1, 4)),
        *({"text": some[n : n + 16], "beam_size": beam_size} for n in (0, 16) for beam_size in (1, 4, 8)),
        {"text": some[8], "beam_size": 4, "alternatives": 3},
        {"text": f"<p>{some[9]} <b>{some[10]}</b></p>", "format": "html"},
        {"text": " ".join(some[11:17]), "alignment": True},
    ]
    return [
        *(Request("/translate", {"target": "fr", **body}) for body in translations),
        *(Request(path, body) for path, body in QUESTIONS),
        *(Request("/classify", {"text": text}) for text in (REVIEW, some[17:33], " ".join(some))),
        *(Request("/embed", {"text": some[20:28], "model": model}) for model in (SHIPPED, CLASSIFIER)),
        Request("/embed", {"text": some[28], "model": SHIPPED, "pooling": "none"}),
        *(Request(path, None) for path in ("/models", "/health/ready", "/health/live", "/")),
    ]


def answer(address: str, request: Request) -> tuple[int, Any]:
    """Return status and answer, on a new connection."""
    with closing(http.client.HTTPConnection(address)) as connection:
        return _asked(connection, request)


def load(address: str, requests: list[Request], first: list[tuple[int, Any]], seconds: float) -> Counter[str]:
    """Return the counts of all client processes."""
    tasks = [(address, requests, first, seconds, number) for number in range(PROCESSES)]
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        return sum(pool.starmap(clients, tasks), Counter())


def clients(
    address: str, requests: list[Request], first: list[tuple[int, Any]], seconds: float, number: int
) -> Counter[str]:
    """Send these requests in random order from the clients of one process; count answers that are the "same" as the
    first, "different" or "failed"."""
    ends_at = time.monotonic() + seconds

    def one(client: int) -> Counter[str]:
        counted: Counter[str] = Counter()
        connection = http.client.HTTPConnection(address)
        draw = random.Random(CLIENTS * number + client)
        while time.monotonic() < ends_at:
            chosen = draw.randrange(len(requests))
            try:
                status, received = _asked(connection, requests[chosen])
            except (OSError, http.client.HTTPException):
                connection.close()
                counted["failed"] += 1
                continue
            if status != http.client.OK:
                counted["failed"] += 1
            else:
                counted["same" if alike(first[chosen], (status, received)) else "different"] += 1
        connection.close()
        return counted

    with ThreadPoolExecutor(CLIENTS) as threads:
        return sum(threads.map(one, range(CLIENTS)), Counter())


def _asked(connection: http.client.HTTPConnection, request: Request) -> tuple[int, Any]:
    status, said, _ = ask(connection, request.path, request.body)
    try:
        return status, json.loads(said)
    except json.JSONDecodeError:  # a page
        return status, said.decode()


def alike(a: Any, b: Any) -> bool:
    """Whether two answers are the same, except for differences of float16 numbers."""
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= TOLERANCE
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


def device_mb() -> int | None:
    """Return the used memory of all GPUs."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return sum(map(int, subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()))
