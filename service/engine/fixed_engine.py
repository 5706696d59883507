"""The engine for a device: each sequence keeps the place that it was given.

On a device a step of many rows takes little longer than a step of few. So a finished sequence leaves its place empty,
steps run over all places, and newcomers enter many at a time: an encoder pass takes as long as several steps.
"""

import time
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from service.base.contract import ForwardPass
from service.engine.engine import Admitted, Failed, OnOutcome, Ran, encode_newcomers, fail_step, report_finished
from service.engine.places import Places
from service.engine.scheduler import Scheduler, Sequence

Output = TypeVar("Output")

MIN_NEWCOMERS_SHARE = 0.75
"""Newcomers enter if they take at least this many times the rows in use. With a queue that never empties, three
sevenths of the places are then empty at most. A smaller share is better for beams, and a larger one for greedy search
(docs/gpu.md)."""
MAX_STEPS_WAITED = 32
"""After this many steps newcomers enter, however few they are: encoding them takes as long as about five steps."""


class FixedComputation(Protocol[Output]):
    """Forward passes over sequences that keep their places. Any call may raise, and the next one must still work. A
    sequence that fails alone is finished and has a `failure`."""

    places: Places[Output]

    @property
    def n_rows(self) -> int:
        """Number of rows in use."""

    def warm_up(self) -> None:
        """Run one real forward pass, the first time one of each usual shape; only called while nothing runs."""

    def prefill(self, sequences: list[Sequence[Output]], /) -> None:
        """Encode sources into empty places."""

    def step(self) -> tuple[int, list[Sequence[Output]]]:
        """Advance all running sequences by one token. Return the number of rows of the pass, and the sequences that are
        finished and have left their places."""

    def evict(self, sequences: Collection[Sequence[Output]], /) -> None:
        """Empty the places of sequences; those without a place are ignored."""


class FixedEngine(Generic[Output]):
    """An `Engine` of a `FixedComputation`. `scheduler` is the queue of waiting sequences; the computation keeps those
    that run."""

    def __init__(
        self,
        computation: FixedComputation[Output],
        scheduler: Scheduler[Output],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.computation = computation
        self.scheduler = scheduler
        self._clock = clock
        self._entering: set[Sequence[Output]] = set()
        """Sequences that were admitted in this step and are not encoded yet."""
        self._steps_waited = 0
        """How many steps the next in line has waited."""

    @property
    def n_running(self) -> int:
        return len(self.computation.places.running)

    @property
    def is_full(self) -> bool:
        waiting, free = self.scheduler.waiting, self.scheduler.max_rows - self.computation.n_rows
        return bool(waiting) and (free < waiting[0].n_rows or self.computation.places.n_free == 0)

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        self.scheduler.withdraw(sequences)
        self._entering.difference_update(sequences)
        self.computation.evict(sequences)

    def step(self, on_outcome: OnOutcome[Output]) -> bool:
        computation = self.computation
        try:
            if admitted := self._admit():
                self._entering.update(admitted)
                on_outcome(Admitted(admitted))
                encode_newcomers(computation.prefill, admitted, self._entering, on_outcome, self._clock)
            if running := [*computation.places.running]:
                began = self._clock()
                rows, finished = computation.step()
                seconds = self._clock() - began
                on_outcome(Ran(ForwardPass("decode", seconds, sequences=len(running), rows=rows), running))
                if finished:
                    report_finished(finished, on_outcome)
        except Exception as error:
            failed = fail_step([*self._entering, *computation.places.running], self.scheduler)
            self._entering.clear()
            computation.evict(failed)
            on_outcome(Failed(failed, error))
        return bool(self.scheduler.waiting or computation.places.running)

    def probe(self) -> ForwardPass:
        began = self._clock()
        self.computation.warm_up()
        return ForwardPass("probe", self._clock() - began)

    def _admit(self) -> list[Sequence[Output]]:
        """Admit the sequences that fit, if they are worth an encoder pass. The longest come first: they get the first
        places and run longest, so that steps soon run over few places."""
        waiting = self.scheduler.waiting
        if not waiting:
            self._steps_waited = 0
            return []
        in_use, n_places = self.computation.n_rows, self.computation.places.n_free
        free = self.scheduler.max_rows - in_use
        entering = min(free, waiting[0].n_rows * min(len(waiting), n_places))
        is_enough = entering >= MIN_NEWCOMERS_SHARE * in_use or self._steps_waited >= MAX_STEPS_WAITED
        if free < waiting[0].n_rows or n_places == 0 or not is_enough:
            self._steps_waited += 1
            return []
        self._steps_waited = 0
        return self.scheduler.take(free, window=n_places)[::-1]
