"""The WebSocket at /translate/live: each message is a request, and what is wrong with one harms nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from service.base.errors import Draining
from service.base.metrics import Metrics
from service.front.models import Models
from service.http import live
from tests.service.conftest import Client, Serve
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.anyio
START = {"source": "en", "target": "fr"}


class Socket:
    """A WebSocket of the application, without a network."""

    def __init__(self, client: Client, headers: Iterable[tuple[bytes, bytes]]) -> None:
        assert isinstance(client._transport, httpx.ASGITransport)
        self._app: Any = client._transport.app
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._scope = {
            "type": "websocket",
            "path": live.LIVE_PATH,
            "raw_path": live.LIVE_PATH.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"attend"), *headers],
            "client": ("10.0.0.1", 1),
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        self.received.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(self._app(self._scope, self.received.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        await self.sent.put(message)
        if message["type"] == "websocket.close":
            await self.received.put({"type": "websocket.disconnect", "code": message["code"]})

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.sent.get(), PATIENCE_S)

    def say(self, text: str, **fields: Any) -> None:
        self.say_data(text=json.dumps({"text": text} | fields))

    def say_data(self, **data: Any) -> None:
        self.received.put_nowait({"type": "websocket.receive"} | data)

    async def hear(self) -> dict[str, Any]:
        message = await self.next()
        assert message["type"] == "websocket.send", message
        heard: dict[str, Any] = json.loads(message["text"])
        return heard

    async def ask(self, text: str, **fields: Any) -> dict[str, Any]:
        self.say(text, **fields)
        return await self.hear()

    async def is_closed_with(self, status: int, code: str) -> bool:
        closed = await self.next()
        await asyncio.wait_for(self.task, PATIENCE_S)
        return closed == {"type": "websocket.close", "code": 4000 + status, "reason": code}


@asynccontextmanager
async def opened(client: Client, *headers: tuple[bytes, bytes]) -> AsyncIterator[Socket]:
    socket = Socket(client, headers)
    assert (await socket.next())["type"] == "websocket.accept"
    yield socket
    socket.received.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await asyncio.wait_for(socket.task, PATIENCE_S)


async def test_the_final_translation_begins_with_what_was_concluded(client: Client) -> None:
    words = ["the", "red", "dog", "sees", "a", "cat.", "the", "man", "runs", "."]
    async with opened(client) as socket:
        concluded = ""
        for n in range(1, len(words) + 1):
            options = START if n == 1 else {}
            answer = await socket.ask(" ".join(words[:n]), final=n == len(words), **options)
            assert answer.keys() == {"update", "concluded", "tentative", "final"}
            assert answer["update"] == n
            assert answer["concluded"].startswith(concluded)
            concluded = answer["concluded"]
        assert answer["final"]


async def test_a_final_text_alone_is_translated_as_ever(client: Client) -> None:
    text = "the red dog sees a cat. the man runs."
    body = (await client.post("/translate", json={"text": text} | START)).json()
    async with opened(client) as socket:
        assert (await socket.ask(text, final=True))["concluded"] == body["translations"][0]["text"]


@pytest.mark.parametrize(
    ("data", "code", "status"),
    [
        ({"text": "no json"}, "malformed_body", 400),
        ({"text": "[]"}, "malformed_body", 400),
        ({"text": '{"text": "\\ud800"}'}, "invalid_fields", 422),
        ({"text": "{}"}, "invalid_fields", 422),
        ({"text": '{"text": "the dog", "txet": 1}'}, "invalid_fields", 422),
        ({"text": '{"text": "the dog", "target": "xx"}'}, "unsupported_language_pair", 422),
        ({"text": '{"text": "the dog", "model": "none"}'}, "unknown_model", 404),
        ({"text": '{"text": "the dog ", "timeout_s": 1e9}'}, "invalid_fields", 422),
        ({"text": json.dumps({"text": "a" * 1001})}, "text_too_long", 413),
        ({"text": json.dumps({"text": "a" * 5000})}, "content_too_large", 413),
        ({"bytes": b'{"text": "the dog"}', "text": None}, "malformed_body", 400),
    ],
)
async def test_a_wrong_message_gets_a_named_error_and_harms_nothing_else(
    serve: Serve, data: dict[str, Any], code: str, status: int
) -> None:
    async with serve(max_text_characters=1000, max_body_bytes=4000) as client, opened(client) as beside:
        socket = Socket(client, ())
        await socket.next()
        socket.say_data(**data)
        error = await socket.hear()
        assert (error["code"], error["status"], error["type"]) == (code, status, f"errors#{code}")
        assert error["request_id"]
        if code in ("malformed_body", "content_too_large"):
            assert await socket.is_closed_with(status, code)
        else:
            assert (await socket.ask("the dog", final=True, **START))["final"]
            socket.received.put_nowait({"type": "websocket.disconnect", "code": 1000})
        assert (await beside.ask("the dog", final=True, **START))["final"]


class Held:
    """Holds translations until they may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.may_go_on = asyncio.Event()
        self.arrived = asyncio.Semaphore(0)
        translate = Models.translate

        async def held(models: Models, request: Any, context: Any, on_piece: Any = None) -> Any:
            self.texts += request.text
            self.arrived.release()
            await self.may_go_on.wait()
            return await translate(models, request, context, on_piece)

        monkeypatch.setattr(Models, "translate", held)


