"""The process of a loop: it steps engines, and reads and sends messages between two steps."""

import logging
import mmap
import os
import select
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from service.base.contract import Answer, EngineState, Event
from service.base.errors import Unavailable
from service.engine.engine import Engine
from service.engine.loop import Loop, model_of
from service.engine.scheduler import Sequence
from service.workers.on_demand import OnDemand
from service.workers.wire import READ_BYTES, Unpacker, packed

logger = logging.getLogger(__name__)

REPORT_INTERVAL_S = 0.2

LOOK_S = 0.005
"""How often a loop looks whether a model has been loaded, or may be, while requests wait for that alone."""

MAX_UNSENT_BYTES = 1 << 28
"""A server that reads nothing while so much is to be sent to it is taken for dead."""


class Board:
    """Memory that a loader shares with its loops: what it must know of a loop that has died or hangs.

    Args:
        models: by name.
    """

    def __init__(self, n_workers: int, models: list[str]) -> None:
        self._models = models
        self._beats, self._passing, self._loading, self._served, self._out = (
            memoryview(mmap.mmap(-1, 8 * size)).cast("d") for size in (*[n_workers] * 4, len(models))
        )

    def begin(self, loop: int) -> None:
        """A new process is this loop."""
        self._beats[loop] = self._passing[loop] = self._loading[loop] = self._served[loop] = 0

    def beat(self, loop: int) -> None:
        """This loop goes on."""
        self._beats[loop] = time.monotonic()

    def last_beat(self, loop: int) -> float:
        """When it went on last, in monotonic seconds; 0 while it loads."""
        return self._beats[loop]

    def enter(self, loop: int, engine: str | None) -> None:
        """This loop computes for an engine, or for none."""
        self._passing[loop] = 0 if engine is None else 1 + self._models.index(model_of(engine))

    def load(self, loop: int, model: str | None) -> None:
        """This loop loads a model, or none."""
        self._loading[loop] = 0 if model is None else 1 + self._models.index(model)

    def working_for(self, loop: int) -> str | None:
        """Which model it loads or computes for, or did when it died."""
        number = int(self._loading[loop] or self._passing[loop])
        return self._models[number - 1] if number else None

    def serve(self, loop: int) -> None:
        """This loop has given an answer."""
        self._served[loop] = 1

    def has_served(self, loop: int) -> bool:
        return bool(self._served[loop])

    def take_out(self, model: str) -> None:
        """No loop may compute for this model any more."""
        self._out[self._models.index(model)] = 1

    def taken_out(self) -> list[str]:
        return [model for model, out in zip(self._models, self._out, strict=True) if out]


def serve(
    engines: Mapping[str, Engine[Any] | None],
    probe_interval_s: float,
    number: int,
    board: Board,
    listener: socket.socket,
    lifeline: int,
    on_demand: Callable[[Loop], OnDemand] | None = None,
) -> None:
    """Be a loop until the loader has gone.

    Args:
        number: of this loop.
        listener: where servers connect.
        lifeline: a file descriptor that is at its end when the loader has gone.
        on_demand: makes what loads the engines that are None.
    """
    office = _Office(number, board, listener, lifeline)
    loop = Loop(engines, office.count, probe_interval_s, partial(board.enter, number))
    office.loop = loop
    if on_demand is not None:
        office.serve_on_demand(on_demand(loop))
    office.look_at_board()
    loop.run(office.listen)


class _Connection:
    """One server."""

    def __init__(self, its: socket.socket) -> None:
        its.setblocking(False)
        self.socket = its
        self.unpacker = Unpacker()
        self.futures: dict[int, Future[Answer[Any]]] = {}
        self.unsent = bytearray()
        self.known: dict[str, EngineState] = {}
        """What it was told of each engine."""

    def send(self) -> bool:
        """As much as the socket takes; False where the server has gone."""
        try:
            while self.unsent:
                del self.unsent[: self.socket.send(self.unsent)]
        except BlockingIOError:
            return len(self.unsent) < MAX_UNSENT_BYTES
        except OSError:
            return False
        return True


