"""How long each connection may be silent, and how many there may be.

A sweep looks at all connections about once a second, so that no request needs a timer of its own. The private parts of
uvicorn that this module relies on are listed in tests/service/server/test_uvicorn_contract.py.
"""

import asyncio
import logging
import math
import resource
from collections import deque
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.base.log import LOG_INTERVAL_S
from service.base.metrics import Metrics
from service.http.live import LIVE_PATH
from service.server.joined_write import JoinedWrite
from service.server.live_connection import LiveConnection
from service.server.send_buffer import SendProgress

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 65_536
"""Limit of the bytes of a request's head that come after its first piece."""
TOO_MANY_CONNECTIONS = b"503 Service Unavailable", b"too many connections", b"retry-after: 1\r\n"

SWEEP_INTERVAL_S = 1.0

MAX_CHECKED_AT_ONCE = 500
"""Connections that a sweep checks before the event loop serves requests again."""
MAX_BODY_OVERHEAD = 8
"""How many times the largest body may come as bytes of one request. Chunks of one byte each take six times as much."""
LINGER_S = 1.0
"""How long a refused connection is still read, so that its client can read why."""
MAX_LINGERING = 32
"""Refused connections that linger at a time. They are not counted among the others."""
RESERVED_DESCRIPTORS = 64
"""Descriptors for files, the log and the sockets of workers."""
MAX_CONNECTIONS = 10_000
"""A sweep over this many connections takes some hundredths of a second."""


def max_connections() -> int:
    """Return the limit of connections: less than MAX_CONNECTIONS if there are too few descriptors. The soft limit of
    descriptors is raised to the hard one."""
    descriptors = _max_descriptors()
    if descriptors is None:
        return MAX_CONNECTIONS
    return min(max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2), MAX_CONNECTIONS)


