"""Cost of attention, for clients that ask for it and for others beside them.

While other connections translate without pause, a client sends requests at a steady rate: plain ones, or the same with
alignment or attention. The difference for the others is the cost.
"""

import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.load import Load, offer, saturate
from benchmarks.results import command, save
from benchmarks.servers import Server, Variant, bodies_of, variants
from benchmarks.texts import load_sentences

TEXTS = 512
CONNECTIONS = 16
"""Connections that translate without pause."""
STRANGERS_RATE = 20.0
"""Requests per second of the client that asks for more."""
WISHES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "alignment": {"alignment": True},
    "attention, mean of heads": {"attention": {"heads": "mean"}},
    "attention, all, base64": {"attention": {"encoding": "base64"}},
    "attention, all, JSON": {"attention": True},
}


def measure(data: Path | None, quick: bool, console: Console) -> None:
    """Measure every kind of request in turns on one server, alone and beside others, and save the results."""
    seconds, repetitions = (2.0, 1) if quick else (8.0, 3)
    texts: list[str | list[str]] = [sentence.text for sentence in load_sentences(data, TEXTS)]
    (plain,) = variants("attend", beam_size=4)
    alone: dict[str, list[Load]] = {wish: [] for wish in WISHES}
    others: dict[str, list[Load]] = {wish: [] for wish in WISHES}
    with Server(plain) as server, ThreadPoolExecutor() as threads:
        bodies = server.bodies(texts)
        for _ in range(repetitions):
            for wish, fields in WISHES.items():
                wished = bodies_of(_wishing(plain, wish, fields), texts)
                alone[wish].append(saturate(server.url, wished, 1, seconds))
                stranger = threads.submit(offer, server.url, wished, 8, STRANGERS_RATE, seconds)
                others[wish].append(saturate(server.url, bodies, CONNECTIONS, seconds))
                stranger.result()
    for wish in WISHES:
        record = {
            "wish": wish,
            "alone_p50_ms": statistics.median(load.p50_ms for load in alone[wish]),
            "others_per_s": statistics.median(load.rate for load in others[wish]),
            "others_p99_ms": statistics.median(load.p99_ms for load in others[wish]),
            "all_others_per_s": [load.rate for load in others[wish]],
            "failed": sum(load.failed for load in (*alone[wish], *others[wish])),
            "command": command(),
        }
        console.print("attention", record)
        save("attention", ["wish"], [record], quick)


def _wishing(variant: Variant, wish: str, fields: dict[str, Any]) -> Variant:
    def body(text: str | list[str]) -> dict[str, Any]:
        return {**variant.body(text), **fields}

    return replace(variant, server=f"attend-{wish.replace(' ', '-').replace(',', '')}", body=body)
