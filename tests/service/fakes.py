"""Stand-ins that a test drives: a clock that is told the time, a computation that waits for permission to go on."""

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pytest
import sqlalchemy as sa

from service.base.contract import EngineState
from service.base.metrics import Metrics
from service.engine.engine import Computation, ContinuousEngine
from service.engine.loop import Loop
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from service.storage.database import Database
from tests.waiting import PATIENCE_S


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Disk:
    """Of all databases: while it is full, nothing can be written to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.n_uses = 0
        transaction = Database._transaction

        @contextmanager
        def used(database: Database, options: dict[str, str]) -> Iterator[sa.Connection]:
            with transaction(database, options) as connection:
                is_sqlite = connection.dialect.name == "sqlite"
                if self.is_full:
                    connection.exec_driver_sql("PRAGMA query_only = 1" if is_sqlite else "SET TRANSACTION READ ONLY")
                self.n_uses += 1
                try:
                    yield connection
                finally:
                    if is_sqlite:
                        connection.exec_driver_sql("PRAGMA query_only = 0")

        monkeypatch.setattr(Database, "_transaction", used)


class TickingClock(FakeClock):
    """Every look at it takes a hundredth of a second."""

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


@dataclass
class Tally:
    """An output: how many steps a sequence takes, and what it saw on its way."""

    steps: int
    places: list[int] = field(default_factory=list)
    neighbours: list[int] = field(default_factory=list)


class FakeComputation:
    """Counts steps in `Tally`s. `hold` stops it before its next call; `failing` decides which calls raise.

    It keeps a copy of what is in each place and checks every call against it, so that a place mixed up fails the test.
    """

    def __init__(self) -> None:
        self.failing: Callable[[str, list[Sequence[Tally]]], bool] = lambda call, sequences: False
        self.calls: list[tuple[str, int]] = []
        self._places: dict[int, Sequence[Tally]] = {}
        self._permits = threading.Semaphore(0)
        self._held = False
        self.arrived = threading.Semaphore(0)

    def hold(self) -> None:
        """From now on every call waits for `allow`; `arrived` counts those that wait or went on."""
        self._held = True

    def allow(self, calls: int = 1) -> None:
        self._permits.release(calls)

    def release(self) -> None:
        """Let everything go on."""
        self._held = False
        self._permits.release(1000)

    def await_arrival(self) -> None:
        assert self.arrived.acquire(timeout=PATIENCE_S), "the worker did not come"

    def warm_up(self) -> None:
        self._enter("warm_up", [])

    def encode(self, sequences: list[Sequence[Tally]]) -> None:
        self._enter("encode", sequences)
        for sequence in sequences:
            sequence.finished = sequence.output.steps == 0

    def enter(self, first_place: int, sequences: list[Sequence[Tally]]) -> None:
        if self.failing("enter", sequences):
            raise RuntimeError("enter was told to fail")
        self._places.update(enumerate(sequences, start=first_place))

    def step(self, running: list[Sequence[Tally]]) -> int:
        self._enter("step", running)
        for place, sequence in enumerate(running):
            assert self._places[place] is sequence, "a sequence runs in the place where it was put"
            sequence.output.places.append(place)
            sequence.output.neighbours.append(len(running) - 1)
            sequence.finished = len(sequence.output.places) == sequence.output.steps
        return sum(sequence.n_rows for sequence in running)

    def move(self, source_place: int, target_place: int, sequence: Sequence[Tally]) -> None:
        assert self._places[source_place] is sequence
        if self.failing("move", []):
            raise RuntimeError("move was told to fail")
        self._places[target_place] = self._places[source_place]

    def _enter(self, call: str, sequences: list[Sequence[Tally]]) -> None:
        self.calls.append((call, len(sequences)))
        if self._held:
            self.arrived.release()
            assert self._permits.acquire(timeout=PATIENCE_S), "the test forgot to let the worker go on"
        if self.failing(call, sequences):
            raise RuntimeError(f"{call} was told to fail")


NAME = "fake/greedy"


class Harness:
    """A loop of one engine around a fake computation. The test drives it, or gives it to a `LoopThread`."""

    def __init__(
        self,
        max_rows: int = 4,
        max_waiting: int = 100,
        prefill_padded_tokens: int = 100,
        probe_interval_s: float = 3600,
        clock: FakeClock | None = None,
        max_padding: float = math.inf,
    ) -> None:
        self.clock = clock or FakeClock()
        self.computation = FakeComputation()
        self.metrics = Metrics()
        self.scheduler: Scheduler[Tally] = Scheduler(max_rows, max_waiting, prefill_padded_tokens, max_padding)
        engine = ContinuousEngine(self.computation, self.scheduler, self.clock)
        self.loop = Loop({NAME: engine}, self.metrics.count, probe_interval_s, clock=self.clock)

    def start(self) -> "Harness":
        self.loop.warm_up()
        return self

    @property
    def state(self) -> EngineState:
        return self.loop.states()[NAME]

    @property
    def unready_reason(self) -> str | None:
        return self.state.unready_reason

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left of any request."""
        return not (self.loop._requests or self.scheduler.waiting or self.scheduler.running)

    def submit(self, *steps: int, tokens: int = 3, timeout_s: float = 60) -> "Future[Any]":
        """One request whose sequences take these numbers of steps."""
        return self.submit_all(sequences(*steps, tokens=tokens), timeout_s)

    def submit_all(self, request: list[Sequence[Tally]], timeout_s: float = 60) -> "Future[Any]":
        return self.loop.submit(NAME, request, self.clock() + timeout_s)

    def answer(self, future: "Future[Any]") -> Any:
        return answer(self.loop, future)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"attend_{name}", {"task": "translation", **labels}) or 0.0


