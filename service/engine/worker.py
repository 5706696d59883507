"""An engine in a process of its own, so that decoding never waits for HTTP, nor HTTP for decoding.

Python runs one thread of a process at a time. A step is some hundreds of microseconds of ONNX Runtime between some of
Python; in one process an engine, a second one and the event loop wait for each other at each of these changes. The
event loop itself talks to the processes: a thread between them would cost a request as much as all of HTTP.
"""

import asyncio
import atexit
import logging
import multiprocessing
import socket
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from service.contract import Answer
from service.engine.scheduler import Sequence
from service.engine.worker_process import READ_BYTES, MakeEngine, Report, Unpacker, packed, work
from service.errors import Broken, Draining, Starting, StartRefused, Unavailable
from service.metrics import TaskMetrics

logger = logging.getLogger(__name__)

Output = TypeVar("Output")

SILENCE_S = 5.0
"""A worker that has not reported for this long is not ready."""

HUNG_S, LOADING_S = 60.0, 600.0
"""A worker that has not reported for HUNG_S, or is not warm after LOADING_S, is taken for dead and replaced."""

LOOK_S = 5.0
"""How often workers are checked for that."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Pauses before a process that never served is replaced; each is twice the one before."""

_REPLACING = ThreadPoolExecutor(64, thread_name_prefix="replacing")
"""Threads for replacing workers, enough for all at once: nothing that stops the engines may wait for a process that
loads."""

STARTING = Report(False, "starting", 0, 0, [])


@dataclass(frozen=True)
class _Sent(Generic[Output]):
    """A request that the process was sent and has not answered."""

    sequences: list[Sequence[Output]]
    work: int
    future: "asyncio.Future[Answer[Output]]"


