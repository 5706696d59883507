"""An engine in a process of its own, so that decoding never waits for HTTP, nor HTTP for decoding.

Python runs one thread of a process at a time. A step is some hundreds of microseconds of ONNX Runtime between some of
Python; in one process an engine, a second one and the event loop wait for each other at each of these changes.
"""

import atexit
import gc
import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from service.engine import Answer, Engine
from service.errors import Broken, Draining, Starting, StartRefused, Unavailable
from service.metrics import EngineEvents
from service.scheduler import Sequence

logger = logging.getLogger(__name__)

Output = TypeVar("Output")

REPORT_INTERVAL_S = 0.2
SILENCE_S = 5.0
"""A worker that has not reported for this long is not ready."""


class MakeEngine(Protocol[Output]):
    """What a worker is made of: goes to its process by pickle, and there builds the engine."""

    def __call__(self, events: EngineEvents) -> Engine[Output]: ...


@dataclass(frozen=True)
class _Report:
    """How a worker is doing, and what it has counted since the last report."""

    warm: bool
    unready_reason: str | None
    n_waiting: int
    n_running: int
    events: list[tuple[str, tuple[Any, ...]]]


STARTING = _Report(False, "starting", 0, 0, [])


@dataclass(eq=False)
class _Request(Generic[Output]):
    sequences: list[Sequence[Output]]
    future: Future[Answer[Output]] = field(default_factory=Future)

    @property
    def work(self) -> int:
        return sum(sequence.work for sequence in self.sequences)


class Worker(Generic[Output]):
    """Stands for an engine that runs in another process, with the same methods.

    Every accepted request is answered exactly once, also where the process dies. One that has died once it was warm is
    replaced; one that never was would only die again.

    Args:
        name: of the model and the worker, for messages.
        slots: of the engine.
        events: is told what the engine counts.
    """

    def __init__(self, name: str, make_engine: MakeEngine[Output], slots: int, events: EngineEvents) -> None:
        self.name = name
        self.slots = slots
        self.load = 0
        self.warm = threading.Event()
        self._make_engine = make_engine
        self._events = events
        self._lock = threading.Condition()
        self._requests: dict[int, _Request[Output]] = {}
        self._next_number = 0
        self._draining = False
        self._ended = False
        self._report = STARTING
        self._reported_at = time.monotonic()
        self._process = _Process(name, make_engine)
        self._thread = threading.Thread(target=self._supervise, name=f"listen-{name}", daemon=True)
        atexit.register(self.kill)

    @property
    def n_waiting(self) -> int:
        return self._report.n_waiting

    @property
    def n_running(self) -> int:
        return self._report.n_running

    def clock(self) -> float:
        """Monotonic seconds, the same in every process; deadlines are on this clock."""
        return time.monotonic()

    def wait_until_loaded(self) -> None:
        """Raises StartRefused: the engine could not be made."""
        self._process.wait_until_loaded()

    def start(self) -> None:
        """Let the engine begin with its warm-up forward pass."""
        self._thread.start()
        self._process.send("start")

    def submit(self, sequences: list[Sequence[Output]], deadline: float) -> Future[Answer[Output]]:
        """Queue the sequences of one request. Cancelling the future frees its rows within one step.

        Raises:
            Unavailable: starting, draining or broken. That the queue is full comes as the future's error.
        """
        request = _Request(sequences)
        try:
            with self._lock:
                self._refuse_if_unavailable()
                number = self._next_number
                self._next_number += 1
                self._requests[number] = request
                self.load += request.work
        except Unavailable as refusal:
            self._events.rejected(refusal.reason)
            raise
        request.future.add_done_callback(partial(self._notice_cancellation, number))
        self._process.send("submit", number, sequences, deadline)
        return request.future

    def unready_reason(self) -> str | None:
        """Why this worker should get no requests now; None if it should."""
        if self._draining:
            return "draining"
        return self._trouble() or self._report.unready_reason

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered."""
        with self._lock:
            self._draining = True

    def stop(self, timeout_s: float) -> None:
        """Drain, fail what is not answered after `timeout_s`, and end the process."""
        self.drain()
        with self._lock:  # what was let in before draining is among the requests by now
            self._lock.wait_for(lambda: not self._requests or self._ended, timeout_s)
        self._fail_all(Draining(f"{self.name} stopped before this request was answered", retry_after_s=5))
        self._process.end()
        atexit.unregister(self.kill)

    def kill(self) -> None:
        """End the process at once. It ignores the signal with which Python, when it exits, ends its children and waits
        for them."""
        self.drain()
        self._process.kill()

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
        if silent_s > SILENCE_S and self._thread.is_alive():
            return f"the worker process has not reported for {silent_s:.0f} s"
        return None

    def _notice_cancellation(self, number: int, future: Future[Answer[Output]]) -> None:
        if future.cancelled() and self._take(number) is not None:
            self._process.send("cancel", number)

    def _supervise(self) -> None:
        """Listen to the process, and to those that take its place."""
        while True:
            try:
                self._listen()
            finally:
                with self._lock:  # nobody is let in between this and the last answers
                    self._ended = True
                    was_warm = self.warm.is_set()
                    self.warm.clear()
                    self._report = STARTING
                self._fail_all(Broken(f"{self.name} is broken: the worker process has ended", retry_after_s=5))
            if not self._draining:
                logger.critical("%s: the worker process has ended", self.name)
            if not (was_warm and self._replaced()):
                return

    def _listen(self) -> None:
        try:
            while True:
                kind, *content = self._process.receive()
                if kind == "report":
                    self._take_report(*content)
                else:
                    self._take_answer(*content)
        except (EOFError, OSError):
            return  # it has ended

    def _replaced(self) -> bool:
        """Whether another process is there instead of the one that has ended."""
        self._process.end()
        with self._lock:
            if self._draining:
                return False
            self._process = _Process(self.name, self._make_engine)  # from now on `stop` ends this one
        try:
            self._process.wait_until_loaded()
        except StartRefused as refusal:
            logger.critical("%s: the worker process cannot be replaced: %s", self.name, refusal)
            return False
        with self._lock:
            self._ended = False
            self._reported_at = time.monotonic()
        self._process.send("start")
        return True

    def _take_report(self, report: _Report) -> None:
        self._report, self._reported_at = report, time.monotonic()
        for name, arguments in report.events:
            getattr(self._events, name)(*arguments)
        if report.warm:
            self.warm.set()

    def _take_answer(self, number: int, answer: Answer[Output] | BaseException) -> None:
        request = self._take(number)
        if request is None or not request.future.set_running_or_notify_cancel():
            return
        if isinstance(answer, BaseException):
            request.future.set_exception(answer)
            return
        for sequence, output in zip(request.sequences, answer.outputs, strict=True):
            sequence.output = output
        request.future.set_result(answer)

    def _take(self, number: int) -> _Request[Output] | None:
        """The request, for the one caller that may answer it."""
        with self._lock:
            request = self._requests.pop(number, None)
            if request is not None:
                self.load -= request.work
            self._lock.notify_all()
        return request

    def _fail_all(self, error: Unavailable) -> None:
        for number in list(self._requests):
            self._take_answer(number, error)


class _Process(Generic[Output]):
    """A worker process and the line to it. Sending never waits: the event loop sends, and a process may be stuck."""

    def __init__(self, name: str, make_engine: MakeEngine[Output]) -> None:
        self._name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, make_engine), name=name, daemon=True)
        self._process.start()
        theirs.close()
        self._outbox: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        threading.Thread(target=self._post, name=f"send-{name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def wait_until_loaded(self) -> None:
        """Raises StartRefused: the engine could not be made."""
        try:
            refusal = self._connection.recv()
        except (EOFError, OSError):
            raise StartRefused(f"{self._name}: the worker process ended while it was loading the model") from None
        if refusal is not None:
            raise StartRefused(refusal)

    def send(self, *message: Any) -> None:
        """A process that has ended hears nothing."""
        self._outbox.put(message)

    def receive(self) -> Any:
        """Raises EOFError or OSError: the process has ended."""
        return self._connection.recv()

    def end(self) -> None:
        """Ask it to stop, and make sure that it does."""
        self.send("stop")
        self._process.join(2)
        self.kill()
        self._process.join()
        self._outbox.put(None)

    def kill(self) -> None:
        self._process.kill()

    def _post(self) -> None:
        try:
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)
        except OSError:
            return  # it has ended; what it owes is answered by who listens


class _Recorder:
    """Keeps what an engine counts until the next report."""

    def __init__(self) -> None:
        self._events: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self._events.append((name, arguments))

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        events, self._events = self._events, []
        return events


def _work(connection: Connection, make_engine: MakeEngine[Output]) -> None:
    """The worker process: messages in, answers and reports out, until told to stop or the other side has gone."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the server tells when to stop
        signal.signal(signal_number, signal.SIG_IGN)
    recorder: Any = _Recorder()
    try:
        engine = make_engine(recorder)
    except Exception as error:
        connection.send(f"{error}" if isinstance(error, StartRefused) else f"{type(error).__name__}: {error}")
        return
    connection.send(None)
    gc.collect()
    gc.freeze()
    _Office(connection, engine, recorder).serve()


