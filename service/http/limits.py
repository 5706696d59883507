"""The inner layer of the middleware: limits of bodies, cancellation when a client leaves, and errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.base.errors import BodyTooSlow, ClientGone, Draining, RequestError, TooLarge, unexpected
from service.front.serving import Serving
from service.http.exchange import Exchange

logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class Limits:
    """Reads no more of a body than it may have, and answers the errors of a request in the shape of its dialect.

    Args:
        direct_handlers: handlers of POST by path, called without FastAPI's routing, which takes as long as they do.
        max_body_bytes, body_timeout_s: a larger or slower body is refused without reading the rest.
        max_bytes_at: limits of single paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        serving: Serving,
        direct_handlers: Mapping[str, Handler],
        max_body_bytes: int,
        body_timeout_s: float,
        max_bytes_at: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._app = app
        self._serving = serving
        self._direct_handlers = direct_handlers
        self._max_body_bytes = max_body_bytes
        self._max_bytes_at = max_bytes_at
        self._body_timeout_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        handle = self._direct_handlers.get(path) if scope["method"] == "POST" else None
        max_body_bytes = self._max_bytes_at.get(path, self._max_body_bytes)
        limited = _LimitedExchange(scope, receive, send, self._serving, max_body_bytes, self._body_timeout_s)
        if handle is not None:
            limited.exchange.path = path
            if limited.exchange.spans is not None:
                limited.exchange.spans.found_route(scope["method"], path)
        try:
            if handle is None:
                await self._app(scope, limited.receive, limited.send)
            else:
                answer = await handle(Request(scope, limited.receive))
                await answer(scope, limited.receive, limited.send)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in a library of Rust is not an Exception
            await limited.fail(error)
        finally:
            limited.end()


class _LimitedExchange:
    """A request and its answer. After the body is read, a client that disconnects cancels the work.

    The answer closes the connection in two cases. If the body was not read to its end, the server would read the rest
    without limits. While the server drains, a later request on this connection would fail.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, serving: Serving, max_body_bytes: int, body_timeout_s: float
    ) -> None:
        self.exchange: Exchange = scope["state"]["exchange"]
        self._scope = scope
        self._receive = receive
        self._send = send
        self._serving = serving
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s
        self._body_ends_at = asyncio.get_running_loop().time() + body_timeout_s
        self._body_size = 0
        self._body_was_read = False
        work = asyncio.current_task()
        assert work is not None, "ASGI runs in a task"
        self._work = work
        self._watch: asyncio.Task[None] | None = None
        self._client_left = False

    async def receive(self) -> Message:
        if self._body_was_read:
            return await self._receive()
        announced = self.exchange.headers.get(b"content-length", b"")
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
        if message["type"] == "http.response.start" and self._must_close:
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await self._send(message)

    async def fail(self, error: BaseException) -> None:
        """Answer an error, unless the client has left. An unexpected error is logged with the request id, and its
        answer does not tell the cause. Raises this error if the answer has begun and can only be aborted."""
        self.end()
        exchange = self.exchange
        if self._client_left:
            self._work.uncancel()
        if self._client_left or isinstance(error, ClientGone):
            exchange.status = ClientGone.status
            return
        if isinstance(error, asyncio.CancelledError):  # the time to drain is over
            refused: RequestError = Draining("The service stopped before this request was answered", retry_after_s=5)
        elif isinstance(error, RequestError) and exchange.status is None:
            refused = error
        else:
            logger.error("request %s failed", exchange.request_id, exc_info=error, extra=exchange.ids)
            refused = unexpected(exchange.request_id)
        if exchange.spans is not None:
            exchange.spans.attributes["attend.error"] = refused.code
        if exchange.status is not None:
            raise error
        await exchange.dialect.refusal(Request(self._scope), refused)(self._scope, self._receive, self.send)

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

    @property
    def _must_close(self) -> bool:
        headers = self.exchange.headers
        has_body = headers.get(b"content-length", b"") not in (b"", b"0") or b"transfer-encoding" in headers
        return self._serving.draining or (has_body and not self._body_was_read)
