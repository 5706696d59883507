"""ASGI middleware for request ids, limits of bodies, cancellation when a client leaves, errors, metrics and the log."""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from time import perf_counter
from types import MappingProxyType

from opentelemetry.trace import Tracer
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.access.addresses import client_at
from service.base.errors import BodyTooSlow, ClientGone, Draining, InferenceFailed, RequestError, TooLarge, unexpected
from service.base.log import escaped
from service.base.metrics import Metrics
from service.front.serving import Serving
from service.http.dialect import AnyDialect, Dialects
from service.http.spans import RequestSpans, spans_of_request
from service.http.traces import TRACE_ID, traceparent_of
from service.schemas.timing import Timing
from service.tasks.context import Context

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]

REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")

OPERATIONS = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Paths that machines request all the time; their lines would hide the others in the log."""

UNMATCHED = "unmatched"
"""The route label in metrics if no route matches. Only the log has the path."""

UNMATCHED_PAUSE_S = 1.0
"""Seconds between logged paths without a route, if there is no access log. They show a wrong prefix of a proxy, for
which one line is enough: strangers may try many paths."""


class Middleware:
    """Gives every request an id and a timing, answers its errors, counts it once, and logs it if the setting says so.

    Args:
        dialects: the dialects enabled on this server; each answers errors in its own shape.
        direct_handlers: handlers of POST by path, called without FastAPI's routing, which takes as long as they do.
        max_body_bytes, body_timeout_s: a larger or slower body is refused without reading the rest.
        max_bytes_at: limits of single paths.
        tracer: makes the spans of requests that are traced; None if none is.
        access_log: whether to log a line for each request; otherwise only some requests without a route are logged.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        serving: Serving,
        dialects: Dialects,
        direct_handlers: Mapping[str, Handler],
        max_body_bytes: int,
        body_timeout_s: float,
        access_log: bool,
        max_bytes_at: Mapping[str, int] = MappingProxyType({}),
        tracer: Tracer | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._serving = serving
        self._dialects = dialects
        self._direct_handlers = direct_handlers
        self._max_body_bytes = max_body_bytes
        self._max_bytes_at = max_bytes_at
        self._body_timeout_s = body_timeout_s
        self._access_log = access_log
        self._tracer = tracer
        self._unmatched_logged_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        method = scope["method"]
        if method == "HEAD":  # the server then sends no body
            scope = {**scope, "method": "GET"}
        dialect = self._dialects.of(scope["path"])
        handle = self._direct_handlers.get(scope["path"]) if method == "POST" else None
        max_body_bytes = self._max_bytes_at.get(scope["path"], self._max_body_bytes)
        spans = spans_of_request(self._tracer, scope) if self._tracer is not None else None
        exchange = _Exchange(scope, receive, send, self._serving, max_body_bytes, self._body_timeout_s, spans)
        if spans is not None:
            spans.attributes |= {"attend.dialect": dialect.name, "attend.request_id": exchange.request_id}
            if handle is not None:
                spans.found_route(method, scope["path"])
        try:
            if handle is None:
                await self._app(scope, exchange.receive, exchange.send)
            else:
                answer = await handle(Request(scope, exchange.receive))
                await answer(scope, exchange.receive, exchange.send)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in a library of Rust is not an Exception
            await exchange.fail(error, dialect)
        finally:
            exchange.end()
            route = scope["path"] if handle else getattr(scope.get("route"), "path_format", UNMATCHED)
            if spans is not None:
                spans.end()
            status = exchange.status or InferenceFailed.status
            seconds = perf_counter() - began
            self._metrics.answered(dialect.name, route, status, seconds)
            if (account := exchange.context.account) is not None:
                self._metrics.asked(account.name, account.spent)
            is_unmatched = route == UNMATCHED and status >= 400
            if self._access_log or (is_unmatched and self._may_log_unmatched(began)):
                level = logging.DEBUG if route in OPERATIONS and status < 400 else logging.INFO
                path = escaped(scope["path"]) if route == UNMATCHED else route
                _log_access(level, exchange, method, path, status, seconds)

    def _may_log_unmatched(self, now: float) -> bool:
        if now < self._unmatched_logged_at + UNMATCHED_PAUSE_S:
            return False
        self._unmatched_logged_at = now
        return True


def _log_access(level: int, exchange: "_Exchange", method: str, path: str, status: int, seconds: float) -> None:
    fields = exchange.ids | {"method": method, "path": path, "status": status, "seconds": round(seconds, 6)}
    who = " ".join(str(fields[name]) for name in ("request_id", "key") if name in fields)
    logger.log(level, "%s %s %d %.1f ms %s", method, path, status, seconds * 1000, who, extra=fields)


