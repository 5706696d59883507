"""Many sequences through one computation: continuous batching without thread, lock or future.

An engine repeats one step: admit newcomers, read them, advance all that run by one token, let go of those that are
finished. A loop calls it, and gives each request its answer.
"""

import logging
import time
from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, Protocol, TypeVar

from service.base.contract import ForwardPass
from service.engine.computation import Computation
from service.engine.scheduler import Scheduler, Sequence

logger = logging.getLogger(__name__)

Output = TypeVar("Output")
Result = TypeVar("Result")


class Admitted(NamedTuple, Generic[Output]):
    """These wait no longer: from now on a failed step fails them."""

    sequences: list[Sequence[Output]]


class Ran(NamedTuple, Generic[Output]):
    """A forward pass succeeded, for these sequences."""

    forward_pass: ForwardPass
    sequences: list[Sequence[Output]]


class Finished(NamedTuple, Generic[Output]):
    """These have their outputs, and have left."""

    sequences: list[Sequence[Output]]


class Failed(NamedTuple, Generic[Output]):
    """A forward pass, or what is around it, raised; these have left without outputs."""

    sequences: list[Sequence[Output]]
    error: Exception


Outcome = Admitted[Output] | Ran[Output] | Finished[Output] | Failed[Output]

Tell = Callable[[Outcome[Output]], None]
"""Takes what happens, as it happens; it may cancel sequences meanwhile."""


class Engine(Protocol[Output]):
    """What a loop steps."""

    @property
    def max_rows(self) -> int:
        """Most decoder rows, or sequences of one pass, that run at once."""

    @property
    def n_waiting(self) -> int: ...

    @property
    def n_running(self) -> int: ...

    def add(self, sequences: list[Sequence[Output]]) -> None:
        """Let the sequences of one request wait, all or none.

        Raises:
            QueueFull: with the numbers.
        """

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        """Forget sequences, wherever they are; those that are unknown do not matter."""

    def step(self, tell: Tell[Output]) -> None:
        """Do a little, and tell what happened. Every sequence that was added, and is not cancelled, is told as finished
        or failed once; nothing is raised."""

    def probe(self) -> ForwardPass:
        """Prove the computation by a forward pass; only called while nothing runs. It may raise."""


class ContinuousEngine(Generic[Output]):
    """An engine that keeps the places in use compact: rows are what a step costs on a CPU.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self,
        computation: Computation[Output],
        scheduler: Scheduler[Output],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.computation = computation
        self.scheduler = scheduler
        self._clock = clock
        self._entering: set[Sequence[Output]] = set()
        """Admitted in this step, and not read yet."""
        self._leaving: set[Sequence[Output]] = set()
        """Cancelled while they ran: the next step frees their places."""

    @property
    def max_rows(self) -> int:
        return self.scheduler.max_rows

    @property
    def n_waiting(self) -> int:
        return len(self.scheduler.waiting)

    @property
    def n_running(self) -> int:
        return len(self.scheduler.running)

    def add(self, sequences: list[Sequence[Output]]) -> None:
        self.scheduler.add(sequences)

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        self.scheduler.withdraw(sequences)
        self._entering.difference_update(sequences)
        self._leaving.update(sequences)

    def step(self, tell: Tell[Output]) -> None:
        try:
            self._let_go()
            admitted = self.scheduler.admit()
            self._entering.update(admitted)
            if admitted:
                tell(Admitted(admitted))
            for batch in self.scheduler.batches(admitted):
                read_newcomers(self._read, batch, self._entering, tell)
                self._finish(tell)
            running = self.scheduler.running
            if running:
                rows, seconds = timed(self._clock, self.computation.step, running)
                tell(Ran(ForwardPass("decode", seconds, sequences=len(running), rows=rows), running))
                self._finish(tell)
        except Exception as error:
            logger.exception("a step failed")
            # Where nothing ran, those that wait have failed: they would make the next step fail too.
            failed = [*self._entering, *self.scheduler.running] or [*self.scheduler.waiting]
            untold = [sequence for sequence in failed if sequence not in self._leaving]
            self._entering.clear()
            self._leaving.clear()
            self.scheduler.running.clear()
            self.scheduler.withdraw(failed)
            tell(Failed(untold, error))

    def probe(self) -> ForwardPass:
        _, seconds = timed(self._clock, self.computation.warm_up)
        return ForwardPass("probe", seconds)

    def _read(self, sequences: list[Sequence[Output]]) -> float:
        _, seconds = timed(self._clock, self.computation.prefill, len(self.scheduler.running), sequences)
        self.scheduler.start(sequences)
        return seconds

    def _finish(self, tell: Tell[Output]) -> None:
        finished = [sequence for sequence in self.scheduler.running if sequence.finished]
        if finished:
            self._leaving.update(finished)
            try:
                self._let_go()
            finally:
                tell(Finished(finished))

    def _let_go(self) -> None:
        """Free the places of those that leave."""
        if self._leaving:
            for source_place, target_place, sequence in self.scheduler.evict(self._leaving):
                self.computation.move(source_place, target_place, sequence)
            self._leaving.clear()


def read_newcomers(
    read: Callable[[list[Sequence[Output]]], float],
    sequences: list[Sequence[Output]],
    entering: set[Sequence[Output]],
    tell: Tell[Output],
) -> None:
    """Start newcomers. If that fails they are read again one by one, so that one bad sequence fails alone.

    Args:
        read: reads them in one pass; the seconds that it takes.
        entering: those admitted and not read yet; who is not among them any more is left out.
    """
    sequences = [sequence for sequence in sequences if sequence in entering]
    if not sequences:
        return
    try:
        seconds = read(sequences)
    except Exception as error:
        logger.exception("reading %d sequences failed", len(sequences))
        if len(sequences) == 1:
            entering.difference_update(sequences)
            tell(Failed(sequences, error))
        else:
            for sequence in sequences:
                read_newcomers(read, [sequence], entering, tell)
        return
    entering.difference_update(sequences)
    lengths = tuple(len(sequence.source_ids) for sequence in sequences)
    tell(Ran(ForwardPass("encode", seconds, source_tokens=lengths), sequences))


def timed(clock: Callable[[], float], run: Callable[..., Result], *arguments: object) -> tuple[Result, float]:
    """What a call returns, and how many seconds it took."""
    began = clock()
    result = run(*arguments)
    return result, clock() - began
