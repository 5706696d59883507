"""The process of a worker, and the messages to and from it. One thread decodes, and reads messages between steps."""

import gc
import pickle
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from service.contract import Answer
from service.engine.engine import Engine
from service.engine.scheduler import Sequence
from service.errors import StartRefused, Unavailable
from service.metrics import TaskMetrics

Output = TypeVar("Output")

REPORT_INTERVAL_S = 0.2

READ_BYTES = 1 << 18
"""How much one read of a socket asks for."""

_LENGTH = struct.Struct("!Q")

MakeEngine = Callable[[TaskMetrics], Engine[Output]]
"""Makes the engine of a worker in the worker's process, to which it goes by pickle."""


@dataclass(frozen=True)
class Report:
    """How a worker is doing, and what it has counted since the last report."""

    warm: bool
    unready_reason: str | None
    n_waiting: int
    n_running: int
    events: list[tuple[str, tuple[Any, ...]]]


def work(server: socket.socket, make_engine: MakeEngine[Output]) -> None:
    """Load, say so, and answer requests until the server has gone.

    The first message is `(refusal,)`, where None is no refusal. Then it sends `("answer", number, Answer or error)` and
    `("report", Report)`, and reads `("submit", number, sequences, deadline)` and `("cancel", number)`.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # the whole group gets them; the server says when to stop
        signal.signal(signal_number, signal.SIG_IGN)
    recorder: Any = _Recorder()
    try:
        engine = make_engine(recorder)
    except Exception as error:
        server.sendall(packed(f"{error}" if isinstance(error, StartRefused) else f"{type(error).__name__}: {error}"))
        return
    with suppress(OSError):  # the service may have stopped meanwhile; the engine notices when it listens
        server.sendall(packed(None))
    gc.collect()
    gc.freeze()
    engine.run(_Office(server, engine, recorder).listen)


class _Recorder:
    """Keeps what an engine counts until the next report."""

    def __init__(self) -> None:
        self._events: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def record(*arguments: Any) -> None:
            self._events.append((name, arguments))

        setattr(self, name, record)
        return record

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        events, self._events = self._events, []
        return events


class _Office(Generic[Output]):
    """The worker's side of the socket."""

    def __init__(self, server: socket.socket, engine: Engine[Output], recorder: _Recorder) -> None:
        self._server = server
        self._engine = engine
        self._recorder = recorder
        self._unpacker = Unpacker()
        self._incoming = select.poll()
        self._incoming.register(server, select.POLLIN)
        self._futures: dict[int, Future[Answer[Output]]] = {}
        self._unsent: list[tuple[Any, ...]] = []
        self._reported_at = 0.0

    def listen(self, timeout_s: float) -> None:
        """Send answers and reports, and take what has come. While the engine has nothing to do, wait for `timeout_s` at
        most."""
        ends_at = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            if now - self._reported_at >= REPORT_INTERVAL_S:
                self._report(now)
            self._send()
            wait_s = 0.0 if self._engine.busy else min(REPORT_INTERVAL_S, ends_at - now)
            if self._incoming.poll(max(0.0, 1000 * wait_s)) and not self._receive():
                self._give_up()
                return
            if self._engine.busy or now >= ends_at:
                return

    def _receive(self) -> bool:
        """False where the server has gone."""
        try:
            received = self._server.recv(READ_BYTES)
        except OSError:
            return False
        for kind, *content in self._unpacker.feed(received):
            if kind == "submit":
                self._submit(*content)
            elif (future := self._futures.get(*content)) is not None:
                future.cancel()
        return bool(received)

    def _give_up(self) -> None:
        self._engine.drain()
        for future in list(self._futures.values()):
            future.cancel()

    def _submit(self, number: int, sequences: list[Sequence[Output]], deadline: float) -> None:
        try:
            future = self._engine.submit(sequences, deadline)
        except Unavailable as refusal:
            self._unsent.append(("answer", number, refusal))
            return
        self._futures[number] = future
        future.add_done_callback(partial(self._answer, number))

    def _answer(self, number: int, future: Future[Answer[Output]]) -> None:
        del self._futures[number]
        if not future.cancelled():
            self._unsent.append(("answer", number, future.exception() or future.result()))

    def _report(self, now: float) -> None:
        engine = self._engine
        report = Report(
            engine.warm.is_set(), engine.unready_reason(), engine.n_waiting, engine.n_running, self._recorder.take()
        )
        self._unsent.append(("report", report))
        self._reported_at = now

    def _send(self) -> None:
        """An answer that cannot be pickled raises here and ends the engine; raised in a future's callback it would be
        hidden."""
        if self._unsent:
            messages = b"".join(packed(*message) for message in self._unsent)
            with suppress(OSError):  # `_receive` notices that the server has gone
                self._server.sendall(messages)
            self._unsent.clear()


def packed(*content: Any) -> bytes:
    """One message."""
    body = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Finds the messages in what a socket gives, which may end anywhere."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, received: bytes) -> Iterator[tuple[Any, ...]]:
        """The messages that are complete with these bytes."""
        self._received += received
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            end = _LENGTH.size + length
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            yield pickle.loads(body)  # noqa: S301  of a process that the server began