class _Office:
    """The loop's side of the sockets."""

    loop: Loop
    on_demand: OnDemand | None = None

    def __init__(self, number: int, board: Board, listener: socket.socket, lifeline: int) -> None:
        self._number = number
        self._board = board
        self._listener = listener
        self._lifeline = lifeline
        self._connections: dict[int, _Connection] = {}
        self._incoming = select.poll()
        for source in (listener.fileno(), lifeline):
            self._incoming.register(source, select.POLLIN)
        self._events: list[tuple[str, Event]] = []
        self._reported_at = 0.0

    def serve_on_demand(self, on_demand: OnDemand) -> None:
        self.on_demand = on_demand
        self._incoming.register(on_demand.bell, select.POLLIN)

    def count(self, engine: str, event: Event) -> None:
        """Keep what engines tell metrics until the next report."""
        self._events.append((engine, event))

    def listen(self, timeout_s: float) -> None:
        """Send answers and reports, and take what has come. While the loop has nothing to do, wait for `timeout_s` at
        most."""
        ends_at = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            if now - self._reported_at >= REPORT_INTERVAL_S:
                self._board.beat(self._number)
                self.look_at_board()
                self._report()
                self._reported_at = now
                if self.on_demand is not None:
                    self.on_demand.measure()
            if self.on_demand is not None:
                self.on_demand.look()
            for file, connection in list(self._connections.items()):
                if connection.unsent:
                    self._send(file, connection)
            is_awaited = self.loop.awaited is not None
            wait_s = 0.0 if self.loop.busy else min(LOOK_S if is_awaited else REPORT_INTERVAL_S, ends_at - now)
            for file, _ in self._incoming.poll(max(0.0, 1000 * wait_s)):
                self._take(file)
            if self.loop.busy or is_awaited or now >= ends_at:
                return

    def look_at_board(self) -> None:
        """Other loops may have died of a model."""
        for model in self._board.taken_out():
            self.loop.take_out(model, "it is taken out: two processes have died while they computed for it")

    def _send(self, file: int, connection: _Connection) -> None:
        if not connection.send():
            self._forget(file)
        else:  # what is left is sent when the socket takes more
            self._incoming.modify(file, select.POLLIN | (select.POLLOUT if connection.unsent else 0))

    def _take(self, file: int) -> None:
        if file == self._lifeline:
            os._exit(0)
        if self.on_demand is not None and file == self.on_demand.bell:
            self.on_demand.hear()
        elif file == self._listener.fileno():
            connection = _Connection(self._listener.accept()[0])
            self._connections[connection.socket.fileno()] = connection
            self._incoming.register(connection.socket, select.POLLIN)
            self._reported_at = 0.0  # it is told at once how the engines do
        elif (known := self._connections.get(file)) is not None and not self._receive(known):
            self._forget(file)

    def _receive(self, connection: _Connection) -> bool:
        """False where the server has gone."""
        try:
            received = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        for kind, *content in connection.unpacker.feed(received):
            if kind == "submit":
                self._submit(connection, *content)
            elif (future := connection.futures.get(*content)) is not None:
                future.cancel()
        return bool(received)

    def _forget(self, file: int) -> None:
        connection = self._connections.pop(file)
        self._incoming.unregister(file)
        connection.socket.close()
        for future in list(connection.futures.values()):
            future.cancel()

    def _submit(
        self, connection: _Connection, number: int, engine: str, sequences: list[Sequence[Any]], deadline: float
    ) -> None:
        try:
            future = self.loop.submit(engine, sequences, deadline)
            if self.on_demand is not None:
                self.on_demand.use(engine)
        except Unavailable as refusal:
            connection.unsent += packed("answer", number, refusal)
            return
        connection.futures[number] = future
        future.add_done_callback(partial(self._answer, connection, number))

    def _answer(self, connection: _Connection, number: int, future: Future[Answer[Any]]) -> None:
        del connection.futures[number]
        if not future.cancelled():
            error = future.exception()
            try:
                connection.unsent += packed("answer", number, error or future.result())
            except Exception:  # raised here it would be hidden, and somebody would wait for ever
                logger.critical("an answer cannot be sent", exc_info=True)
                os._exit(1)
            if error is None:
                self._board.serve(self._number)

    def _report(self) -> None:
        states = self.loop.states()
        for number, connection in enumerate(self._connections.values()):
            changed = {name: state for name, state in states.items() if connection.known.get(name) != state}
            events = self._events if number == 0 else []  # each is counted once
            connection.unsent += packed("report", changed, events)
            connection.known.update(changed)
        if self._connections:
            self._events = []
