"""The server's side of a worker, which is another process.

Python runs one thread of a process at a time. A step is some hundreds of microseconds of ONNX Runtime between short
pieces of Python; in one process two workers and the event loop would wait for each other at each of these changes. The
event loop itself talks to the workers: a thread in between would cost a request as much as all of HTTP.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from service.base.backlog import NO_BACKLOG, Backlog
from service.base.contract import Answer, EngineState, is_in_background
from service.base.counts import EngineCounts
from service.base.errors import Broken, Draining, QueueFull, RequestError, Silent, Starting, WorkerEnded
from service.engine.scheduler import Sequence
from service.passes.plan import HUNG_S
from service.passes.wire import Receiver, fields_of, output_of, packed, plain

logger = logging.getLogger(__name__)

SILENCE_S = 5.0
"""A worker that has not reported for this long is not ready."""
RECONNECT_S = 0.05


@dataclass(frozen=True)
class _SentRequest:
    engine: str
    sequences: list[Sequence[Any]]
    work: int
    future: "asyncio.Future[Answer[Any]]"


class RemoteWorker:
    """A worker process as one event loop sees it.

    Every accepted request is answered exactly once, even if the process dies. Another process replaces it then, and
    listens at the same path.

    Args:
        path: the Unix socket where the worker listens.
        add_counts: takes the name of an engine, and what it did, for the metrics.
        device: the GPU of this worker, where several were chosen.
    """

    def __init__(self, path: Path, add_counts: Callable[[str, EngineCounts], None], device: str | None = None) -> None:
        self.device = device
        self.load = self.background_load = 0
        self.awaited_at = -math.inf
        self._path = path
        self._add_counts = add_counts
        self._states: dict[str, EngineState] = {}
        """The engines' states in the worker's last report; empty while no process listens."""
        self._reported_at = 0.0
        self._work: Counter[str] = Counter()
        """Work of the requests that are sent and not answered, by engine."""
        self._reported_work: dict[str, int] = {}
        """The same at the worker's last report."""
        self._requests: dict[int, _SentRequest] = {}
        self._next_number = 0
        self._outgoing: asyncio.WriteTransport | None = None
        self._supervision: asyncio.Task[None] | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Connect from the running event loop. From now on all requests are submitted in this event loop."""
        self._event_loop = asyncio.get_running_loop()
        self._supervision = self._event_loop.create_task(self._supervise())

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> "asyncio.Future[Answer[Any]]":
        """Queue the sequences of one request. Cancelling the future frees its rows within one step. Raises Unavailable:
        the engine is starting or broken. If the worker refuses the request, the future raises."""
        state = self.state(name)
        if state is None or self._outgoing is None:
            raise Starting(f"Model {name} is starting")
        if state.unready_reason is not None:
            kind = Silent if time.monotonic() - self._reported_at > SILENCE_S else Broken
            raise kind(f"Model {name} is broken: {state.unready_reason}", retry_after_s=5)
        work = sum([sequence.work for sequence in sequences])
        request = _SentRequest(name, sequences, work, asyncio.get_running_loop().create_future())
        number = self._next_number
        self._next_number += 1
        self._requests[number] = request
        self._add_load(name, work)
        # This never waits, since the process may hang: the event loop sends.
        sent = [(plain(sequence.output), *fields_of(sequence)) for sequence in sequences]
        self._outgoing.write(packed("submit", number, name, sent, deadline))
        request.future.add_done_callback(partial(self._cancel, number))
        return request.future

    def state(self, name: str) -> EngineState | None:
        """Return the state of an engine; None if the worker is starting or has no such engine."""
        # A connection closes some time before its end is handled. uvloop raises where something is written meanwhile.
        if self._outgoing is None or self._outgoing.is_closing():
            return None
        state = self._states.get(name)
        if state is not None and (silent_s := time.monotonic() - self._reported_at) > SILENCE_S:
            return replace(state, unready_reason=f"its worker has not reported for {silent_s:.0f} s")
        return state

    def backlog(self, name: str, is_whole: bool) -> Backlog:
        """Return the work of an engine before a request that comes now, or all its work. The worker's last report
        counts, with later requests last in line, and without what was done since."""
        if (state := self._states.get(name)) is None:
            return NO_BACKLOG
        since = self._work[name] - self._reported_work.get(name, 0)
        return state.whole_backlog.with_more(since) if is_whole else state.backlog.with_more(min(0, since))

    def stop(self, timeout_s: float) -> None:
        """Wait until all requests are answered, and fail the others after `timeout_s`. Called from a thread other than
        the event loop's, which goes on meanwhile."""
        if self._event_loop is not None and self._event_loop.is_running():  # else no client waits for an answer
            asyncio.run_coroutine_threadsafe(self._answer_the_rest(timeout_s), self._event_loop).result()

    async def _answer_the_rest(self, timeout_s: float) -> None:
        if self._requests:
            await asyncio.wait([request.future for request in self._requests.values()], timeout=timeout_s)
        if self._supervision is not None:
            self._supervision.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervision
        self._fail_all(Draining, "stopped before this request was answered")

    async def _supervise(self) -> None:
        """Take the messages of the process, and of each process that replaces it."""
        while True:
            try:
                await self._receive()
            except OSError:
                pass
            except Exception:  # the requests whose answers were to come must still be answered
                logger.exception("a message of the worker at %s cannot be read", self._path)
            if self._states:
                logger.critical("the worker at %s has ended", self._path)
            self._states = {}
            self._fail_all(WorkerEnded, "its worker has ended")
            await asyncio.sleep(RECONNECT_S)

    async def _receive(self) -> None:
        event_loop = asyncio.get_running_loop()
        self._outgoing, receiver = await event_loop.create_unix_connection(
            lambda: Receiver(self._take), str(self._path)
        )
        watch = event_loop.create_task(self._abort_when_silent(self._outgoing))
        try:
            await receiver.ended
        finally:
            watch.cancel()
            self._outgoing.abort()  # unsent messages are lost: no process reads them
            self._outgoing = None

    async def _abort_when_silent(self, connection: asyncio.WriteTransport) -> None:
        """Close the connection to a process that is silent for longer than its loader allows: another one may listen at
        its path. Silence is counted in checks, not by the clock: the whole service may have been paused."""
        silent_s = 0.0
        while silent_s <= HUNG_S:
            reported_at = self._reported_at
            await asyncio.sleep(SILENCE_S)
            silent_s = silent_s + SILENCE_S if self._reported_at == reported_at else 0.0
        connection.abort()

    def _take(self, kind: str, *content: Any) -> None:
        if kind == "answer":
            self._take_answer(*content)
        else:
            self._take_report(*content)

    def _take_report(self, states: dict[str, EngineState], counts: dict[str, EngineCounts]) -> None:
        self._states.update(states)
        self._reported_at, self._reported_work = time.monotonic(), dict(self._work)
        for engine, of_engine in counts.items():
            self._add_counts(engine, of_engine)

    def _take_answer(self, number: int, answer: tuple[Any, ...] | RequestError) -> None:
        request = self._requests.get(number)
        if request is None:  # the client has left
            return
        result: Answer[Any] | None = None
        if not isinstance(answer, RequestError):
            sent, *times = answer
            result = Answer([*map(output_of, sent)], *times)
            for sequence, output in zip(request.sequences, result.outputs, strict=True):
                sequence.output = output
        # Now, not in a callback of the future: many answers may come before the first callback is called.
        del self._requests[number]
        self._add_load(request.engine, -request.work)
        if request.future.done():
            return
        if isinstance(answer, RequestError):
            if isinstance(answer, QueueFull) and answer.state is not None:
                # Others like this one are refused here, until some work is done.
                self._states[request.engine] = answer.state
                self._reported_work[request.engine] = self._work[request.engine]
            request.future.set_exception(answer)
        elif result is not None:
            request.future.set_result(result)

    def _cancel(self, number: int, _future: "asyncio.Future[Answer[Any]]") -> None:
        """Forget a request that no longer waits, and cancel it in the worker unless it was answered."""
        request = self._requests.pop(number, None)
        if request is None:
            return
        self._add_load(request.engine, -request.work)
        if self._outgoing is not None and not self._outgoing.is_closing():
            self._outgoing.write(packed("cancel", number))

    def _add_load(self, engine: str, work: int) -> None:
        self._work[engine] += work
        if is_in_background(engine):
            self.background_load += work
        else:
            self.load += work
            self.awaited_at = time.monotonic()

    def _fail_all(self, error: type[Draining] | type[Broken], reason: str) -> None:
        for number, request in list(self._requests.items()):
            self._take_answer(number, error(f"{request.engine} is broken: {reason}", retry_after_s=5))