def answer(loop: Loop, future: "Future[Any]") -> Any:
    """Drive a loop until a request has its answer."""
    for _ in range(10_000):
        if future.done():
            return future.result()
        loop.advance()
    raise AssertionError("the request is never answered")


def sequences(*steps: int, tokens: int = 3) -> list[Sequence[Tally]]:
    return [Sequence(list(range(1, tokens + 1)), Tally(n)) for n in steps]


Output = TypeVar("Output")


def prefill(computation: Computation[Output], first_place: int, sequences: list[Sequence[Output]]) -> None:
    """Encode sequences, and let them enter."""
    computation.encode(sequences)
    computation.enter(first_place, sequences)


def search_all(
    computation: Computation[Search],
    max_rows: int,
    everybody: list[Sequence[Search]],
    rng: np.random.Generator,
    leaving: float = 0.0,
) -> set[Sequence[Search]]:
    """Let them come in a few at a time, and out at once when finished, as an engine does.

    Args:
        leaving: the probability with which a sequence is abandoned before a step.

    Returns:
        Those that were abandoned.
    """
    scheduler: Scheduler[Search] = Scheduler(max_rows, max_waiting=1000, prefill_padded_tokens=10_000)
    pending = list(everybody)
    abandoned: set[Sequence[Search]] = set()

    while pending or scheduler.waiting or scheduler.running:
        n_new = int(rng.integers(0, 4))
        scheduler.add(pending[:n_new])
        del pending[:n_new]
        gone = [sequence for sequence in scheduler.running if rng.random() < leaving]
        abandoned.update(gone)
        scheduler.evict(gone, computation.move)
        while scheduler.waiting and scheduler.n_free_rows >= scheduler.waiting[0].n_rows:
            prefill(computation, len(scheduler.running), admitted := scheduler.take(scheduler.n_free_rows, window=4))
            scheduler.running.extend(admitted)
        if scheduler.running:
            computation.step(scheduler.running)
            finished = [sequence for sequence in scheduler.running if sequence.finished]
            scheduler.evict(finished, computation.move)
    return abandoned
