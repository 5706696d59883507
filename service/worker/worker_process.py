"""The process of a worker: it steps engines, and reads and sends messages between two steps."""

import logging
import math
import mmap
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from service.base.contract import Answer, EngineState, Event
from service.base.counts import add_up
from service.base.errors import Broken, InferenceFailed, QueueFull, Unavailable
from service.engine.engine import Engine
from service.engine.loop import Loop
from service.engine.scheduler import Sequence
from service.passes.wire import READ_BYTES, Unpacker, output_of, packed, plain
from service.worker.on_demand import OnDemand

logger = logging.getLogger(__name__)

REPORT_INTERVAL_S = 0.2

HOLD_SHARE, MAX_HOLD_S = 1 / 8, 0.02
"""While sequences wait for a place, an answer is held for this share of the time that its request took, so that answers
leave together. Each message wakes the server, which takes a core from a worker; what the server reads has left the
core's caches by then."""

LOADING_POLL_S = 0.005
"""How often a worker checks whether a model has been loaded, while all its requests wait for that."""
MAX_UNSENT_BYTES = 1 << 28
"""A server for which more than this is unsent, and which reads nothing, is considered dead."""


class SharedStatus:
    """Memory that a loader shares with its workers: what it needs to know about a worker that has died or hangs.
    `models` are the names of all models."""

    def __init__(self, n_workers: int, models: list[str]) -> None:
        self._models = models
        self._heartbeats, self._computing, self._loading, self._has_answered, self._is_disabled = (
            memoryview(mmap.mmap(-1, 8 * size)).cast("d") for size in (*[n_workers] * 4, len(models))
        )

    def reset(self, worker: int) -> None:
        """Clear the status of a worker for its next process."""
        for values in (self._heartbeats, self._computing, self._loading, self._has_answered):
            values[worker] = 0

    def record_heartbeat(self, worker: int) -> None:
        """Record that a worker is alive."""
        self._heartbeats[worker] = time.monotonic()

    def last_heartbeat(self, worker: int) -> float:
        """Return when a worker was last known to be alive, in monotonic seconds; 0 while it loads."""
        return self._heartbeats[worker]

    def set_computing(self, worker: int, model: str | None) -> None:
        """Record for which model a worker computes, if any."""
        self._computing[worker] = 0 if model is None else 1 + self._models.index(model)

    def set_loading(self, worker: int, model: str | None) -> None:
        """Record which model a worker loads, if any."""
        self._loading[worker] = 0 if model is None else 1 + self._models.index(model)

    def current_model(self, worker: int) -> str | None:
        """Return the model that a worker loads or computes for, or did when it died."""
        number = int(self._loading[worker] or self._computing[worker])
        return self._models[number - 1] if number else None

    def record_answer(self, worker: int) -> None:
        """Record that a worker has given an answer."""
        self._has_answered[worker] = 1

    def has_answered(self, worker: int) -> bool:
        return bool(self._has_answered[worker])

    def disable(self, model: str) -> None:
        """Let no worker compute for this model any more."""
        self._is_disabled[self._models.index(model)] = 1

    def disabled_models(self) -> list[str]:
        return [model for model, is_disabled in zip(self._models, self._is_disabled, strict=True) if is_disabled]


def serve(
    engines: Mapping[str, Engine[Any] | None],
    probe_interval_s: float,
    number: int,
    status: SharedStatus,
    listener: socket.socket,
    lifeline: int,
    on_demand: Callable[[Loop], OnDemand] | None = None,
) -> None:
    """Run a worker until its loader has ended.

    Args:
        number: the number of this worker.
        listener: the socket to which servers connect.
        lifeline: a file descriptor that reaches its end when the loader has ended.
        on_demand: creates the object that loads the engines which are None.
    """
    server = _SocketServer(number, status, listener, lifeline)
    loop = Loop(engines, server.record_event, probe_interval_s, partial(status.set_computing, number))
    server.loop = loop
    if on_demand is not None:
        server.load_on_demand(on_demand(loop))
    server.disable_models()
    loop.warm_up()
    while True:
        server.listen(loop.pause_s)
        loop.advance()


class _Connection:
    def __init__(self, its: socket.socket) -> None:
        its.setblocking(False)
        self.socket = its
        self.file = its.fileno()
        self.unpacker = Unpacker()
        self.futures: dict[int, Future[Answer[Any]]] = {}
        self.unsent = bytearray()
        self.is_full = False
        """Whether the socket took only a part, and is polled for when it takes more."""
        self.reported: dict[str, EngineState] = {}
        """The last reported state of each engine."""