class _Office(Generic[Output]):
    """The worker's side of the connection."""

    def __init__(self, connection: Connection, engine: Engine[Output], recorder: _Recorder) -> None:
        self._connection = connection
        self._engine = engine
        self._recorder = recorder
        self._sending = threading.Lock()
        self._futures: dict[int, Future[Answer[Output]]] = {}
        self._reported_at = 0.0

    def serve(self) -> None:
        try:
            while not self._engine.ended:  # a process whose engine is dead is of no use, and is replaced
                if self._connection.poll(REPORT_INTERVAL_S):
                    kind, *content = self._connection.recv()
                    if kind == "stop":
                        return
                    self._hear(kind, *content)
                if time.monotonic() - self._reported_at >= REPORT_INTERVAL_S:
                    self._report()
        except (EOFError, OSError):
            return  # the server has gone
        finally:
            self._engine.stop(timeout_s=1)

    def _hear(self, kind: str, *content: Any) -> None:
        if kind == "start":
            self._engine.start()
        elif kind == "submit":
            self._submit(*content)
        elif kind == "cancel":
            future = self._futures.get(content[0])
            if future is not None:
                future.cancel()

    def _submit(self, number: int, sequences: list[Sequence[Output]], deadline: float) -> None:
        try:
            future = self._engine.submit(sequences, deadline)
        except Unavailable as refusal:
            self._send("answer", number, refusal)
            return
        self._futures[number] = future
        future.add_done_callback(partial(self._answer, number))

    def _answer(self, number: int, future: Future[Answer[Output]]) -> None:
        self._futures.pop(number, None)
        if not future.cancelled():
            self._send("answer", number, future.exception() or future.result())

    def _report(self) -> None:
        engine = self._engine
        report = _Report(
            engine.warm.is_set(), engine.unready_reason(), engine.n_waiting, engine.n_running, self._recorder.take()
        )
        self._send("report", report)
        self._reported_at = time.monotonic()

    def _send(self, *message: Any) -> None:
        with self._sending:
            self._connection.send(message)
