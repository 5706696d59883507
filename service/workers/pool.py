"""A model's engine in several loops: on a CPU, single-threaded ones do more together than one with all the threads."""

import asyncio
import math
import time
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from concurrent.futures import Future
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from service.base.contract import Answer, EngineState
from service.base.errors import DeadlinePassed, Draining, Starting, TooManyTexts
from service.base.metrics import TaskMetrics
from service.engine.scheduler import Sequence
from service.workers.admission import Admission

Output = TypeVar("Output")

GRACE_S = 2.0
"""How long after a deadline an engine may still report it."""


PLENTY = 200
"""Work (source tokens x rows) that keeps an engine busy, about four sentences. The server needs a core too, and an
engine decodes two sentences together in less time than two engines one each."""


class EngineLoop(Protocol):
    """A loop, in this process or in its own."""

    @property
    def load(self) -> int:
        """Work of the requests that are accepted and not answered."""

    def submit(
        self, name: str, sequences: list[Sequence[Any]], deadline: float
    ) -> "Future[Answer[Any]] | asyncio.Future[Answer[Any]]":
        """Queue the sequences of one request in the engine of this name; cancelling the future frees its rows.

        Raises:
            Unavailable: it takes none.
        """

    def state(self, name: str) -> EngineState | None:
        """How an engine does; None where this loop has none of this name."""


class Pool(Generic[Output]):
    """Gives each sequence of a request to the loop that has least to do, of those whose engine is ready.

    The last loop is kept free for the server's own core: a single sentence gets it only while every other loop is busy.

    Args:
        name: of the engine.
        loops: all there are; those that have the engine count.
        metrics: of requests that get no answer.
        max_sequences: of one request.
        max_waiting: sequences that may wait in an engine before it refuses a request.
        clock: monotonic seconds, the same in every process; deadlines are on this clock.
    """

    def __init__(
        self,
        name: str,
        loops: SequenceOf[EngineLoop],
        metrics: TaskMetrics,
        max_sequences: float = math.inf,
        max_waiting: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.clock = clock
        self._loops = loops
        self._metrics = metrics
        self._max_sequences = max_sequences
        self._draining = False
        # A sequence is a work of 1 or more: a loop with less than this refuses nothing while the last one is kept free.
        self._plenty = min(PLENTY, max_waiting)

    async def run(
        self, sequences: list[Sequence[Output]], deadline: float, admission: Admission | None = None
    ) -> Answer[Output]:
        """Submit and wait; a cancelled wait cancels the request. No sequences are no request.

        Args:
            admission: of the request that these are a part of; they are all of one otherwise.

        Raises:
            TooManyTexts: there are too many sequences.
            DeadlinePassed: also before anything is submitted.
            RequestError: of the first loop that failed; the others drop their parts.
        """
        if admission is None:
            with Admission(self._metrics) as admission:
                return await self.run(sequences, deadline, admission)
        if self._draining and not admission.accepted:
            raise Draining(f"Model {self.name} is draining and takes no new requests", retry_after_s=5)
        self.refuse_beyond_limit(len(sequences))
        late_s = self.clock() - deadline
        if sequences and late_s >= 0:
            raise DeadlinePassed(f"The deadline passed {late_s:.1f} s ago, before this work was queued")
        answers = await self._answers(sequences, deadline, admission)
        return Answer(
            [sequence.output for sequence in sequences],
            queue_s=max((answer.queue_s for answer in answers), default=0.0),
            encode_s=max((answer.encode_s for answer in answers), default=0.0),
            decode_s=max((answer.decode_s for answer in answers), default=0.0),
        )

    def refuse_beyond_limit(self, n_sequences: int) -> None:
        """Callers may ask before they have made all their sequences.

        Raises:
            TooManyTexts: one request may not have so many.
        """
        if n_sequences > self._max_sequences:
            raise TooManyTexts(
                f"The request has at least {n_sequences} sentences or windows of a text; "
                f"the limit is {self._max_sequences}"
            )

    async def _answers(
        self, sequences: list[Sequence[Output]], deadline: float, admission: Admission
    ) -> list[Answer[Output]]:
        for sequence in sequences:
            sequence.accepted = admission.accepted
        futures = []
        try:
            for loop, part in self._parts(sequences):
                futures.append(loop.submit(self.name, part, deadline))
            admission.accepted = True
            # A loop keeps the deadline itself; one that is stuck does not.
            async with asyncio.timeout(max(0.0, deadline - self.clock()) + GRACE_S):
                answers: list[Answer[Output]] = await asyncio.gather(*map(asyncio.wrap_future, futures))
                return answers
        except TimeoutError:
            raise DeadlinePassed(f"The deadline passed {GRACE_S:g} s ago, and the worker does not answer") from None
        finally:
            for future in futures:
                future.cancel()  # of no effect on those that are answered

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered."""
        self._draining = True

    def unready_reason(self) -> str | None:
        """Why this engine should get no requests now; None if it should."""
        if self._draining:
            return "draining"
        states = self.states()
        if not states:
            return "starting"
        return next((state.unready_reason for state in states if state.unready_reason is not None), None)

    def states(self) -> list[EngineState]:
        """Of the engine in each loop that has it."""
        return [state for loop in self._loops if (state := loop.state(self.name)) is not None]

    def _parts(self, sequences: list[Sequence[Output]]) -> list[tuple[EngineLoop, list[Sequence[Output]]]]:
        found = [(loop, state) for loop in self._loops if (state := loop.state(self.name)) is not None]
        # If none is ready, any of them says why.
        loops = [loop for loop, state in found if state.unready_reason is None] or [loop for loop, _ in found]
        if not loops and sequences:
            raise Starting(f"Model {self.name} is starting")
        if len(sequences) == 1 and min((loop.load for loop in loops[:-1]), default=math.inf) < self._plenty:
            loops = loops[:-1]
        loads = [loop.load for loop in loops]
        parts: list[list[Sequence[Output]]] = [[] for _ in loops]
        # The longest first, so that loads become even.
        for sequence in sorted(sequences, key=attrgetter("work"), reverse=True):
            lightest = loads.index(min(loads))
            parts[lightest].append(sequence)
            loads[lightest] += sequence.work
        # The shortest run first: similar lengths run together, and few run beside a long source, which pads the
        # cross-attention of all.
        for part in parts:
            part.reverse()
        return [(loop, part) for loop, part in zip(loops, parts, strict=True) if part]
