"""Drives one engine through the loop of a worker, in this process, and tells how fast it is."""

import math
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from service.engine import fixed_engine, places
from service.engine.engine import Engine
from service.engine.loop import Loop
from service.engine.scheduler import Sequence
from service.engine.search import Search

NAME = "model/engine"


@dataclass(frozen=True)
class Constants:
    """Other values of constants of the engine; None for its own."""

    newcomers_share: float | None = None
    steps_waited: int | None = None
    size_factor: int | None = None

    def changes(self) -> dict[str, float]:
        """Return the values that are given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Give the constants these values meanwhile."""
        with ExitStack() as patches:
            for name, value in self.changes().items():
                patches.enter_context(patch.object(*PLACES[name], value))
            yield


PLACES = {
    "newcomers_share": (fixed_engine, "MIN_NEWCOMERS_SHARE"),
    "steps_waited": (fixed_engine, "MAX_STEPS_WAITED"),
    "size_factor": (places, "STEP_SIZE_FACTOR"),
}
"""The module and the name of each constant."""


@dataclass
class Driven:
    """How long requests took.

    Attributes:
        seconds: from the first request to the last answer.
        latencies: seconds of each request.
    """

    seconds: float
    latencies: list[float]

    def latency_ms(self, share: float) -> float:
        """Return a percentile."""
        ordered = sorted(self.latencies)
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


def drive(
    engine: Engine[Search],
    requests: list[list[Sequence[Search]]],
    per_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    wait_until: Callable[[float], None] = lambda _: None,
    on_start: Callable[[], None] = lambda: None,
) -> Driven:
    """Run requests through an engine after its probe: each when the one before is answered, or as they arrive.

    Args:
        per_s: if given, requests arrive at random times, so many a second on average.
        wait_until: is called with the time of the next arrival when nothing is to do before.
        on_start: is called after the probe.
    """
    loop = Loop({NAME: engine}, lambda *_: None, probe_interval_s=1e9, clock=clock)
    draw = random.Random(1)
    coming, latencies = requests[::-1], list[float]()
    due = 0.0
    """When the next request arrives."""

    def send(sent_at: float) -> None:
        def answered(future: Future[Any]) -> None:
            future.result()
            latencies.append(clock() - sent_at)

        loop.submit(NAME, coming.pop(), math.inf).add_done_callback(answered)

    def send_what_is_due() -> None:
        nonlocal due
        is_idle = len(latencies) + len(coming) == len(requests)
        if per_s is None:
            if is_idle and coming:
                send(clock())
        else:
            if is_idle and coming:
                wait_until(due)
            while coming and due <= clock():
                send(due)
                due += draw.expovariate(per_s)

    loop.warm_up()
    on_start()
    began = due = clock()
    while len(latencies) < len(requests):
        send_what_is_due()
        loop.advance()
    return Driven(clock() - began, latencies)