class _Exchange:
    """A request and its answer. After the body is read, a client that disconnects cancels the work.

    The answer closes the connection if the body was not read to its end, since the server would read the rest without
    limits; and while the server drains, since a later request on this connection would fail.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        serving: Serving,
        max_body_bytes: int,
        body_timeout_s: float,
        spans: RequestSpans | None,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._serving = serving
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s
        self._body_ends_at = asyncio.get_running_loop().time() + body_timeout_s
        self._body_size = 0
        self._body_was_read = False
        self._headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first one of each name
        given_id = self._headers.get(b"x-request-id", b"")
        self.request_id = given_id.decode() if REQUEST_ID.fullmatch(given_id) else f"{random.getrandbits(128):032x}"
        self._traceparent = traceparent_of(scope["headers"])
        self._timing = Timing()
        self.context = context = Context(
            self._timing, client=client_at(scope["client"][0]) if scope.get("client") else None
        )
        self._spans = spans
        if spans is not None:
            self._timing.phases, context.attributes = spans.phases, spans.attributes
        scope.setdefault("state", {}).update(request_id=self.request_id, context=context)
        self.status: int | None = None
        """The status of the answer, once it has begun."""
        work = asyncio.current_task()
        assert work is not None, "ASGI runs in a task"
        self._work = work
        self._watch: asyncio.Task[None] | None = None
        self._client_left = False

    @property
    def ids(self) -> dict[str, object]:
        """The ids of the request and the name of its key, as fields of a log line."""
        trace_id = self._traceparent[TRACE_ID] if self._traceparent else self._spans and self._spans.trace_id
        key = self.context.account and self.context.account.name
        further = {"trace_id": trace_id, "key": key}
        return {"request_id": self.request_id, **{name: value for name, value in further.items() if value}}

    async def receive(self) -> Message:
        if self._body_was_read:
            return await self._receive()
        announced = self._headers.get(b"content-length", b"")
        self._check_size(int(announced) if announced.isdigit() else 0, "announces")
        try:
            async with asyncio.timeout_at(self._body_ends_at):
                message = await self._receive()
        except TimeoutError:
            only = f"only {self._body_size} bytes of the body arrived"
            raise BodyTooSlow(f"After {self._body_timeout_s:g} s {only}") from None
        if message["type"] == "http.disconnect":
            raise ClientGone("The client left before its body was read")
        self._body_size += len(message.get("body", b""))
        self._check_size(self._body_size, "has at least")
        if not message.get("more_body", False):
            self._body_was_read = True
            if self._scope["method"] == "POST":
                self._watch = asyncio.create_task(self._await_disconnect())
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._further_headers()]
        elif self._spans is not None and not message.get("more_body", False):
            self._spans.end()  # the server's span ends when the last part is sent
        await self._send(message)

    async def fail(self, error: BaseException, dialect: AnyDialect) -> None:
        """Answer an error, unless the client has left. An unexpected error is logged with the request id, and its
        answer does not tell the cause.

        Raises:
            BaseException: this error, if the answer has begun and can only be aborted.
        """
        self.end()
        if self._client_left:
            self._work.uncancel()
        if self._client_left or isinstance(error, ClientGone):
            self.status = ClientGone.status
            return
        if isinstance(error, asyncio.CancelledError):  # the time to drain is over
            refused: RequestError = Draining("The service stopped before this request was answered", retry_after_s=5)
        elif isinstance(error, RequestError) and self.status is None:
            refused = error
        else:
            logger.error("request %s failed", self.request_id, exc_info=error, extra=self.ids)
            refused = unexpected(self.request_id)
        if self._spans is not None:
            self._spans.attributes["attend.error"] = refused.code
        if self.status is not None:
            raise error
        await dialect.refusal(Request(self._scope), refused)(self._scope, self._receive, self.send)

    def end(self) -> None:
        """Stop watching the client."""
        if self._watch is not None:
            self._watch.cancel()

    async def _await_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._client_left = True
        self._work.cancel()

    def _check_size(self, size: int, verb: str) -> None:
        if size > self._max_body_bytes:
            raise TooLarge(f"The body {verb} {size} bytes; the limit is {self._max_body_bytes}")

    def _further_headers(self) -> Iterator[tuple[bytes, bytes]]:
        announced = self._headers.get(b"content-length", b"")
        has_body = announced not in (b"", b"0") or b"transfer-encoding" in self._headers
        if self._serving.draining or (has_body and not self._body_was_read):
            yield b"connection", b"close"
        yield b"x-request-id", self.request_id.encode()
        yield b"server-timing", self._timing.header().encode()
        if self._traceparent:
            yield b"traceparent", self._traceparent.encode()
