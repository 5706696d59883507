"""Engines run many sequences through one computation by continuous batching, without thread, lock or future.

An engine repeats one step: encode some of the waiting sequences, let them enter where there is room, advance all
running sequences by one token, release those that are finished. A loop calls the steps, and gives each request its
answer.
"""

import logging
import time
from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, Protocol, TypeVar

from service.base.contract import ForwardPass
from service.engine.scheduler import Scheduler, Sequence

logger = logging.getLogger(__name__)

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over running sequences, each in its place. `sequence.state` holds the state of a sequence.

    Any call may raise, and the next one must still work. A sequence that fails alone is finished and has a `failure`;
    if a call raises, all sequences of the pass fail.
    """

    def warm_up(self) -> None:
        """Run one real forward pass; only called while nothing runs."""

    def encode(self, sequences: list[Sequence[Output]], /) -> None:
        """Encode the sources; this may finish sequences."""

    def enter(self, first_place: int, sequences: list[Sequence[Output]], /) -> None:
        """Put sequences that are encoded into the places from `first_place` on, which are free."""

    def step(self, running: list[Sequence[Output]], /) -> int:
        """Advance running[i], which is in place i, by one token; this may finish sequences. Return the number of rows
        of the pass."""

    def move(self, source_place: int, target_place: int, sequence: Sequence[Output], /) -> None:
        """Copy the state of a sequence from its place to another place."""


class Admitted(NamedTuple, Generic[Output]):
    """These sequences wait no longer: from now on a failed step fails them."""

    sequences: list[Sequence[Output]]


class Ran(NamedTuple, Generic[Output]):
    """A forward pass succeeded for these sequences."""

    forward_pass: ForwardPass
    sequences: list[Sequence[Output]]


class Finished(NamedTuple, Generic[Output]):
    """These sequences have their outputs and have left the engine."""

    sequences: list[Sequence[Output]]


class Failed(NamedTuple, Generic[Output]):
    """A forward pass, or the code around it, raised; these sequences have left the engine without outputs."""

    sequences: list[Sequence[Output]]
    error: Exception


Outcome = Admitted[Output] | Ran[Output] | Finished[Output] | Failed[Output]

OnOutcome = Callable[[Outcome[Output]], None]
"""Called with each outcome of a step, immediately; it may cancel sequences."""


class Engine(Protocol[Output]):
    """The engine that a loop steps. New sequences are added to its scheduler."""

    scheduler: Scheduler[Output]

    @property
    def n_running(self) -> int:
        """Number of sequences that run."""

    @property
    def is_full(self) -> bool:
        """Whether sequences wait because all places or rows are taken."""

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        """Forget sequences, whether they wait or run; unknown ones are ignored."""

    def step(self, on_outcome: OnOutcome[Output]) -> bool:
        """Advance the work a little, and report each outcome. Every sequence that was added and is not cancelled is
        reported once, as finished or failed; nothing is raised. Return whether work is left."""

    def probe(self) -> ForwardPass:
        """Prove by a forward pass that the computation works. Only called while nothing runs; it may raise."""


class ContinuousEngine(Generic[Output]):
    """An `Engine` that keeps the places in use without gaps: on a CPU the cost of a step is its number of rows."""

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
        """Sequences that were admitted in this step and are not encoded yet."""
        self._encoded: list[Sequence[Output]] = []
        """Sequences that are encoded and wait for a place."""
        self._leaving: set[Sequence[Output]] = set()
        """Sequences that are cancelled or finished, but still in their places."""

    @property
    def n_running(self) -> int:
        return len(self.scheduler.running) + len(self._encoded)

    @property
    def is_full(self) -> bool:
        return bool(self.scheduler.waiting or self._encoded)

    def cancel(self, sequences: Collection[Sequence[Output]]) -> None:
        self.scheduler.withdraw(sequences)
        self._entering.difference_update(sequences)
        leaving = set(sequences)
        self._encoded = [sequence for sequence in self._encoded if sequence not in leaving]
        self._leaving |= leaving

    def step(self, on_outcome: OnOutcome[Output]) -> bool:
        scheduler = self.scheduler
        try:
            if self._leaving:
                self._release(on_outcome)
            if not self._encoded and (admitted := scheduler.admit()):
                self._entering.update(admitted)
                on_outcome(Admitted(admitted))
                for batch in scheduler.batches(admitted):
                    encode_newcomers(self._encode, batch, self._entering, on_outcome, self._clock)
                    self._report_encoded(on_outcome)
            if self._encoded:
                self._enter()
            if running := scheduler.running:
                began = self._clock()
                rows = self.computation.step(running)
                seconds = self._clock() - began
                on_outcome(Ran(ForwardPass("decode", seconds, sequences=len(running), rows=rows), running))
                self._release(on_outcome)
        except Exception as error:
            failed = fail_step([*self._entering, *self._encoded, *scheduler.running], scheduler)
            unreported = [sequence for sequence in failed if sequence not in self._leaving]
            self._entering.clear()
            self._encoded.clear()
            self._leaving.clear()
            scheduler.running.clear()
            on_outcome(Failed(unreported, error))
        return bool(scheduler.waiting or scheduler.running or self._encoded)

    def probe(self) -> ForwardPass:
        began = self._clock()
        self.computation.warm_up()
        return ForwardPass("probe", self._clock() - began)

    def _encode(self, sequences: list[Sequence[Output]]) -> None:
        self.computation.encode(sequences)
        self._encoded += sequences

    def _report_encoded(self, on_outcome: OnOutcome[Output]) -> None:
        """Encoding finishes some sequences."""
        if finished := [sequence for sequence in self._encoded if sequence.finished]:
            self._encoded = [sequence for sequence in self._encoded if not sequence.finished]
            on_outcome(Finished(finished))

    def _enter(self) -> None:
        """Encoded sequences enter in order, as far as there is room."""
        running = self.scheduler.running
        free, n = self.scheduler.n_free_rows, 0
        while n < len(self._encoded) and free >= self._encoded[n].n_rows:
            free -= self._encoded[n].n_rows
            n += 1
        if n:
            entering, self._encoded = self._encoded[:n], self._encoded[n:]
            running += entering  # first: if this fails, they fail like all that run
            self.computation.enter(len(running) - n, entering)

    def _release(self, on_outcome: OnOutcome[Output]) -> None:
        """Free the places of sequences that are finished or cancelled, and report the finished ones."""
        finished = [sequence for sequence in self.scheduler.running if sequence.finished]
        self._leaving.update(finished)
        try:
            if self._leaving:
                self.scheduler.evict(self._leaving, self.computation.move)
                self._leaving.clear()
        finally:
            if finished:
                report_finished(finished, on_outcome)


def fail_step(begun: list[Sequence[Output]], scheduler: Scheduler[Output]) -> list[Sequence[Output]]:
    """Log the error of a step, and return the sequences that fail with it and wait no longer: those that have begun. If
    none has, the waiting ones fail, because they would make the next step fail too."""
    logger.exception("a step failed")
    failed = begun or [*scheduler.waiting]
    scheduler.withdraw(failed)
    return failed


def report_finished(sequences: list[Sequence[Output]], on_outcome: OnOutcome[Output]) -> None:
    """Report sequences that have left the engine, each with its output or with its failure."""
    if succeeded := [sequence for sequence in sequences if sequence.failure is None]:
        on_outcome(Finished(succeeded))
    for sequence in sequences:
        if sequence.failure is not None:
            logger.error("a sequence failed: %s", sequence.failure)
            on_outcome(Failed([sequence], sequence.failure))


def encode_newcomers(
    encode: Callable[[list[Sequence[Output]]], None],
    sequences: list[Sequence[Output]],
    entering: set[Sequence[Output]],
    on_outcome: OnOutcome[Output],
    clock: Callable[[], float],
) -> None:
    """Encode newcomers. If that fails, encode them again one by one, so that one bad sequence fails alone.

    Args:
        encode: encodes sequences in one pass.
        entering: the sequences that were admitted and are not encoded yet; others are skipped.
    """
    sequences = [sequence for sequence in sequences if sequence in entering]
    if not sequences:
        return
    began = clock()
    try:
        encode(sequences)
    except Exception as error:
        logger.exception("encoding %d sequences failed", len(sequences))
        if len(sequences) == 1:
            entering.difference_update(sequences)
            on_outcome(Failed(sequences, error))
        else:
            for sequence in sequences:
                encode_newcomers(encode, [sequence], entering, on_outcome, clock)
        return
    seconds = clock() - began
    entering.difference_update(sequences)
    lengths = tuple([len(sequence.source_ids) for sequence in sequences])
    on_outcome(Ran(ForwardPass("encode", seconds, source_tokens=lengths), sequences))


RunPass = Callable[[list[Sequence[Output]]], None]
"""Runs one forward pass that does all work of some sequences, and fills in their outputs."""


class OnePass(Generic[Output]):
    """The computation of sequences that a single forward pass finishes. `new_probe` returns a sequence with which to
    prove that the pass works. `is_resting` tells whether what the pass needs is not loaded now; then it is not proved
    either."""

    def __init__(
        self,
        run: RunPass[Output],
        new_probe: Callable[[], Sequence[Output]],
        is_resting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run = run
        self._new_probe = new_probe
        self._is_resting = is_resting

    def warm_up(self) -> None:
        if not self._is_resting():
            self._run([self._new_probe()])

    def encode(self, sequences: list[Sequence[Output]]) -> None:
        self._run(sequences)
        for sequence in sequences:
            sequence.finished = True

    def enter(self, _first_place: int, _sequences: list[Sequence[Output]]) -> None:
        raise AssertionError("a single pass has no places: encoding finishes its sequences")

    def step(self, _running: list[Sequence[Output]]) -> int:
        raise AssertionError("a single pass has no steps: encoding finishes its sequences")

    def move(self, _source_place: int, _target_place: int, _sequence: Sequence[Output]) -> None:
        """Nothing is to be done: no state is kept in places."""
