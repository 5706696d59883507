"""A connection that knows what it waits for, since when, and when that is too long or too much."""

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.http.send_buffer import untaken_bytes
from service.http.upgrades import WithoutUpgrades

if TYPE_CHECKING:
    from service.http.connections import Connections

MAX_HEAD_BYTES = 65_536
"""A head that comes in several pieces is refused when those after the first are longer than this."""

ONE_TOO_MANY = b"503 Service Unavailable", b"too many connections", b"retry-after: 1\r\n"


class Connection(WithoutUpgrades):
    """Belongs to all those of a server."""

    def __init__(self, connections: "Connections", **of_uvicorn: Any) -> None:
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
