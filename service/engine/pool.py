"""Engines of one model side by side: on a CPU, single-threaded ones do more together than one with all the threads."""

import asyncio
import math
import time
from collections.abc import Sequence as SequenceOf
from operator import attrgetter
from typing import Generic, TypeVar

from service.contract import Answer
from service.engine.engine import Engine
from service.engine.scheduler import Sequence
from service.engine.worker import Worker
from service.errors import DeadlinePassed, NotAcceptable, QueueFull, Unavailable
from service.metrics import TaskMetrics

Output = TypeVar("Output")

GRACE_S = 2.0
"""How long after a deadline an engine may still report it."""


PLENTY = 200
"""Work (source tokens x rows) that keeps an engine busy, about four sentences. The server needs a core too, and an
engine decodes two sentences together in less time than two engines one each."""


class Pool(Generic[Output]):
    """Gives each sequence of a request to the engine that has least to do, of those that are ready.

    The last engine is kept free for the server's own core: a single sentence gets it only while every other engine is
    busy.

    Args:
        engines: at least one, all of the same model; in this process or in their own.
        metrics: of requests that get no answer.
        max_sequences: of one request.
        max_waiting: sequences that may wait in an engine before it refuses a request.
    """

    def __init__(
        self,
        engines: SequenceOf[Engine[Output] | Worker[Output]],
        metrics: TaskMetrics,
        max_sequences: float = math.inf,
        max_waiting: float = math.inf,
    ) -> None:
        self.engines = engines
        self.clock = engines[0].clock
        """Monotonic seconds; deadlines are on this clock."""
        self._metrics = metrics
        self._max_sequences = max_sequences
        # A sequence is a work of 1 or more: an engine with less than this refuses nothing while the last one is kept
        # free.
        self._plenty = min(PLENTY, max_waiting)

    async def run(self, sequences: list[Sequence[Output]], deadline: float) -> Answer[Output]:
        """Submit and wait; a cancelled wait cancels the request. No sequences are no request.

        Raises:
            NotAcceptable: there are too many sequences.
            DeadlinePassed: also before anything is submitted.
            RequestError: of the first engine that failed; the others drop their parts.
        """
        self.refuse_beyond_limit(len(sequences))
        late_s = self.clock() - deadline
        if sequences and late_s >= 0:
            raise DeadlinePassed(f"the deadline passed {late_s:.1f} s ago, before this work was queued")
        try:
            answers = await self._answers(sequences, deadline)
        except asyncio.CancelledError:
            self._metrics.cancelled("client_gone")
            raise
        except DeadlinePassed:
            self._metrics.cancelled("deadline")
            raise
        return Answer(
            [sequence.output for sequence in sequences],
            queue_s=max((answer.queue_s for answer in answers), default=0.0),
            encode_s=max((answer.encode_s for answer in answers), default=0.0),
            decode_s=max((answer.decode_s for answer in answers), default=0.0),
        )

    def refuse_beyond_limit(self, n_sequences: int) -> None:
        """Callers may ask before they have made all their sequences.

        Raises:
            NotAcceptable: one request may not have so many.
        """
        if n_sequences > self._max_sequences:
            raise NotAcceptable(
                f"the request has at least {n_sequences} sentences or windows of a text, "
                f"the limit is {self._max_sequences}"
            )

    async def _answers(self, sequences: list[Sequence[Output]], deadline: float) -> list[Answer[Output]]:
        accepted = False
        futures = []
        try:
            for engine, part in self._parts(sequences):
                futures.append(engine.submit(part, deadline))
            accepted = True
            # An engine keeps the deadline itself; a worker process that is stuck does not.
            async with asyncio.timeout(max(0.0, deadline - self.clock()) + GRACE_S):
                return await asyncio.gather(*map(asyncio.wrap_future, futures))
        except TimeoutError:
            raise DeadlinePassed(f"the deadline passed {GRACE_S:g} s ago, and the worker does not answer") from None
        except Unavailable as error:
            if accepted and not isinstance(error, QueueFull):  # a worker process reports this only later
                self._metrics.cancelled(error.reason)
            else:
                self._metrics.rejected(error.reason)
            raise
        finally:
            for future in futures:
                future.cancel()  # of no effect on those that are answered

    def start(self) -> None:
        for engine in self.engines:
            engine.start()

    def wait_until_warm(self, timeout_s: float) -> bool:
        """Whether the first forward pass of every engine has been tried by then."""
        ends_at = time.monotonic() + timeout_s
        return all(engine.warm.wait(max(0.0, ends_at - time.monotonic())) for engine in self.engines)

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered."""
        for engine in self.engines:
            engine.drain()

    def stop(self, timeout_s: float) -> None:
        """Drain, and fail what is not answered after `timeout_s`."""
        self.drain()
        ends_at = time.monotonic() + timeout_s
        for engine in self.engines:
            engine.stop(max(0.0, ends_at - time.monotonic()))

    def unready_reason(self) -> str | None:
        """Why this model should get no requests now; None if it should."""
        return next((reason for engine in self.engines if (reason := engine.unready_reason()) is not None), None)

    def _parts(
        self, sequences: list[Sequence[Output]]
    ) -> list[tuple[Engine[Output] | Worker[Output], list[Sequence[Output]]]]:
        # If no engine is ready, any of them says why.
        engines = [engine for engine in self.engines if engine.unready_reason() is None] or self.engines
        if len(sequences) == 1 and min((engine.load for engine in engines[:-1]), default=math.inf) < self._plenty:
            engines = engines[:-1]
        loads = [engine.load for engine in engines]
        parts: list[list[Sequence[Output]]] = [[] for _ in engines]
        # The longest first, so that loads become even.
        for sequence in sorted(sequences, key=attrgetter("work"), reverse=True):
            lightest = loads.index(min(loads))
            parts[lightest].append(sequence)
            loads[lightest] += sequence.work
        # The shortest run first: similar lengths run together, and few run beside a long source, which pads the
        # cross-attention of all.
        for part in parts:
            part.reverse()
        return [(engine, part) for engine, part in zip(engines, parts, strict=True) if part]
