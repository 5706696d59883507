"""A loop in another process, as a server sees it.

Python runs one thread of a process at a time. A step is some hundreds of microseconds of ONNX Runtime between some of
Python; in one process a loop, a second one and the event loop wait for each other at each of these changes. The event
loop itself talks to the processes: a thread between them would cost a request as much as all of HTTP.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from service.base.contract import Answer, EngineState, Event
from service.base.errors import Broken, Draining, LoopEnded, RequestError, Silent, Starting
from service.engine.loop import Count
from service.engine.scheduler import Sequence
from service.workers.loader_process import HUNG_S
from service.workers.wire import READ_BYTES, Unpacker, packed

logger = logging.getLogger(__name__)

SILENCE_S = 5.0
"""A loop that has not reported for this long is not ready."""

RECONNECT_S = 0.05


@dataclass(frozen=True)
class _Sent:
    """A request that the loop was sent and has not answered."""

    engine: str
    sequences: list[Sequence[Any]]
    work: int
    future: "asyncio.Future[Answer[Any]]"


class RemoteLoop:
    """Stands for a loop in another process, with the same methods, for one event loop.

    Every accepted request is answered exactly once, also where the process dies. Another process takes its place, and
    listens at the same path.

    Args:
        path: of the Unix socket where the loop listens.
        count: takes what engines tell metrics.
    """

    def __init__(self, path: Path, count: Count) -> None:
        self.load = 0
        self._path = path
        self._count = count
        self._states: dict[str, EngineState] = {}
        """Of its engines, as it told last; empty where no process listens."""
        self._reported_at = 0.0
        self._requests: dict[int, _Sent] = {}
        self._next_number = 0
        self._outgoing: asyncio.StreamWriter | None = None
        self._supervision: asyncio.Task[None] | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Connect from the running event loop, in which all requests are submitted from now on."""
        self._event_loop = asyncio.get_running_loop()
        self._supervision = self._event_loop.create_task(self._supervise())

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> "asyncio.Future[Answer[Any]]":
        """Queue the sequences of one request. Cancelling the future frees its rows within one step.

        Raises:
            Unavailable: starting or broken. What the loop itself refuses comes as the future's error.
        """
        state = self.state(name)
        if state is None or self._outgoing is None:
            raise Starting(f"Model {name} is starting")
        if state.unready_reason is not None:
            kind = Silent if self._silent_s > SILENCE_S else Broken
            raise kind(f"Model {name} is broken: {state.unready_reason}", retry_after_s=5)
        work = sum([sequence.work for sequence in sequences])
        request = _Sent(name, sequences, work, asyncio.get_running_loop().create_future())
        number = self._next_number
        self._next_number += 1
        self._requests[number] = request
        self.load += work
        # Never waits, since the process may be stuck: the event loop sends.
        self._outgoing.write(packed("submit", number, name, sequences, deadline))
        request.future.add_done_callback(partial(self._notice_cancellation, number))
        return request.future

    def state(self, name: str) -> EngineState | None:
        """How an engine does; None where the loop has none of this name, or is starting."""
        state = self._states.get(name)
        if state is not None and (silent_s := self._silent_s) > SILENCE_S:
            return replace(state, unready_reason=f"its loop has not reported for {silent_s:.0f} s")
        return state

    def stop(self, timeout_s: float) -> None:
        """Wait until all requests are answered, and fail those that are not after `timeout_s`; from another thread than
        the event loop's, which goes on meanwhile."""
        if self._event_loop is not None and self._event_loop.is_running():  # else nobody waits for an answer any more
            asyncio.run_coroutine_threadsafe(self._answer_the_rest(timeout_s), self._event_loop).result()

    @property
    def _silent_s(self) -> float:
        return time.monotonic() - self._reported_at

    async def _answer_the_rest(self, timeout_s: float) -> None:
        if self._requests:
            await asyncio.wait([request.future for request in self._requests.values()], timeout=timeout_s)
        if self._supervision is not None:
            self._supervision.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervision
        self._fail_all(Draining, "stopped before this request was answered")

    async def _supervise(self) -> None:
        """Listen to the process, and to those that take its place."""
        while True:
            try:
                async for kind, *content in self._messages():
                    if kind == "report":
                        self._take_report(*content)
                    else:
                        self._take_answer(*content)
            except OSError:
                pass
            except Exception:  # nobody may be left waiting for the answers that were to come
                logger.exception("a message of the loop at %s cannot be read", self._path)
            if self._states:
                logger.critical("the loop at %s has ended", self._path)
            self._states = {}
            self._fail_all(LoopEnded, "its loop has ended")
            await asyncio.sleep(RECONNECT_S)

    async def _messages(self) -> AsyncIterator[tuple[Any, ...]]:
        """What the process sends, until it has ended."""
        incoming, self._outgoing = await asyncio.open_unix_connection(self._path)
        unpacker = Unpacker()
        watch = asyncio.create_task(self._give_up_silence(self._outgoing.transport))
        try:
            while received := await incoming.read(READ_BYTES):
                for message in unpacker.feed(received):
                    yield message
        finally:
            watch.cancel()
            self._outgoing.transport.abort()  # nobody reads what is left
            self._outgoing = None

    async def _give_up_silence(self, connection: asyncio.WriteTransport) -> None:
        """Let go of a process that is silent for longer than its loader bears; it may not be the one that listens any
        more. Silence is counted in looks, not by the clock: the whole service may have been paused."""
        silent_s = 0.0
        while silent_s <= HUNG_S:
            reported_at = self._reported_at
            await asyncio.sleep(SILENCE_S)
            silent_s = silent_s + SILENCE_S if self._reported_at == reported_at else 0.0
        connection.abort()

    def _notice_cancellation(self, number: int, future: "asyncio.Future[Answer[Any]]") -> None:
        if future.cancelled() and self._take(number) is not None and self._outgoing is not None:
            self._outgoing.write(packed("cancel", number))

    def _take_report(self, states: dict[str, EngineState], events: list[tuple[str, Event]]) -> None:
        self._states.update(states)
        self._reported_at = time.monotonic()
        for event in events:
            self._count(*event)

    def _take_answer(self, number: int, answer: Answer[Any] | RequestError) -> None:
        request = self._take(number)
        if request is None or request.future.done():  # nobody waits any more
            return
        if isinstance(answer, RequestError):
            request.future.set_exception(answer)
            return
        for sequence, output in zip(request.sequences, answer.outputs, strict=True):
            sequence.output = output
        request.future.set_result(answer)

    def _take(self, number: int) -> _Sent | None:
        """The request, for the one caller that may answer it."""
        request = self._requests.pop(number, None)
        if request is not None:
            self.load -= request.work
        return request

    def _fail_all(self, error: type[Draining] | type[Broken], reason: str) -> None:
        for number, request in list(self._requests.items()):
            self._take_answer(number, error(f"{request.engine} is broken: {reason}", retry_after_s=5))
