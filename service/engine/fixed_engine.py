"""Many sequences through one computation on a device: each stays in the place that it was given.

On a device a step of many rows takes little longer than one of few. So a finished sequence leaves its place empty,
steps go over all places, and newcomers enter many at a time: reading some takes as long as several steps.
"""

import logging
import time
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from service.base.contract import ForwardPass
from service.engine.engine import Admitted, Failed, Finished, Ran, Tell, read_newcomers, timed
from service.engine.scheduler import Scheduler, Sequence

logger = logging.getLogger(__name__)

Output = TypeVar("Output")

MIN_NEWCOMERS_SHARE = 1.0
"""Newcomers enter where they take so many times the slots of those that run, or more. With a queue that never ends,
half of the places are empty then: the best of what was tried on a GPU, with 64 places."""

MAX_STEPS_WAITED = 32
"""Steps after which those enter that can, however few: reading them takes as long as about five."""


class FixedComputation(Protocol[Output]):
    """Forward passes over sequences that stay in their places. Any call may raise, and the next one must still work."""

    @property
    def running(self) -> Collection[Sequence[Output]]:
        """Those that are in a place."""

    @property
    def n_free(self) -> int:
        """How many places are empty."""

    @property
    def n_rows(self) -> int:
        """Rows that are taken."""

    def warm_up(self) -> None:
        """One real forward pass, the first time one of each usual shape; only called while nothing runs."""

    def prefill(self, sequences: list[Sequence[Output]], /) -> None:
        """Read sources into empty places."""

    def step(self) -> tuple[int, list[Sequence[Output]]]:
        """Advance all that run by one token. Returns the rows of the pass, and those that are finished and have left
        their places."""

    def evict(self, sequences: Collection[Sequence[Output]], /) -> None:
        """Empty the places of sequences; those that have none do not matter."""


class FixedEngine(Generic[Output]):
    """An `Engine` of such a computation.

    Args:
        scheduler: keeps those that wait alone.
        clock: monotonic seconds.
    """

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
        """Admitted in this step, and not read yet."""
        self._steps_waited = 0
        """By the next in line."""

    @property
    def max_rows(self) -> int:
        return self.scheduler.max_rows

    @property
    def n_waiting(self) -> int:
        return len(self.scheduler.waiting)

    @property
    def n_running(self) -> int:
        return len(self.computation.running)

    def add(self, sequences: list[Sequence[Output]]) -> None:
        self.scheduler.add(sequences)

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        self.scheduler.withdraw(sequences)
        self._entering.difference_update(sequences)
        self.computation.evict(sequences)

    def step(self, tell: Tell[Output]) -> None:
        try:
            admitted = self._admit()
            if admitted:
                self._entering.update(admitted)
                tell(Admitted(admitted))
                read_newcomers(self._read, admitted, self._entering, tell)
            running = [*self.computation.running]
            if running:
                (rows, finished), seconds = timed(self._clock, self.computation.step)
                tell(Ran(ForwardPass("decode", seconds, sequences=len(running), rows=rows), running))
                if finished:
                    tell(Finished(finished))
        except Exception as error:
            logger.exception("a step failed")
            # Where nothing ran, those that wait have failed: they would make the next step fail too.
            failed = [*self._entering, *self.computation.running] or [*self.scheduler.waiting]
            self._entering.clear()
            self.computation.evict(failed)
            self.scheduler.withdraw(failed)
            tell(Failed(failed, error))

    def probe(self) -> ForwardPass:
        _, seconds = timed(self._clock, self.computation.warm_up)
        return ForwardPass("probe", seconds)

    def _admit(self) -> list[Sequence[Output]]:
        """Take from the waiting what fits, if that is worth a pass."""
        waiting = self.scheduler.waiting
        if not waiting:
            self._steps_waited = 0
            return []
        in_use, n_places = self.computation.n_rows, self.computation.n_free
        free = self.max_rows - in_use
        entering = min(free, waiting[0].n_rows * min(len(waiting), n_places))
        enough = entering >= MIN_NEWCOMERS_SHARE * in_use or self._steps_waited >= MAX_STEPS_WAITED
        if free < waiting[0].n_rows or n_places == 0 or not enough:
            self._steps_waited += 1
            return []
        self._steps_waited = 0
        return self.scheduler.take(free, most=n_places)

    def _read(self, sequences: list[Sequence[Output]]) -> float:
        _, seconds = timed(self._clock, self.computation.prefill, sequences)
        return seconds
