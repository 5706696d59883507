"""One engine in several workers: on a CPU several workers of one thread do more than one worker with all threads."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from service.base.backlog import EARLY_SHARE, Backlog
from service.base.contract import Answer, EngineState, in_background
from service.base.errors import Broken, DeadlinePassed, Draining, QueueFull, Starting, TooManyTexts, Unavailable
from service.base.metrics import CANCELLED, TaskMetrics
from service.engine.scheduler import BURST, MAX_CLIENTS, Sequence

Output = TypeVar("Output")

GRACE_S = 2.0
"""How long after a deadline an engine may still report that it has passed."""
BUSY_WORK = 200
"""Work (source tokens x rows) that keeps an engine busy, about four sentences. The server needs a core too, and an
engine decodes two sentences together in less time than two engines one each."""
STARTING = "starting"

CALM_S = 1.0
"""Seconds without other work after which work in the background takes all workers."""
REMEMBERED_S = 1.0
"""How long a server takes a client that a worker has refused to be last in line."""


class Worker(Protocol):
    """A process that runs models, as one event loop sees it."""

    @property
    def device(self) -> str | None:
        """The GPU of this worker, where several were chosen."""

    @property
    def load(self) -> int:
        """Work of the accepted requests that are not answered, without those in the background."""

    @property
    def background_load(self) -> int:
        """Work of the accepted requests in the background that are not answered."""

    @property
    def awaited_at(self) -> float:
        """When a request that is not in the background was last accepted or answered, on the clock of deadlines."""

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> "asyncio.Future[Answer[Any]]":
        """Queue the sequences of one request in the engine of this name; cancelling the future frees its rows. Raises
        Unavailable: the engine takes no requests."""

    def start(self) -> None:
        """Connect from the running event loop. From now on all requests are submitted in this event loop."""

    def stop(self, timeout_s: float) -> None:
        """Wait until all requests are answered, and fail the others after `timeout_s`."""

    def state(self, name: str) -> EngineState | None:
        """Return the state of an engine; None if this worker has no such engine."""

    def backlog(self, name: str, is_whole: bool) -> Backlog:
        """Return the work of an engine before a request that comes now, or all its work."""


@dataclass
class Admission:
    """State shared by all parts of one request.

    Attributes:
        accepted: whether an engine was given a part of the request. From then on the request is answered: no further
            part is refused because a pool drains or a queue is full.
        background: whether nobody waits for the answer right now, as for a part of a document.
        caller, client: who asks, as `Context` has them.
    """

    accepted: bool = False
    background: bool = False
    caller: str | None = None
    client: str | None = None


@contextmanager
def admission_of(
    metrics: TaskMetrics, background: bool = False, caller: str | None = None, client: str | None = None
) -> Iterator[Admission]:
    """Enclose all that engines do for one request. If it gets no answer, count it once."""
    admission = Admission(background=background, caller=caller, client=client)
    try:
        yield admission
    except Unavailable as error:
        if isinstance(error, QueueFull) or not admission.accepted:  # a worker reports a full queue after it accepted
            metrics.rejected(error.code)
        else:
            metrics.cancelled(error.code if error.code in CANCELLED else Broken.code)
        raise
    except (DeadlinePassed, asyncio.CancelledError) as error:
        if admission.accepted:
            metrics.cancelled("deadline" if isinstance(error, DeadlinePassed) else "client_gone")
        raise


Compute = Callable[[list[Sequence[Output]], float, Admission], Coroutine[Any, Any, Answer[Output]]]
"""Lets workers compute sequences, until a deadline."""


class Answers(Protocol[Output]):
    """Answers that are known, or will soon be."""

    async def run(
        self, sequences: list[Sequence[Output]], deadline: float, admission: Admission, compute: Compute[Output]
    ) -> Answer[Output]:
        """Find the output of each sequence, and compute the unknown ones. Raises RequestError: what `compute` raises,
        or a deadline passed."""


class _Candidates(NamedTuple):
    """The workers among which a request is divided: those whose engine is ready. If none is, all that have it: any of
    them raises why.

    Attributes:
        engine: the name of the engine.
        loads: the work beside which it would run in each worker.
    """

    engine: str
    workers: list[Worker]
    loads: list[int]


class Pool(Generic[Output]):
    """Gives each sequence of a request to the least loaded worker whose engine is ready.

    The last worker is kept free for the server's own core: a single sentence goes there only while every other worker
    is busy, and work in the background only while there is no other. Where each worker has a GPU, none is kept free.

    Args:
        name: name of the engine.
        workers: all workers; those without the engine are skipped.
        metrics: counts the requests that get no answer.
        max_sequences: most sequences of one request.
        max_waiting: number of waiting sequences at which an engine refuses a request.
        clock: returns monotonic seconds, the same in every process; deadlines are on this clock.
        answers: gets the sequences first; None if workers compute all of them.
    """

    def __init__(
        self,
        name: str,
        workers: SequenceOf[Worker],
        metrics: TaskMetrics,
        max_sequences: float = math.inf,
        max_waiting: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        answers: Answers[Output] | None = None,
    ) -> None:
        self.name = name
        self._background_name = in_background(name)
        self.clock = clock
        self._workers = workers
        self._metrics = metrics
        self._answers = answers
        self._max_sequences, self._max_waiting = max_sequences, max_waiting
        self._refused_at: dict[tuple[str, str | None], float] = {}
        """When each engine last refused each client."""
        self._draining = False
        # The work of a sequence is at least 1: while the last worker is kept free, the others refuse nothing.
        self._busy_work = min(BUSY_WORK, max_waiting)

    async def run(
        self,
        sequences: list[Sequence[Output]],
        deadline: float,
        admission: Admission | None = None,
        client: str | None = None,
    ) -> Answer[Output]:
        """Submit the sequences and wait for their outputs; cancelling the wait cancels the request.

        Args:
            sequences: if there are none, nothing is submitted.
            admission: the request of which the sequences are a part; by default they are all of a request.
            client: who sent it, if no admission tells.

        Raises:
            TooManyTexts: there are too many sequences.
            DeadlinePassed: the deadline has passed, perhaps before anything is submitted.
            RequestError: the error of the first worker that failed; the other workers drop their parts.
        """
        if admission is None:
            with admission_of(self._metrics, client=client) as admission:
                return await self.run(sequences, deadline, admission)
        if self._draining and not admission.accepted:
            raise Draining(f"Model {self.name} is draining and takes no new requests", retry_after_s=5)
        self.refuse_beyond_limit(len(sequences))
        late_s = self.clock() - deadline
        if sequences and late_s >= 0:
            raise DeadlinePassed(f"The deadline passed {late_s:.1f} s ago, before this work was queued")
        if self._answers is None:
            return await self._compute(sequences, deadline, admission)
        return await self._answers.run(sequences, deadline, admission, self._compute)

    async def _compute(
        self, sequences: list[Sequence[Output]], deadline: float, admission: Admission
    ) -> Answer[Output]:
        candidates = self._candidates(len(sequences), admission)
        if not admission.accepted:
            self._refuse_late(candidates, deadline, admission.client)
        for sequence in sequences:
            sequence.accepted = admission.accepted
            sequence.background = sequence.background or admission.background
            sequence.client = admission.client
        futures = []
        try:
            for worker, part in self._parts(candidates, sequences, admission.background):
                futures.append(worker.submit(candidates.engine, part, deadline))
            admission.accepted = True
            # A worker checks the deadline itself, unless it hangs.
            async with asyncio.timeout(max(0.0, deadline - self.clock()) + GRACE_S):
                # Most requests are one sentence, for which gather() would take as long as the message.
                answers: list[Answer[Output]] = (
                    [await futures[0]] if len(futures) == 1 else await asyncio.gather(*futures)
                )
        except QueueFull:
            if len(self._refused_at) > MAX_CLIENTS:
                self._refused_at.clear()
            self._refused_at[candidates.engine, admission.client] = self.clock()
            raise
        except TimeoutError:
            raise DeadlinePassed(f"The deadline passed {GRACE_S:g} s ago, and the worker does not answer") from None
        finally:
            for future in futures:
                future.cancel()  # without effect on those that are done
        return Answer(
            [sequence.output for sequence in sequences],
            queue_s=max([answer.queue_s for answer in answers], default=0.0),
            encode_s=max([answer.encode_s for answer in answers], default=0.0),
            decode_s=max([answer.decode_s for answer in answers], default=0.0),
        )

    def refuse_late(
        self, n_texts: int, deadline: float, admission: Admission | None = None, client: str | None = None
    ) -> None:
        """Refuse a request that would be late in every worker, before its long texts are read. Short texts are read
        first: that takes little, and their answers may be known. Workers know more, and refuse others later.

        Args:
            n_texts: least number of its sequences.
            admission: the request, if it may have been accepted already.
            client: who sent it, if no admission tells.

        Raises:
            QueueFull: the request would be late, or too many sequences are before it.
        """
        if admission is None:
            with admission_of(self._metrics, client=client) as admission:
                self.refuse_late(n_texts, deadline, admission)
        elif not admission.accepted:
            self._refuse_late(self._candidates(n_texts, admission), deadline, admission.client)

    def _refuse_late(self, candidates: _Candidates, deadline: float, client: str | None) -> None:
        engine, workers, loads = candidates
        if workers:
            # A client is first in line until a worker refuses it for all that it has sent.
            is_whole = self._refused_at.get((engine, client), -math.inf) > self.clock() - REMEMBERED_S
            backlog = workers[loads.index(min(loads))].backlog(engine, is_whole)
            backlog.refuse_late(deadline - self.clock(), share=EARLY_SHARE)
            backlog.refuse_beyond(self._max_waiting, EARLY_SHARE)

    def refuse_beyond_limit(self, n_sequences: int) -> None:
        """Raise TooManyTexts if one request may not have this many sequences. Callers may check before they have made
        all."""
        if n_sequences > self._max_sequences:
            raise TooManyTexts(
                f"The request has at least {n_sequences} sentences or windows of a text; "
                f"the limit is {self._max_sequences}"
            )

    def drain(self) -> None:
        """Refuse new requests from now on; accepted ones are still answered."""
        self._draining = True

    def unready_reason(self) -> str | None:
        """Why this engine should get no requests now; None if it is ready, on one device at least."""
        if self._draining:
            return "draining"
        reasons = [*self.unready_reasons().values()]
        return None if None in reasons else next(iter(reasons), STARTING)

    def unready_reasons(self) -> dict[str | None, str | None]:
        """Why this engine should get no requests now, for each device; None if it is ready there."""
        reasons: dict[str | None, str | None] = {}
        for worker in self._workers:
            states = self._states_in(worker)
            if states or worker.device is not None:  # a CPU has workers without this model
                of_engines = (state.unready_reason for state in states if state.unready_reason is not None)
                reason = next(of_engines, None if states else STARTING)
                reasons[worker.device] = reasons.get(worker.device) or reason
        return reasons

    def states(self) -> list[EngineState]:
        """Return the engine's state, and that of its background engine, in each worker that has it."""
        return [state for worker in self._workers for state in self._states_in(worker)]

    def _states_in(self, worker: Worker) -> list[EngineState]:
        names = self.name, self._background_name
        return [state for name in names if (state := worker.state(name)) is not None]

    def _candidates(self, n_sequences: int, admission: Admission) -> _Candidates:
        """Return the workers for a request: large requests run beside others, as documents do."""
        gives_way = admission.background or n_sequences > BURST
        engine = self._background_name if gives_way and self._has_background else self.name
        with_engine = [(worker, state) for worker in self._workers if (state := worker.state(engine)) is not None]
        ready = [worker for worker, state in with_engine if state.unready_reason is None]
        workers = ready or [worker for worker, _ in with_engine]
        if engine == self._background_name:
            return _Candidates(engine, workers, [worker.load + worker.background_load for worker in workers])
        return _Candidates(engine, workers, [worker.load for worker in workers])

    @property
    def _has_background(self) -> bool:
        """On a device one engine runs everything."""
        return any(worker.state(self._background_name) is not None for worker in self._workers)

    def _parts(
        self, candidates: _Candidates, sequences: list[Sequence[Output]], background: bool
    ) -> list[tuple[Worker, list[Sequence[Output]]]]:
        """Split the sequences among workers."""
        engine, workers, loads = candidates
        if not workers and sequences:
            raise Starting(f"Model {self.name} is starting")
        if engine == self._background_name:
            spares_last = background and max(worker.awaited_at for worker in workers) > self.clock() - CALM_S
        else:
            spares_last = len(sequences) == 1 and min(loads[:-1], default=math.inf) < self._busy_work
        if spares_last and len(workers) > 1 and workers[-1].device is None:
            workers, loads = workers[:-1], loads[:-1]
        parts: list[list[Sequence[Output]]] = [[] for _ in workers]
        # The longest first, so that loads become even.
        for sequence in sorted(sequences, key=attrgetter("work"), reverse=True):
            lightest = loads.index(min(loads))
            parts[lightest].append(sequence)
            loads[lightest] += sequence.work
        # The shortest run first: similar lengths run together, and few run beside a long source, which pads the
        # cross-attention of all.
        for part in parts:
            part.reverse()
        return [(worker, part) for worker, part in zip(workers, parts, strict=True) if part]