class Worker(Generic[Output]):
    """Stands for an engine that runs in another process, with the same methods, for one event loop.

    Every accepted request is answered exactly once, also where the process dies. One that has died is replaced: at once
    where it has served, and else after a pause, which grows while processes die before they have answered.

    Args:
        name: of the model and the worker, for messages.
        slots: of the engine.
        metrics: of what the engine counts.
    """

    def __init__(self, name: str, make_engine: MakeEngine[Output], slots: int, metrics: TaskMetrics) -> None:
        self.name = name
        self.slots = slots
        self.load = 0
        """Work of the requests that are accepted and not answered."""
        self.clock = time.monotonic
        """The same in every process; deadlines are on this clock."""
        self.warm = threading.Event()
        """Set when the first forward pass has been tried; requests are refused before."""
        self._make_engine = make_engine
        self._metrics = metrics
        self._requests: dict[int, _Sent[Output]] = {}
        self._next_number = 0
        self._draining = False
        self._ended = False
        self._has_served = False
        """Whether this process has given an answer."""
        self._report = STARTING
        self._reported_at = 0.0
        self._process = _Process(name, make_engine)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def n_waiting(self) -> int:
        return self._report.n_waiting

    @property
    def n_running(self) -> int:
        return self._report.n_running

    def wait_until_loaded(self) -> None:
        """Raises StartRefused: the engine could not be made."""
        self._process.wait_until_loaded()

    def start(self) -> None:
        """Listen to the process from the running event loop, in which all requests are submitted from now on."""
        self._loop = asyncio.get_running_loop()
        self._supervision = [self._loop.create_task(one) for one in (self._supervise(), self._end_what_hangs())]

    def submit(self, sequences: list[Sequence[Output]], deadline: float) -> "asyncio.Future[Answer[Output]]":
        """Queue the sequences of one request. Cancelling the future frees its rows within one step.

        Raises:
            Unavailable: starting, draining or broken. That the queue is full comes as the future's error.
        """
        self._refuse_if_unavailable()
        work = sum([sequence.work for sequence in sequences])
        request = _Sent(sequences, work, asyncio.get_running_loop().create_future())
        number = self._next_number
        self._next_number += 1
        self._requests[number] = request
        self.load += request.work
        self._process.send("submit", number, sequences, deadline)
        request.future.add_done_callback(partial(self._notice_cancellation, number))
        return request.future

    def unready_reason(self) -> str | None:
        """Why this worker should get no requests now; None if it should."""
        if self._draining:
            return "draining"
        return self._trouble() or self._report.unready_reason

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered."""
        self._draining = True

    def stop(self, timeout_s: float) -> None:
        """Drain, fail what is not answered after `timeout_s`, and end the process; from another thread than the event
        loop's, which goes on meanwhile."""
        self.drain()
        if self._loop is not None and self._loop.is_running():  # else nobody waits for an answer any more
            asyncio.run_coroutine_threadsafe(self._answer_the_rest(timeout_s), self._loop).result()
        self._process.end()

    async def _answer_the_rest(self, timeout_s: float) -> None:
        if self._requests:
            await asyncio.wait([request.future for request in self._requests.values()], timeout=timeout_s)
        for task in self._supervision:
            task.cancel()
        self._fail_all(Draining(f"{self.name} stopped before this request was answered", retry_after_s=5))

    def _refuse_if_unavailable(self) -> None:
        if self._draining:
            raise Draining(f"{self.name} is draining and takes no new requests", retry_after_s=5)
        if (trouble := self._trouble()) is not None:
            raise Broken(f"{self.name} is broken: {trouble}", retry_after_s=5)
        if not self.warm.is_set():
            raise Starting(f"{self.name} is starting")

    def _trouble(self) -> str | None:
        """Why the process cannot be asked for anything; None if it can."""
        if self._ended:
            return "the worker process has ended"
        silent_s = time.monotonic() - self._reported_at
        if silent_s > SILENCE_S and self.warm.is_set():
            return f"the worker process has not reported for {silent_s:.0f} s"
        return None

    def _notice_cancellation(self, number: int, future: "asyncio.Future[Answer[Output]]") -> None:
        if future.cancelled() and self._take(number) is not None:
            self._process.send("cancel", number)

    async def _supervise(self) -> None:
        """Listen to the process, and to those that take its place."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async for kind, *content in self._process.messages():
                    if kind == "report":
                        self._take_report(*content)
                    else:
                        self._take_answer(*content)
            except Exception:  # nobody may be left waiting for the answers that were to come
                logger.exception("%s: a message of the worker process cannot be read", self.name)
            self._ended = True
            if self._has_served:
                pause_s = 0.0
            self._has_served = False
            self.warm.clear()
            self._report = STARTING
            self._fail_all(Broken(f"{self.name} is broken: the worker process has ended", retry_after_s=5))
            if self._draining:
                return
            logger.critical("%s: the worker process has ended", self.name)
            while self._ended:
                await asyncio.sleep(pause_s)
                pause_s = min(max(FIRST_PAUSE_S, 2 * pause_s), LONGEST_PAUSE_S)
                await self._try_to_replace()

    async def _end_what_hangs(self) -> None:
        """Kill a process that lives but makes no progress; it is then replaced as if it had died.

        Silence is counted in checks, not by the clock: a worker is not to blame when the whole service was paused.
        """
        silent_s = 0.0
        while True:
            await asyncio.sleep(LOOK_S)
            is_warm = self.warm.is_set()
            is_silent = not self._ended and (self._trouble() is not None or not is_warm)
            silent_s = silent_s + LOOK_S if is_silent else 0.0
            if silent_s >= (HUNG_S if is_warm else LOADING_S):
                logger.critical("%s: the worker process hangs and is killed", self.name)
                self._process.child.kill()
                silent_s = 0.0

    async def _try_to_replace(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(_REPLACING, self._process.end)
        try:
            self._process = _Process(self.name, self._make_engine)
            await loop.run_in_executor(_REPLACING, self._process.wait_until_loaded)
        except Exception as error:  # whatever it is: nothing else would try again
            logger.critical("%s: the worker process cannot be replaced now: %s", self.name, error)
        else:
            self._ended = False

    def _take_report(self, report: Report) -> None:
        self._report, self._reported_at = report, time.monotonic()
        for name, arguments in report.events:
            getattr(self._metrics, name)(*arguments)
        if report.warm:
            self.warm.set()

    def _take_answer(self, number: int, answer: Answer[Output] | BaseException) -> None:
        self._has_served = self._has_served or isinstance(answer, Answer)
        request = self._take(number)
        if request is None or request.future.done():  # nobody waits any more
            return
        if isinstance(answer, BaseException):
            request.future.set_exception(answer)
            return
        for sequence, output in zip(request.sequences, answer.outputs, strict=True):
            sequence.output = output
        request.future.set_result(answer)

    def _take(self, number: int) -> _Sent[Output] | None:
        """The request, for the one caller that may answer it."""
        request = self._requests.pop(number, None)
        if request is not None:
            self.load -= request.work
        return request

    def _fail_all(self, error: Unavailable) -> None:
        for number in list(self._requests):
            self._take_answer(number, error)


class _Process(Generic[Output]):
    """A worker process and the socket to it."""

    def __init__(self, name: str, make_engine: MakeEngine[Output]) -> None:
        self._name = name
        self._joining = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self.child = multiprocessing.get_context("spawn").Process(
            target=work, args=(theirs, make_engine), name=name, daemon=True
        )
        self.child.start()
        theirs.close()
        self._unpacker = Unpacker()
        self._outgoing: asyncio.StreamWriter | None = None
        # When Python exits, it sends its children SIGTERM and waits for them; a worker ignores that signal.
        atexit.register(self.child.kill)

    def wait_until_loaded(self) -> None:
        """Raises StartRefused: the engine could not be made."""
        if (refusal := self._refusal()) is not None:
            self.end()
            raise StartRefused(refusal)

    def _refusal(self) -> str | None:
        """The first message: why the engine could not be made; None if it was."""
        self._socket.settimeout(LOADING_S)
        try:
            while received := self._socket.recv(READ_BYTES):
                for (refusal,) in self._unpacker.feed(received):
                    return str(refusal) if refusal is not None else None
        except TimeoutError:
            return f"{self._name}: the worker process has not loaded the model in {LOADING_S:.0f} s"
        return f"{self._name}: the worker process ended while it was loading the model"

    async def messages(self) -> AsyncIterator[tuple[Any, ...]]:
        """What the process sends, until it has ended."""
        incoming, self._outgoing = await asyncio.open_unix_connection(sock=self._socket)
        try:
            while received := await incoming.read(READ_BYTES):
                for message in self._unpacker.feed(received):
                    yield message
        except OSError:
            return
        finally:
            self._outgoing.close()

    def send(self, *message: Any) -> None:
        """Never waits, since the process may be stuck: the event loop sends. A process that has ended gets nothing."""
        assert self._outgoing is not None, "nobody sends to a process that has reported nothing yet"
        self._outgoing.write(packed(*message))

    def end(self) -> None:
        """Kill it now: its requests have been answered."""
        self.child.kill()
        with self._joining:  # of two threads that wait for a child at once, one takes it for alive
            self.child.join()
        atexit.unregister(self.child.kill)
        if self._outgoing is None:
            self._socket.close()