async def test_an_overtaken_update_is_dropped_but_not_two_in_a_row(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()
    async with serve(metrics=metrics) as client, opened(client) as socket:
        await socket.ask("", **START)
        held = Held(monkeypatch)
        for text in ("the ", "the dog ", "the dog runs "):
            socket.say(text)
            await asyncio.wait_for(held.arrived.acquire(), PATIENCE_S) if len(held.texts) < 2 else None
        held.may_go_on.set()
        assert [(await socket.hear())["update"] for _ in range(2)] == [3, 4]
        assert held.texts == ["the ", "the dog ", "the dog runs "]
        labels = {"dialect": "native", "route": live.LIVE_PATH}
        counted = {
            status: metrics.registry.get_sample_value("attend_requests_total", labels | {"status": status})
            for status in ("200", "499")
        }
        assert counted == {"200": 3, "499": 1}
        assert metrics.registry.get_sample_value("attend_live_sockets") == 1
    assert metrics.registry.get_sample_value("attend_live_sockets") == 0


async def test_a_final_update_is_never_dropped(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(client) as socket:
        held = Held(monkeypatch)
        socket.say("the dog", final=True, **START)
        socket.say("a ")
        held.may_go_on.set()
        assert [(await socket.hear())["final"] for _ in range(2)] == [True, False]


async def test_the_key_comes_in_a_header_or_in_a_message(serve: Serve) -> None:
    async with serve(api_keys="one,two") as client:
        async with opened(client, (b"authorization", b"Bearer one")) as socket:
            assert (await socket.ask("the dog", final=True, **START))["final"]
        async with opened(client) as socket:
            assert (await socket.ask("the dog", final=True, key="two", **START))["final"]
            assert (await socket.ask("the cat", final=True))["final"]
        for fields, status, code in (({}, 401, "key_missing"), ({"key": "three"}, 403, "key_wrong")):
            socket = Socket(client, ())
            await socket.next()
            assert (await socket.ask("the dog", **START, **fields))["code"] == code
            assert await socket.is_closed_with(status, code)


async def test_each_message_counts_for_the_rate(serve: Serve) -> None:
    async with serve(rate_limit="2/hour") as client, opened(client) as socket:
        assert [(await socket.ask("the ", final=True)).get("code") for _ in range(3)] == [None, None, "rate_limited"]


@pytest.mark.parametrize(
    ("origin", "site", "settings", "is_open"),
    [
        (b"http://attend", None, {}, True),
        (b"https://attend.example", b"same-origin", {}, True),
        (b"https://evil.example", None, {}, False),
        (b"https://evil.example", b"cross-site", {}, False),
        (b"https://evil.example", None, {"api_keys": "one"}, False),
        (b"null", None, {}, False),
        (b"https://friend.example", b"cross-site", {"allowed_origins": "https://friend.example"}, True),
        (b"https://any.example", b"cross-site", {"allowed_origins": "*"}, True),
    ],
)
async def test_a_page_of_another_origin_opens_no_socket(
    serve: Serve, origin: bytes, site: bytes | None, settings: dict[str, Any], is_open: bool
) -> None:
    headers = [(b"origin", origin), *([(b"sec-fetch-site", site)] if site else [])]
    async with serve(**settings) as client:
        socket = Socket(client, headers)
        first = await socket.next()
        if is_open:
            assert first["type"] == "websocket.accept"
            assert (await socket.ask("the dog", final=True, **START))["final"]
            socket.received.put_nowait({"type": "websocket.disconnect", "code": 1000})
        else:
            assert (first["type"], first["status"]) == ("websocket.http.response.start", 403)
            assert json.loads((await socket.next())["body"])["code"] == "cross_site"
        await asyncio.wait_for(socket.task, PATIENCE_S)


async def test_one_socket_more_than_the_limit_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_SOCKETS", 1)
    async with opened(client):
        socket = Socket(client, ())
        assert (await socket.next())["status"] == 503
        assert json.loads((await socket.next())["body"])["code"] == "too_many_sockets"
        await asyncio.wait_for(socket.task, PATIENCE_S)
    async with opened(client):
        pass


async def test_a_socket_on_which_nothing_comes_is_closed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.001)
    monkeypatch.setattr(live, "IDLE_S", 0.002)
    async with opened(client) as socket:
        assert (await socket.hear())["code"] == "socket_idle"
        assert await socket.is_closed_with(408, "socket_idle")


async def test_a_draining_server_answers_the_last_update_and_closes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.001)
    async with opened(client) as socket:
        held = Held(monkeypatch)
        socket.say("the dog", final=True, **START)
        await asyncio.wait_for(held.arrived.acquire(), PATIENCE_S)
        assert isinstance(client._transport, httpx.ASGITransport)
        app: Any = client._transport.app
        app.state.serving.draining = True
        held.may_go_on.set()
        assert (await socket.hear())["final"]
        assert (await socket.hear())["code"] == Draining.code
        assert await socket.is_closed_with(503, "draining")


async def test_a_bug_is_logged_and_its_cause_not_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError("a secret")

    async with opened(client) as socket:
        monkeypatch.setattr(Models, "translate", fail)
        error = await socket.ask("the dog", final=True, **START)
        assert error["code"] == "internal_error"
        assert "secret" not in error["detail"]
        monkeypatch.undo()
        assert (await socket.ask("the dog", final=True))["final"]
