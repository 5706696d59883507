"""Connections: how long each may be silent, and how many there may be.

A sweep looks at all of them about once a second, so that no request starts a timer.
"""

import asyncio
import logging
import math
from collections import deque
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.base.metrics import Metrics
from service.server.send_buffer import untaken_bytes
from service.server.upgrades import WithoutUpgrades

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 65_536
"""A head that comes in several pieces is refused when those after the first are longer than this."""

ONE_TOO_MANY = b"503 Service Unavailable", b"too many connections", b"retry-after: 1\r\n"

SWEEP_S = 1.0

AT_ONCE = 500
"""Connections that a sweep looks at before requests have their turn."""

OVERHEAD = 8
"""So many times the largest body may come for one request: a body in chunks of a byte each is six times as long."""

LINGER_S = 1.0
"""For so long what a client sends is read and thrown away, once it has been told to go."""

LINGERING = 32
"""Connections of which that is true, at most, beside those that are counted."""

LOG_S = 60.0
"""At most one line in so many seconds tells that the limit of connections is reached."""


class Connections:
    """Keeps the connections of one server within limits.

    Args:
        limit: most connections. One more closes the one that has been idle longest; where none is idle it gets 503.
        head_timeout_s: in which the head of a request must have come, from its first byte or from the connection on.
        send_timeout_s: after which a client is left that has taken nothing of its answer.
        max_body_bytes: of which the application is told. Much more than that is never read, trailers included.
    """

    def __init__(
        self, limit: int, head_timeout_s: float, send_timeout_s: float, max_body_bytes: int, metrics: Metrics
    ) -> None:
        self._limit = limit
        self.max_request_bytes = MAX_HEAD_BYTES + OVERHEAD * max_body_bytes
        self.head_timeout_s = head_timeout_s
        self.send_timeout_s = send_timeout_s
        self._metrics = metrics
        self._sweep_s = min(SWEEP_S, head_timeout_s / 4, send_timeout_s / 4)
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._longest_idle: deque[tuple[float, Connection]] = deque()
        self._leaving: deque[asyncio.Transport] = deque(maxlen=LINGERING)
        self._may_log_at = -math.inf

    def protocol(self, **of_uvicorn: Any) -> "Connection":
        """For a new connection, as uvicorn's `http` wants it."""
        return Connection(self, **of_uvicorn)

    def admit(self, connection: "Connection") -> bool:
        """Whether there is room, after one that is idle was closed if need be."""
        if len(self._open) >= self._limit and not self._make_room(connection.loop.time()):
            self.closed("limit")
            return False
        self._open.add(connection)
        self._metrics.connections.set(len(self._open))
        if self._sweep is None:
            self._sweep = connection.loop.call_later(self._sweep_s, self._look_at_all, connection.loop)
        return True

    def forget(self, connection: "Connection") -> None:
        """It is gone."""
        self._open.discard(connection)
        self._metrics.connections.set(len(self._open))

    def let_go(self, connection: "Connection") -> None:
        """After a last word. To close now, with something unread, would take that word from the client."""
        transport = connection.transport
        transport.write_eof()
        transport.set_protocol(asyncio.Protocol())  # reads on, and closes when the client does
        if len(self._leaving) == LINGERING:
            self._leaving[0].close()
        self._leaving.append(transport)
        connection.loop.call_later(LINGER_S, transport.abort)
        self.forget(connection)

    def closed(self, reason: str) -> None:
        """Count a connection that was closed for this reason."""
        self._metrics.connections_closed.labels(reason).inc()

    def _look_at_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = loop.call_later(self._sweep_s, self._look_at_all, loop) if self._open else None
        self._longest_idle.clear()  # it would keep those that have gone
        self._look_at(list(self._open), loop)

    def _look_at(self, connections: list["Connection"], loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in connections[:AT_ONCE]:
            if connection in self._open:
                connection.look(now)
        if len(connections) > AT_ONCE:
            loop.call_soon(self._look_at, connections[AT_ONCE:], loop)

    def _make_room(self, now: float) -> bool:
        idle = self._next_idle() or self._next_idle()  # the first may find that those it knew are idle no longer
        if now >= self._may_log_at:
            self._may_log_at = now + LOG_S
            what = "idle ones are closed for newcomers" if idle else "and none is idle: newcomers get 503"
            logger.warning("all %d connections are open, %s", self._limit, what)
        if idle is None:
            return False
        self.closed("limit")
        idle.close_for_another()
        return True

    def _next_idle(self) -> "Connection | None":
        """The one that has been idle longest. They are sorted once, and taken one by one as newcomers come."""
        if not self._longest_idle:
            known = ((connection.idle_since(), connection) for connection in self._open)
            idle = [(since, connection) for since, connection in known if since is not None]
            self._longest_idle.extend(sorted(idle, key=lambda item: item[0]))
        while self._longest_idle:
            since, connection = self._longest_idle.popleft()
            if connection in self._open and connection.idle_since() == since:
                return connection
        return None


class Connection(WithoutUpgrades):
    """Belongs to all those of a server."""

    def __init__(self, connections: Connections, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._all = connections
        self._head_since: float | None = None
        """When the connection was first seen waiting for the head it waits for; None while it waits for none."""
        self._head: object = None
        self._started: RequestResponseCycle | None = None
        self._measured: object = None
        self._request_bytes = 0
        self._taken_at = 0.0
        self._untaken = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._head_since = self.loop.time()
        if self._all.admit(self):
            super().connection_made(transport)
        else:
            self.transport = transport
            self._refuse(*ONE_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        if self._started is not None:  # uvicorn tells only the last one that came, though others may be before it
            self._started.disconnected = True
            self._started.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._started = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.more_body or self.cycle.scope is not self.scope:
            self._limit_size(len(data))

    def idle_since(self) -> float | None:
        """None while a request is answered, or an answer is not all sent."""
        if self._is_answering() or self.transport.is_closing() or self.transport.get_write_buffer_size():
            return None
        if self.timeout_keep_alive_task is not None:
            return self.timeout_keep_alive_task.when() - self.timeout_keep_alive
        return self._head_since if self._head is self.scope else None

    def look(self, now: float) -> None:
        """Close the connection if it has waited too long."""
        if self.transport.get_write_buffer_size():
            self._look_at_answer(now)
        elif not self.transport.is_closing():
            self._untaken = 0
            self._look_at_head(now)

    def close_for_another(self) -> None:
        """A request that is under way gets 503; a client that has sent none takes that for the end, as it is."""
        self._refuse(*ONE_TOO_MANY)

    def _limit_size(self, size: int) -> None:
        """Of a request that has not come whole. What came with its first byte may belong to the one before."""
        if self._measured is not self.scope:
            self._measured, self._request_bytes = self.scope, 0
            return
        self._request_bytes += size
        limit = MAX_HEAD_BYTES if self._has_begun_a_head() else self._all.max_request_bytes
        if self._request_bytes <= limit:
            return
        if self._is_answering():
            self.transport.abort()
        else:
            self._refuse(b"431 Request Header Fields Too Large", b"the head of the request is too long")

    def _look_at_answer(self, now: float) -> None:
        untaken = untaken_bytes(self.transport)
        if self._untaken == 0 or untaken < self._untaken:
            self._taken_at = now
        elif now - self._taken_at >= self._all.send_timeout_s:
            self._all.closed("send_timeout")
            self.transport.abort()
        self._untaken = untaken

    def _look_at_head(self, now: float) -> None:
        idles = self.timeout_keep_alive_task is not None and not self._has_begun_a_head()
        if idles or self._is_answering():
            self._head_since = None
        elif self._head_since is None or self._head is not self.scope:
            self._head_since, self._head = now, self.scope
        elif now - self._head_since >= self._all.head_timeout_s:
            self._all.closed("head_timeout")
            if self._has_begun_a_head():
                self._refuse(b"408 Request Timeout", b"the head of the request did not come in time")
            else:
                self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _has_begun_a_head(self) -> bool:
        """A head that begins has a new scope, which its cycle gets when it has ended."""
        return self.scope is not None and (self.cycle is None or self.cycle.scope is not self.scope)

    def _refuse(self, status: bytes, reason: bytes, headers: bytes = b"") -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\n%bconnection: close\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%b"
            % (status, headers, len(reason), reason)
        )
        self.connections.discard(self)
        self.parser = None  # type: ignore[assignment]  # as uvicorn leaves it
        self._all.let_go(self)