class _SocketServer:
    """Connects the loop of a worker to the servers, over Unix sockets."""

    loop: Loop
    on_demand: OnDemand | None = None

    def __init__(self, number: int, status: SharedStatus, listener: socket.socket, lifeline: int) -> None:
        self._number = number
        self._status = status
        self._listener = listener
        self._lifeline = lifeline
        self._connections: dict[int, _Connection] = {}
        self._sending: set[_Connection] = set()
        """Connections with unsent messages."""
        self._send_at = math.inf
        """When these are sent."""
        self._polled_at = -math.inf
        """When the last step began."""
        self._poll = select.poll()
        for source in (listener.fileno(), lifeline):
            self._poll.register(source, select.POLLIN)
        self._events: deque[tuple[str, Event]] = deque()
        self._reported_at = 0.0

    def load_on_demand(self, on_demand: OnDemand) -> None:
        self.on_demand = on_demand
        self._poll.register(on_demand.wakeup_fd, select.POLLIN)

    def record_event(self, engine: str, event: Event) -> None:
        """Keep an event until the next report."""
        self._events.append((engine, event))

    def listen(self, timeout_s: float) -> None:
        """Send answers and reports, and receive messages until `timeout_s` or the next report."""
        now = time.monotonic()
        if now - self._reported_at >= REPORT_INTERVAL_S:
            self._status.record_heartbeat(self._number)
            self.disable_models()
            self._report()
            self._reported_at = now
            if self.on_demand is not None:
                self.on_demand.report_memory()
        wait_s = min(timeout_s, REPORT_INTERVAL_S)
        if self.on_demand is not None:
            if self.on_demand.advance():
                wait_s = 0.0
            elif self.loop.awaited_model is not None:
                wait_s = min(wait_s, LOADING_POLL_S)
        step_s = now - self._polled_at
        if now + step_s >= self._send_at:  # the next step may take as long as the last one
            for connection in list(self._sending):
                self._send(connection)
            self._send_at = math.inf
        wait_s = min(wait_s, max(0.0, self._send_at - now))
        for file, event in self._poll.poll(1000 * wait_s):
            if file in self._connections:
                if event & select.POLLOUT:
                    self._send_at = -math.inf
                self._receive(self._connections[file])
            elif file == self._listener.fileno():
                self._accept()
            elif file == self._lifeline:
                os._exit(0)
            elif self.on_demand is not None and file == self.on_demand.wakeup_fd:
                self.on_demand.wake_up()
        self._polled_at = time.monotonic()

    def disable_models(self) -> None:
        """Disable the models for which workers have died, this one or others."""
        for model in self._status.disabled_models():
            self.loop.disable(model, "it is disabled: two processes have died while they computed for it")

    def _accept(self) -> None:
        connection = _Connection(self._listener.accept()[0])
        self._connections[connection.file] = connection
        self._poll.register(connection.socket, select.POLLIN)
        self._reported_at = 0.0  # report immediately: a new server knows no states

    def _queue(self, connection: _Connection, *content: Any, send_at: float = -math.inf) -> None:
        """A message is sent after this step or later, together with others."""
        connection.unsent += packed(*content)
        self._sending.add(connection)
        self._send_at = min(self._send_at, send_at)

    def _send(self, connection: _Connection) -> None:
        """Send as much as the socket takes, and poll for when it takes more."""
        is_alive = True
        try:
            while connection.unsent:
                del connection.unsent[: connection.socket.send(connection.unsent)]
            self._sending.remove(connection)
        except BlockingIOError:
            is_alive = len(connection.unsent) < MAX_UNSENT_BYTES
        except OSError:
            is_alive = False
        if not is_alive:
            self._close(connection)
        elif connection.is_full != bool(connection.unsent):
            connection.is_full = bool(connection.unsent)
            self._poll.modify(connection.file, select.POLLIN | (select.POLLOUT if connection.is_full else 0))

    def _receive(self, connection: _Connection) -> None:
        try:
            received = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        for kind, *content in connection.unpacker.feed(received):
            if kind == "submit":
                self._submit(connection, *content)
            elif (future := connection.futures.get(*content)) is not None:
                future.cancel()
        if not received:  # the server has ended
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        """Forget a connection, and cancel its requests."""
        del self._connections[connection.file]
        self._sending.discard(connection)
        self._poll.unregister(connection.file)
        connection.socket.close()
        for future in list(connection.futures.values()):
            future.cancel()

    def _submit(
        self, connection: _Connection, number: int, engine: str, sequences: list[tuple[Any, ...]], deadline: float
    ) -> None:
        try:
            made = [Sequence(ids, output_of(output), *others) for output, ids, *others in sequences]
            future = self.loop.submit(engine, made, deadline)
            if self.on_demand is not None:
                self.on_demand.note_use(engine)
        except Unavailable as refusal:
            self._queue(connection, "answer", number, refusal)
            return
        connection.futures[number] = future
        future.add_done_callback(partial(self._answer, connection, number, engine))

    def _answer(self, connection: _Connection, number: int, engine: str, future: Future[Answer[Any]]) -> None:
        del connection.futures[number]
        if not future.cancelled():
            error = future.exception()
            if isinstance(error, Broken | InferenceFailed):
                self._reported_at = 0.0  # report with this answer: a broken worker is idle, and would get all requests
            elif isinstance(error, QueueFull):
                connection.reported.clear()  # a server takes its state, and must learn when it is the former one again
            try:
                if error is None:
                    outputs, *times = future.result()
                    hold_s = min(MAX_HOLD_S, HOLD_SHARE * sum(times)) if self.loop.is_full(engine) else 0.0
                    answer = [*map(plain, outputs)], *times
                    self._queue(connection, "answer", number, answer, send_at=time.monotonic() + hold_s)
                else:
                    self._queue(connection, "answer", number, error)
            except Exception:  # if it were raised, the future would drop it, and the client would wait for ever
                logger.critical("an answer cannot be sent", exc_info=True)
                os._exit(1)
            if error is None:
                self._status.record_answer(self._number)

    def _report(self) -> None:
        """All servers get the states that have changed, and one of them what the engines did."""
        states = self.loop.states()
        for connection in self._connections.values():
            changed = {name: state for name, state in states.items() if connection.reported.get(name) != state}
            self._queue(connection, "report", changed, add_up(self._events))  # the first one takes all events
            connection.reported.update(changed)
