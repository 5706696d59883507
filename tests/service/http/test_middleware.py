"""Both layers of the middleware alone, around small ASGI applications."""

import asyncio
import json
import logging
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.base.errors import BodyTooSlow, ClientGone, NotReady, RequestError, TooLarge, UnknownModel
from service.base.metrics import Metrics
from service.front.serving import Serving
from service.http.dialect import Dialects
from service.http.identity import UNMATCHED_PAUSE_S, Identity
from service.http.limits import Limits
from tests.service.fakes import PATIENCE_S

pytestmark = pytest.mark.anyio

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def say_ok(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


async def call(app: ASGIApp, messages: Iterable[Message] = (), **scope: Any) -> list[Message]:
    """Run an application on a POST whose messages are those, and then nothing more comes."""
    incoming = iter(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        for message in incoming:
            return message
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": "/", "headers": [], **scope}, receive, send)
    return sent


def behind(
    app: ASGIApp,
    metrics: Metrics | None = None,
    max_body_bytes: int = 10,
    body_timeout_s: float = PATIENCE_S,
    access_log: bool = False,
) -> ASGIApp:
    limited = Limits(app, Serving(1), {}, max_body_bytes, body_timeout_s)
    return Identity(limited, metrics or Metrics(), Dialects([], []), access_log)


def client_of(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://attend")


def count(metrics: Metrics, status: int) -> float | None:
    """How many requests of no route were answered so."""
    labels = {"dialect": "native", "route": "unmatched", "status": str(status)}
    return metrics.registry.get_sample_value("attend_requests_total", labels)


def refusal(sent: list[Message], error: type[RequestError]) -> str:
    """Return the detail of the problem that was sent, which must be of this error."""
    start, body = sent
    problem = json.loads(body["body"])
    assert (start["status"], problem["code"]) == (error.status, error.code)
    detail: str = problem["detail"]
    return detail


async def test_a_request_id_is_echoed_or_made_up() -> None:
    async with client_of(behind(say_ok)) as client:
        given = await client.get("/", headers={"X-Request-ID": "abc-1"})
        made_up = [(await client.get("/")).headers["X-Request-ID"] for _ in range(2)]
    assert given.headers["X-Request-ID"] == "abc-1"
    assert made_up[0] != made_up[1]


@pytest.mark.parametrize("bad", ["two words", "x" * 129, "é"])
async def test_a_request_id_that_could_garble_a_log_is_replaced(bad: str) -> None:
    async with client_of(behind(say_ok)) as client:
        response = await client.get("/", headers=[(b"X-Request-ID", bad.encode())])
    assert response.headers["X-Request-ID"] != bad


@pytest.mark.parametrize(("traceparent", "trace_id"), [(TRACEPARENT, TRACEPARENT[3:35]), ("nonsense", None)])
async def test_a_traceparent_is_echoed_and_its_trace_logged_if_it_is_one(
    traceparent: str, trace_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    caplog.set_level(logging.INFO, "service")
    async with client_of(behind(broken, access_log=True)) as client:
        answer = await client.get("/", headers={"traceparent": traceparent})
    assert answer.headers.get("traceparent") == (traceparent if trace_id else None)
    failed, accessed = caplog.records
    assert vars(failed).get("trace_id") == vars(accessed).get("trace_id") == trace_id


async def test_server_timing_is_on_every_response() -> None:
    async with client_of(behind(say_ok)) as client:
        timing = (await client.get("/")).headers["Server-Timing"]
    assert timing == "queue;dur=0.00, tokenize;dur=0.00, encode;dur=0.00, decode;dur=0.00"


class Panic(BaseException):
    """As libraries in Rust raise them."""


@pytest.mark.parametrize("kind", [RuntimeError, Panic])
async def test_an_unexpected_error_is_logged_with_the_request_id_and_tells_nothing(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise kind("the secret cause")

    metrics = Metrics()
    async with client_of(behind(broken, metrics)) as client:
        response = await client.get("/", headers={"X-Request-ID": "abc-1"})
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["X-Request-ID"] == response.json()["request_id"] == "abc-1"
    assert "secret" not in response.text
    assert "the secret cause" in caplog.text
    assert "abc-1" in caplog.text
    assert count(metrics, 500) == 1


async def test_a_request_that_a_stopping_server_cancels_gets_a_problem() -> None:
    metrics, began = Metrics(), asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        began.set()
        await asyncio.Event().wait()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/translate", "headers": [(b"x-request-id", b"abc-1")]}
    task = asyncio.ensure_future(behind(never, metrics)(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
    await began.wait()
    task.cancel()
    await task
    start, body = sent
    headers = dict(start["headers"])
    assert start["status"] == 503
    assert headers[b"retry-after"] == b"5"
    assert headers[b"x-request-id"] == b"abc-1"
    assert b"stopped before this request was answered" in body["body"]
    assert count(metrics, 503) == 1


async def test_a_client_that_leaves_cancels_the_work_and_is_counted_as_499() -> None:
    metrics, cancelled = Metrics(), asyncio.Event()

    async def work_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    messages: list[Message] = [{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}]
    assert await call(behind(work_for_ever, metrics), messages) == []
    assert cancelled.is_set()
    assert count(metrics, 499) == 1


async def test_a_client_that_leaves_while_sending_is_gone() -> None:
    metrics = Metrics()
    assert await call(behind(read_body, metrics), [{"type": "http.disconnect"}]) == []
    assert count(metrics, 499) == 1


async def test_a_client_that_stays_gets_its_answer_and_is_watched_no_longer() -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        await say_ok(scope, receive, send)

    body: list[Message] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.request", "body": b"}"},
    ]
    before = asyncio.all_tasks()
    assert (await call(behind(answer), body))[0]["status"] == 200
    await asyncio.sleep(0)  # a cancelled task ends in the next round of the loop
    assert asyncio.all_tasks() == before


async def test_an_error_after_the_response_has_begun_is_logged_and_breaks_it_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("cause")

    with pytest.raises(RuntimeError, match="cause"):
        await call(behind(broken))
    assert "cause" in caplog.text


async def test_what_raises_client_gone_is_counted_as_499_and_sent_nothing() -> None:
    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientGone("gone")

    metrics = Metrics()
    assert await call(behind(left, metrics)) == []
    assert count(metrics, 499) == 1


async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
    await Request(scope, receive).body()
    await say_ok(scope, receive, send)


async def test_a_body_that_announces_too_much_is_refused_unread() -> None:
    sent = await call(behind(read_body), headers=[(b"content-length", b"11")])
    assert "announces 11 bytes; the limit is 10" in refusal(sent, TooLarge)
    assert (b"connection", b"close") in sent[0]["headers"]


async def test_a_body_is_refused_as_soon_as_it_is_over_the_limit() -> None:
    chunks = [{"type": "http.request", "body": b"1234", "more_body": True}] * 3
    assert "12 bytes; the limit is 10" in refusal(await call(behind(read_body), chunks), TooLarge)


async def test_a_body_at_the_limit_is_read() -> None:
    sent = await call(behind(read_body), [{"type": "http.request", "body": b"1234567890"}])
    assert sent[0]["status"] == 200


async def test_a_body_that_does_not_end_in_time_is_not_waited_for() -> None:
    chunk = {"type": "http.request", "body": b"1234", "more_body": True}
    sent = await call(behind(read_body, body_timeout_s=0.01), [chunk])
    assert "0.01 s only 4 bytes" in refusal(sent, BodyTooSlow)


async def test_the_work_after_the_body_may_take_longer() -> None:
    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        with pytest.raises(TimeoutError):  # which BodyTooSlow is not
            async with asyncio.timeout(0.05):
                await receive()
        await say_ok(scope, receive, send)

    sent = await call(behind(wait, body_timeout_s=0.01), [{"type": "http.request", "body": b"1234"}])
    assert sent[0]["status"] == 200


@pytest.mark.parametrize(
    ("route", "access_log", "logged"),
    [
        ("/translate", False, None),
        ("/translate", True, logging.INFO),
        ("/health/live", True, logging.DEBUG),
        ("/health/ready", True, logging.DEBUG),
        ("/metrics", True, logging.DEBUG),
        ("/metrics", False, None),
    ],
)
async def test_a_request_is_logged_only_where_that_is_asked_for_and_probes_never_at_info(
    route: str, access_log: bool, logged: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path_format=route)
        await say_ok(scope, receive, send)

    caplog.set_level(logging.DEBUG, "service")
    await call(behind(routed, access_log=access_log), headers=[(b"x-request-id", b"abc-1")])
    assert [record.levelno for record in caplog.records] == ([] if logged is None else [logged])
    for record in caplog.records:
        assert route in record.message
        assert "abc-1" in record.message
        fields = {"request_id": "abc-1", "method": "POST", "path": route, "status": 200}
        assert fields.items() <= vars(record).items()
        assert vars(record)["seconds"] > 0


async def test_a_probe_that_fails_is_logged_like_any_request(caplog: pytest.LogCaptureFixture) -> None:
    async def not_ready(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path_format="/health/ready")
        raise NotReady("a reason")

    caplog.set_level(logging.INFO, "service")
    await call(behind(not_ready, access_log=True))
    assert "/health/ready 503" in caplog.text


@pytest.mark.parametrize(("access_log", "n_lines"), [(True, 4), (False, 2)])
async def test_a_path_that_no_route_takes_is_logged_without_its_query_and_often_enough_to_be_found(
    access_log: bool, n_lines: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        raise UnknownModel("nothing")

    now = 0.0
    monkeypatch.setattr("service.http.identity.perf_counter", lambda: now)
    caplog.set_level(logging.INFO, "service")
    app = behind(nothing, access_log=access_log)
    for seconds in (0.0, 0.1, UNMATCHED_PAUSE_S, 0.1):
        now += seconds
        await call(app, path="/api/a\nb", query_string=b"text=private")
    assert len(caplog.records) == n_lines
    assert all("POST /api/a\\nb 404" in record.message for record in caplog.records)
    assert "private" not in caplog.text
