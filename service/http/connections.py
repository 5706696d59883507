"""Connections: how long each may be silent, and how many there may be.

A sweep looks at all of them about once a second, so that no request starts a timer.
"""

import asyncio
import logging
import math
from collections import deque
from typing import Any

from service.http.connection import MAX_HEAD_BYTES, Connection
from service.metrics import Metrics

logger = logging.getLogger(__name__)

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

    def protocol(self, **of_uvicorn: Any) -> Connection:
        """For a new connection, as uvicorn's `http` wants it."""
        return Connection(self, **of_uvicorn)

    def admit(self, connection: Connection) -> bool:
        """Whether there is room, after one that is idle was closed if need be."""
        if len(self._open) >= self._limit and not self._make_room(connection.loop.time()):
            self.closed("limit")
            return False
        self._open.add(connection)
        self._metrics.connections.set(len(self._open))
        if self._sweep is None:
            self._sweep = connection.loop.call_later(self._sweep_s, self._look_at_all, connection.loop)
        return True

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._open.discard(connection)
        self._metrics.connections.set(len(self._open))

    def let_go(self, connection: Connection) -> None:
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

    def _look_at(self, connections: list[Connection], loop: asyncio.AbstractEventLoop) -> None:
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

    def _next_idle(self) -> Connection | None:
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
