"""The WebSocket at /translate/live: a text that is being typed or spoken comes in, its translation goes out.

Each message counts as a request: for its key, its rate, its characters, its deadline and the metrics. A newer message
ends the work for the one before. It waits instead if that one is final or has options, or has itself ended the work for
another. Nothing more is read meanwhile. So a client that sends too fast gets every second answer, and harms nobody.
"""

import asyncio
import json
import logging
from contextlib import suppress
from time import perf_counter

from fastapi import Request
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from service.access.guards import Access, Guards
from service.base.errors import (
    BadRequest,
    ClientGone,
    Draining,
    KeyMissing,
    KeyWrong,
    RequestError,
    RouteForbidden,
    SocketIdle,
    TextTooLong,
    TooLarge,
    TooManySockets,
    unexpected,
)
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.live import LiveText
from service.front.models import Models
from service.http.dialect import Native
from service.http.exchange import Exchange
from service.http.json_route import parse_json_body
from service.http.problems import problem_of, refusal
from service.schemas.live import LiveUpdate

logger = logging.getLogger(__name__)

LIVE_PATH = "/translate/live"
MAX_SOCKETS = 1000
"""Most WebSockets of one server."""
IDLE_S = 300.0
"""Seconds after which a WebSocket is closed if no message comes."""
LOOK_S = 1.0
"""Pause between two checks whether the server is draining, or the client idle."""
FATAL = (BadRequest, TooLarge, KeyMissing, KeyWrong, RouteForbidden, SocketIdle, Draining)
"""Errors that close the WebSocket. After others the next message may succeed."""
CLOSE_CODES = 4000
"""The code of a close is this number and the status of the error; its reason is the error's code."""


def live_route(models: Models, access: Access, settings: Settings, metrics: Metrics) -> WebSocketRoute:
    """Return the route of the WebSocket."""
    sockets = _Sockets(models, access, settings, metrics)
    return WebSocketRoute(LIVE_PATH, sockets.serve)


class _Sockets:
    """All WebSockets of this server."""

    def __init__(self, models: Models, access: Access, settings: Settings, metrics: Metrics) -> None:
        self.models = models
        self.guards: Guards = access.guards()
        self.settings = settings
        self.metrics = metrics
        self._access = access
        self._n_open = 0

    async def serve(self, websocket: WebSocket) -> None:
        """Accept a WebSocket, and answer its messages until it closes. A refusal is an answer of HTTP."""
        began = perf_counter()
        Exchange(websocket.scope, Native(), None)  # gives it an id
        try:
            self._refuse(websocket)
        except RequestError as error:
            self.metrics.answered(Native.name, LIVE_PATH, error.status, perf_counter() - began)
            await websocket.send_denial_response(refusal(websocket, error))  # type: ignore[arg-type]  # uses its state
            return
        self._count(1)
        try:
            await websocket.accept()
            await _Socket(self, websocket).run()
        finally:
            self._count(-1)

    def _refuse(self, websocket: WebSocket) -> None:
        self._access.refuse_foreign_page(websocket.headers)
        self.refuse_if_draining()
        if self._n_open >= MAX_SOCKETS:
            raise TooManySockets(f"The server has {MAX_SOCKETS} WebSockets already")

    def refuse_if_draining(self) -> None:
        if self.models.is_draining:
            raise Draining("The service is draining and takes no new requests", retry_after_s=5)

    def _count(self, n: int) -> None:
        self._n_open += n
        self.metrics.live_sockets.set(self._n_open)


