"""What every request passes, as plain ASGI: bookkeeping, clients that leave, bodies too large or too slow."""

import asyncio
import logging
import random
import re
import uuid
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooSlow, ClientGone, Draining, InferenceFailed, RequestError, TooLarge
from service.http.problems import refusal
from service.metrics import Metrics
from service.schemas.timing import Timing

logger = logging.getLogger(__name__)

REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{0,128})?")


class Bookkeeping:
    """Gives every request its id and timing, puts them into the response's headers, counts and logs it once.

    An error that nobody caught ends here: logged with the request id, answered without a word about its cause.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":  # the server leaves the body out
            scope = {**scope, "method": "GET"}
        request = Request(scope, receive)
        request.state.request_id = (
            _matching(REQUEST_ID, request.headers.get("x-request-id"))
            or uuid.UUID(int=random.getrandbits(128), version=4).hex
        )
        request.state.timing = Timing()
        began = perf_counter()
        status: int | None = None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(request, MutableHeaders(scope=message))
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except ClientGone:
            status = ClientGone.status
        except asyncio.CancelledError:  # the server has drained and waits no longer
            if status is not None:
                raise
            error: RequestError = Draining("the service stopped before this request was answered", retry_after_s=5)
            await refusal(request, error)(scope, receive, send_with_headers)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of a library in Rust is no Exception
            logger.exception("request %s failed", request.state.request_id)
            if status is not None:
                raise  # the response has begun: all that is left is to break it off
            error = InferenceFailed(f"an unexpected error; the log has it under request id {request.state.request_id}")
            await refusal(request, error)(scope, receive, send_with_headers)
        finally:
            self._count(method, request, status or InferenceFailed.status, perf_counter() - began)

    def _count(self, method: str, request: Request, status: int, seconds: float) -> None:
        route = getattr(request.scope.get("route"), "path", "unmatched")
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        logger.info("%s %s %d %.1f ms %s", method, route, status, seconds * 1000, request.state.request_id)


class CancelOnDisconnect:
    """Once a request is read, watches its client: when the client leaves, cancels the work and raises ClientGone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body_read = asyncio.Event()

        async def receive_body() -> Message:
            message = await receive()
            if not message.get("more_body", False):
                body_read.set()
            return message

        async def disconnected() -> None:
            await body_read.wait()
            while (await receive())["type"] != "http.disconnect":
                pass

        work = asyncio.ensure_future(self.app(scope, receive_body, send))
        gone = asyncio.ensure_future(disconnected())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientGone("the client left before its answer was there")
            await work
        except ClientDisconnect as error:
            raise ClientGone("the client left before its body was read") from error
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)


class BodyLimit:
    """Stops reading a body that is too large, by the length it announces or by what has come, or too slow.

    If a body was not read to its end, the answer closes the connection: the server would read the rest without limits.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, timeout_s: float) -> None:
        self.app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        has_body = announced not in ("", "0") or "transfer-encoding" in headers
        size, ended = 0, False
        ends_at = asyncio.get_running_loop().time() + self._timeout_s

        async def receive_within_limits() -> Message:
            nonlocal size, ended
            if ended:
                return await receive()
            self._check(int(announced) if announced.isdecimal() else 0, "announces")
            try:
                async with asyncio.timeout_at(ends_at):
                    message = await receive()
            except TimeoutError:
                raise BodyTooSlow(f"after {self._timeout_s:g} s the body had not come, only {size} bytes") from None
            size += len(message.get("body", b""))
            self._check(size, "has at least")
            ended = not message.get("more_body", False)
            return message

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and has_body and not ended:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self.app(scope, receive_within_limits, send_and_close)

    def _check(self, size: int, verb: str) -> None:
        if size > self._max_bytes:
            raise TooLarge(f"the body {verb} {size} bytes, the limit is {self._max_bytes}")


def _add_headers(request: Request, headers: MutableHeaders) -> None:
    headers["X-Request-ID"] = request.state.request_id
    headers["Server-Timing"] = request.state.timing.header()
    traceparent = _matching(TRACEPARENT, request.headers.get("traceparent"))
    if traceparent is not None:
        headers["traceparent"] = traceparent


def _matching(pattern: re.Pattern[str], value: str | None) -> str | None:
    return value if value is not None and pattern.fullmatch(value) else None