def _max_descriptors() -> int | None:
    """Return the limit of descriptors; None if there is none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):
        pass  # macOS refuses some limits that it names
    return None if soft == resource.RLIM_INFINITY else soft


class Connections:
    """The connections of one server, and their limits.

    Args:
        limit: most connections. One more closes the one that has been idle longest; if none is idle it gets 503.
        head_timeout_s: time for the head of a request, from its first byte or from the start of the connection.
        send_timeout_s: time after which a client that takes nothing of its answer is disconnected.
        max_body_bytes: the application's limit. Not much more than this is read of a request, trailers included.
        max_message_bytes: the application's limit of a message on a WebSocket.
    """

    def __init__(
        self,
        limit: int,
        head_timeout_s: float,
        send_timeout_s: float,
        max_body_bytes: int,
        metrics: Metrics,
        max_message_bytes: int = MAX_HEAD_BYTES,
    ) -> None:
        self._limit = limit
        self.max_request_bytes = MAX_HEAD_BYTES + MAX_BODY_OVERHEAD * max_body_bytes
        self.max_message_bytes = max_message_bytes
        self.head_timeout_s = head_timeout_s
        self.send_timeout_s = send_timeout_s
        self._metrics = metrics
        self._sweep_interval_s = min(SWEEP_INTERVAL_S, head_timeout_s / 4, send_timeout_s / 4)
        self._open: set[AnyConnection] = set()
        self._next_sweep: asyncio.TimerHandle | None = None
        self._longest_idle: deque[tuple[float, Connection]] = deque()
        self._lingering: deque[asyncio.Transport] = deque(maxlen=MAX_LINGERING)
        self._may_log_limit_at = self._may_log_noise_at = -math.inf

    def protocol(self, **uvicorn_arguments: Any) -> "Connection":
        """Return the protocol of a new connection; uvicorn's option `http` takes this method."""
        return Connection(self, **uvicorn_arguments)

    def live_protocol(self, **uvicorn_arguments: Any) -> LiveConnection:
        """Return the protocol of a WebSocket; uvicorn's option `ws` takes this method."""
        return LiveConnection(self, self.max_message_bytes, **uvicorn_arguments)

    def admit(self, connection: "AnyConnection") -> bool:
        """Return whether there is room for a new connection, after closing an idle one if needed."""
        if len(self._open) >= self._limit and not self._make_room(connection.loop.time()):
            self.count_closed("limit")
            return False
        self._open.add(connection)
        self._metrics.connections.set(len(self._open))
        if self._next_sweep is None:
            self._next_sweep = connection.loop.call_later(self._sweep_interval_s, self._sweep, connection.loop)
        return True

    def forget(self, connection: "AnyConnection") -> None:
        """Remove a connection that is closed."""
        self._open.discard(connection)
        self._metrics.connections.set(len(self._open))

    def linger(self, connection: "Connection") -> None:
        """Close a connection after its last answer. At once, with bytes unread, the client would lose that answer."""
        transport = connection.transport
        transport.write_eof()
        transport.set_protocol(asyncio.Protocol())  # reads on, and closes when the client does
        if len(self._lingering) == MAX_LINGERING:
            self._lingering[0].close()
        self._lingering.append(transport)
        connection.loop.call_later(LINGER_S, transport.abort)
        self.forget(connection)

    def count_closed(self, reason: str) -> None:
        self._metrics.connections_closed.labels(reason).inc()

    def log_noise(self, now: float) -> None:
        """Log that a client sent no valid HTTP/1.1, unless there was such a line a moment ago."""
        if now >= self._may_log_noise_at:
            self._may_log_noise_at = now + LOG_INTERVAL_S
            logger.info("a client got 400: it did not send valid HTTP/1.1; TLS and HTTP/2 are not supported")

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_sweep = loop.call_later(self._sweep_interval_s, self._sweep, loop) if self._open else None
        self._longest_idle.clear()  # it would keep closed connections alive
        self._check(list(self._open), loop)

    def _check(self, connections: list["AnyConnection"], loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in connections[:MAX_CHECKED_AT_ONCE]:
            if connection in self._open:
                connection.check_timeouts(now)
        if len(connections) > MAX_CHECKED_AT_ONCE:
            loop.call_soon(self._check, connections[MAX_CHECKED_AT_ONCE:], loop)

    def _make_room(self, now: float) -> bool:
        idle = self._next_idle() or self._next_idle()  # the first call may find only connections that are busy again
        if now >= self._may_log_limit_at:
            self._may_log_limit_at = now + LOG_INTERVAL_S
            effect = "idle ones are closed for new ones" if idle else "and none is idle: new ones get 503"
            logger.warning("all %d connections are open, %s", self._limit, effect)
        if idle is None:
            return False
        self.count_closed("limit")
        idle.refuse(*TOO_MANY_CONNECTIONS)  # if it has sent no request, its client takes this for a plain close
        return True

    def _next_idle(self) -> "Connection | None":
        """Return the connection that has been idle longest. Connections are sorted once and taken one by one."""
        if not self._longest_idle:
            known = [connection for connection in self._open if isinstance(connection, Connection)]
            idle = [(since, connection) for connection in known if (since := connection.idle_since()) is not None]
            self._longest_idle.extend(sorted(idle, key=lambda item: item[0]))
        while self._longest_idle:
            since, connection = self._longest_idle.popleft()
            if connection in self._open and connection.idle_since() == since:
                return connection
        return None


class Connection(HttpToolsProtocol):
    """One connection: uvicorn's protocol, with limits.

    A WebSocket at LIVE_PATH gets a protocol of its own. Any other request that offers another protocol, as Java's
    HttpClient does by default (Upgrade: h2c), is answered as if it offered none (RFC 9110, 7.8). uvicorn would lose its
    body: the parser stops where the other protocol would begin. So the head is parsed a second time, without the offer.
    """

    def __init__(self, connections: Connections, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._all = connections
        self._head_since: float | None = None
        """When the connection was first seen waiting for its next head; None while it does not wait."""
        self._head: object = None
        self._started: RequestResponseCycle | None = None
        self._answer: JoinedWrite | None = None
        """The answer to the latest request."""
        self._measured: object = None
        self._request_bytes = 0
        self._sending = SendProgress()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._head_since = self.loop.time()
        if self._all.admit(self):
            super().connection_made(transport)
        else:
            self.transport = transport
            self.refuse(*TOO_MANY_CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        if self._started is not None:  # uvicorn tells only the newest request, while an older one may still run
            self._started.disconnected = True
            self._started.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._started = cycle
        self._answer = JoinedWrite(cycle, self.transport)
        cycle.transport = self._answer  # type: ignore[assignment]  # it has the methods that a cycle calls
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        assert self._answer is not None, "the answer has begun"
        self._answer.flush()  # the answer to HEAD has no body
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse_noise()
            if self.transport.is_closing():
                return
        if self.cycle is None or self.cycle.more_body or self.cycle.scope is not self.scope:
            self._limit_size(len(data))

    def _should_upgrade(self) -> bool:
        """uvicorn must not answer a request while its parser still sees the offer."""
        return True

    def idle_since(self) -> float | None:
        """Return when the connection became idle; None while a request is answered, or an answer is being sent."""
        if self._is_answering() or self.transport.is_closing() or self.transport.get_write_buffer_size():
            return None
        if self.timeout_keep_alive_task is not None:
            return self.timeout_keep_alive_task.when() - self.timeout_keep_alive
        return self._head_since if self._head is self.scope else None

    def check_timeouts(self, now: float) -> None:
        """Close the connection if its client has been silent for too long."""
        if self._sending.stuck_s(self.transport, now) >= self._all.send_timeout_s:
            self._all.count_closed("send_timeout")
            self.transport.abort()
        elif not self.transport.get_write_buffer_size() and not self.transport.is_closing():
            self._check_head(now)

    def refuse(self, status: bytes, reason: bytes, headers: bytes = b"") -> None:
        """Send a last answer and close the connection."""
        self.transport.write(
            b"HTTP/1.1 %b\r\n%bconnection: close\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%b"
            % (status, headers, len(reason), reason)
        )
        self.connections.discard(self)
        self.parser = None  # type: ignore[assignment]  # as in uvicorn's connection_lost
        self._all.linger(self)

    def _parse(self, data: bytes | memoryview) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if self._offers_live_socket() and not self._is_answering():
                    self._all.forget(self)
                    self.handle_websocket_upgrade()
                    return
                self._parse_without_offer()
                data = memoryview(data)[upgrade.args[0] :]
            else:
                return

    def _offers_live_socket(self) -> bool:
        is_at_path = self.url.partition(b"?")[0].endswith(LIVE_PATH.encode())
        return is_at_path and self._get_upgrade() == b"websocket" and self._should_upgrade_to_ws()

    def _parse_without_offer(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise httptools.HttpParserError("this server is no proxy")
        head = [b"%b %b HTTP/%b\r\n" % (method, self.url, version)]
        head += [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn's constructor
        self.parser.feed_data(b"".join([*head, b"\r\n"]))

    def _refuse_noise(self) -> None:
        """Refuse bytes that are no HTTP. Earlier requests are answered first, and then the connection closes: their
        client would take 400 for one of these answers."""
        self._all.log_noise(self.loop.time())
        if self.pipeline and self.cycle.more_body:  # the noise is in the body of a request that waits
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else self._started  # type: ignore[assignment]
        if not self._is_answering() or (self.cycle.more_body and not self.cycle.response_started):
            self.send_400_response("Invalid HTTP request received.")
            if self.cycle is not None:  # nothing follows this answer
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        elif self.cycle.more_body:
            self.transport.abort()
        else:
            self.cycle.keep_alive = False

    def _limit_size(self, size: int) -> None:
        """Limit the bytes of a request that has not come whole. Its first piece may belong to the request before."""
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
            self.refuse(b"431 Request Header Fields Too Large", b"the head of the request is too long")

    def _check_head(self, now: float) -> None:
        is_kept_alive = self.timeout_keep_alive_task is not None and not self._has_begun_a_head()
        if is_kept_alive or self._is_answering():
            self._head_since = None
        elif self._head_since is None or self._head is not self.scope:
            self._head_since, self._head = now, self.scope
        elif now - self._head_since >= self._all.head_timeout_s:
            self._all.count_closed("head_timeout")
            if self._has_begun_a_head():
                self.refuse(b"408 Request Timeout", b"the head of the request did not come in time")
            else:
                self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _has_begun_a_head(self) -> bool:
        """A head that is being read has a new scope, which gets a cycle once the head is complete."""
        return self.scope is not None and (self.cycle is None or self.cycle.scope is not self.scope)


AnyConnection = Connection | LiveConnection