class _Socket:
    """One WebSocket. Its messages are numbered from 1."""

    def __init__(self, sockets: _Sockets, websocket: WebSocket) -> None:
        self._all = sockets
        self._websocket = websocket
        self._text = LiveText(sockets.models, sockets.settings.max_text_characters)
        self._key: str | None = None
        self._number = 0
        self._request_id: str = websocket.state.request_id
        self._work: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Answer messages until the client leaves, or an error ends the session."""
        try:
            await self._read()
        except RequestError as error:
            if self._work is not None:
                await asyncio.wait([self._work])
            await self._fail(error)
        except WebSocketDisconnect:
            pass
        finally:
            if self._work is not None:
                self._work.cancel()

    async def _read(self) -> None:
        may_cancel = False
        while True:
            update = _parsed(await self._receive())
            was_cancelled = self._work is not None and may_cancel and self._work.cancel()
            if self._work is not None:
                await asyncio.wait([self._work])
            if self._is_open:
                self._number += 1
                self._work = asyncio.create_task(self._answer(update))
                may_cancel = isinstance(update, LiveUpdate) and update.is_partial and not was_cancelled

    async def _receive(self) -> str:
        """Return the next message. Raises WebSocketDisconnect, SocketIdle, Draining, TooLarge, BadRequest."""
        idle_at = asyncio.get_running_loop().time() + IDLE_S
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    message = await self._websocket.receive()
                break
            except TimeoutError:
                self._all.refuse_if_draining()
                if asyncio.get_running_loop().time() >= idle_at:
                    raise SocketIdle(f"No message came for {IDLE_S:g} s") from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        text, limit = message.get("text"), self._all.settings.max_body_bytes
        size = len(text.encode(errors="surrogatepass") if text is not None else message["bytes"])
        if size > limit:
            raise TooLarge(f"The message has at least {size} bytes; the limit is {limit}")
        if text is None:
            raise BadRequest("A message must be text with JSON, not binary")
        return str(text)

    async def _answer(self, update: LiveUpdate | RequestError) -> None:
        began = perf_counter()
        # A message has the headers of the WebSocket; a page of another origin was refused before.
        headers = [header for header in self._websocket.scope["headers"] if header[0] != b"sec-fetch-site"]
        scope = {**self._websocket.scope, "type": "http", "method": "POST", "headers": headers, "state": {}}
        exchange, status = Exchange(scope, Native(), None), ClientGone.status
        self._request_id = exchange.request_id
        try:
            if isinstance(update, RequestError):
                raise update
            self._key = update.key or self._key
            if self._key is not None:
                headers.insert(0, (b"authorization", f"Bearer {self._key}".encode()))
            for check in self._all.guards.checks:
                await check(Request(scope))
            answer = await self._text.update(update, self._number, exchange.context)
            status = 200
            await self._send(answer.model_dump_json())
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError, WebSocketDisconnect):
            raise
        except BaseException as error:  # a panic in a library of Rust is not an Exception
            if not isinstance(error, RequestError):
                logger.error("request %s failed", exchange.request_id, exc_info=error, extra=exchange.ids)
                error = unexpected(exchange.request_id)
            status = error.status
            await self._fail(error)
        finally:
            self._all.metrics.answered(Native.name, LIVE_PATH, status, perf_counter() - began)
            if (account := exchange.context.account) is not None:
                self._all.metrics.asked(account.name, account.spent)

    async def _fail(self, error: RequestError) -> None:
        """Tell the client of an error. Some close the WebSocket."""
        problem = problem_of(error, self._request_id)
        with suppress(WebSocketDisconnect):  # the client has left
            await self._send(json.dumps({"update": self._number, **problem}))
            if isinstance(error, FATAL) and not isinstance(error, TextTooLong) and self._is_open:
                await self._websocket.close(CLOSE_CODES + error.status, error.code)

    async def _send(self, text: str) -> None:
        if self._is_open:
            await self._websocket.send_text(text)

    @property
    def _is_open(self) -> bool:
        return self._websocket.application_state is WebSocketState.CONNECTED


def _parsed(message: str) -> LiveUpdate | RequestError:
    try:
        return parse_json_body(LiveUpdate, message.encode(errors="surrogatepass"))
    except RequestError as error:
        return error
