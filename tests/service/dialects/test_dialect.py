"""What holds for every dialect, tested with one that echoes its requests."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.types import Message

from service.access.guards import Credentials, Guards
from service.base.errors import MethodNotAllowed, RateLimited, RequestError, UnknownPath
from service.base.metrics import Metrics
from service.front.serving import Serving
from service.http.bodies import fields_of, form_or_json
from service.http.dialect import Backend, Dialect, Dialects, ErrorBody
from service.http.identity import Identity
from service.http.limits import Limits
from tests.service.conftest import Serve, problem
from tests.service.fakes import PATIENCE_S

pytestmark = pytest.mark.anyio

ORIGIN = {"Origin": "https://example.org"}


class EchoError(ErrorBody):
    wrong: str

    @classmethod
    def of(cls, error: RequestError) -> "EchoError":
        return cls(wrong=f"{type(error).__name__}: {error}")


class EchoRequest(BaseModel):
    q: str | list[str]
    n: int = 0


async def key_of(request: Request) -> bytes | None:
    key = (await fields_of(request)).get("key")
    return key.encode() if isinstance(key, str) else None


def routers(backend: Backend) -> list[APIRouter]:
    router = ECHO.router(backend.access.guards(Credentials(key_of, "in the field key", None)), form_or_json)
    anonymous = ECHO.router(backend.access.guards(None))
    free = ECHO.router(Guards())

    @router.post("/echo/say")
    async def say(body: EchoRequest, http: Request) -> EchoRequest:
        if body.n == 13:
            raise ZeroDivisionError("a secret")
        return body

    @router.delete("/echo/say")
    async def hush(http: Request) -> EchoRequest:
        return EchoRequest(q="")

    @router.get("/echo/say/{word:path}/again")
    async def again(http: Request, word: str) -> EchoRequest:
        return EchoRequest(q=word, n=2)

    @anonymous.get("/echo/anonymous")
    async def of_anybody(http: Request) -> EchoRequest:
        return EchoRequest(q="anybody")

    @free.get("/echo/health")
    async def health(http: Request) -> EchoRequest:
        return EchoRequest(q="well")

    return [router, anonymous, free]


ECHO = Dialect(
    name="echo",
    about="Says it again.",
    paths=("/echo", "/translate"),
    error=EchoError,
    routers=routers,
    statuses={401: 418, 422: 400},
    is_open_to_all=True,
)


@pytest.fixture(autouse=True)
def only_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.server.app.enabled", lambda settings: [ECHO])


def wrong(response: httpx.Response, status: int) -> str:
    """Return the message of an error, whose body and headers must be those of the dialect's errors."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert {"x-request-id", "server-timing"} <= response.headers.keys()
    body: dict[str, str] = response.json()
    assert body.keys() == {"wrong"}
    return body["wrong"]


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"q": ["a", "é"], "n": 1, "unknown": True}},
        {"content": json.dumps({"q": ["a", "é"], "n": "1"}).encode()},
        {"data": {"q": ["a", "é"], "n": 1, "unknown": "x"}},
        {"content": "q=a&q=é&n=1".encode(), "headers": {"Content-Type": "Application/x-www-form-urlencoded"}},
        {"files": [("q", (None, "a")), ("q", (None, "é")), ("n", (None, "1"))]},
        {"params": {"n": 1}, "json": {"q": ["a", "é"]}},
        {"params": {"n": 5, "q": "z"}, "data": {"q": ["a", "é"], "n": 1}},
        {"params": {"q": ["a", "é"], "n": 1}},
    ],
)
async def test_json_forms_and_queries_say_the_same(serve: Serve, sent: Any) -> None:
    async with serve() as client:
        response = await client.post("/echo/say", **sent)
    assert response.json() == {"q": ["a", "é"], "n": 1}


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        ({"json": {"n": 1}}, 400, "InvalidFields: `q` is required"),
        ({"content": b"{"}, 400, "BadRequest: The body is not JSON"),
        ({"content": b"q=\xff", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}, 400, "not UTF-8"),
        ({"content": b"q=%ff", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}, 400, "not UTF-8"),
        ({"data": {"q": ["a"] * 1001}}, 400, "BadRequest: The body must have at most 1000 fields"),
        ({"files": [("q", (None, "a"))] * 1001}, 400, "BadRequest: The body is not a form: Too many fields"),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, "Missing boundary"),
        (
            {
                "content": b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n--x--\r\n',
                "headers": {"Content-Type": "multipart/form-data; boundary=x; charset=undefined"},
            },
            400,
            "BadRequest: The body is not in the charset",
        ),
        ({"url": "/echo/say?q=%ff"}, 400, "BadRequest: The query is not UTF-8"),
        ({"json": {"q": "a"}, "headers": {"Content-Encoding": "br"}}, 415, "UnsupportedMediaType: "),
        ({"json": {"q": "a" * 300_000}}, 413, "TooLarge: "),
        ({"json": {"q": "a", "n": 13}}, 500, "InferenceFailed: "),
        ({"content": rb'{"q": "a", "n": "\ud83d"}'}, 400, "InvalidFields: `n` "),
    ],
)
async def test_every_error_has_the_shape_of_the_dialect(serve: Serve, sent: Any, status: int, says: str) -> None:
    async with serve(max_body_bytes=200_000) as client:
        assert says in wrong(await client.post(**{"url": "/echo/say"} | sent), status)


async def test_unknown_paths_and_methods_have_its_shape_below_its_paths_alone(serve: Serve) -> None:
    async with serve() as client:
        assert wrong(await client.get("/echo"), 404) == "UnknownPath: Nothing is at /echo"
        wrong(await client.get("/echo/nowhere/at/all"), 404)
        wrong_method = await client.get("/echo/say")
        assert "MethodNotAllowed: /echo/say does not take GET" in wrong(wrong_method, 405)
        assert wrong_method.headers["Allow"] == "DELETE, POST"
        problem(await client.get("/echoes"), UnknownPath)
        problem(await client.get("/translate"), MethodNotAllowed)
        wrong(await client.get("/translate/more"), 404)


async def test_a_proxy_may_serve_it_below_a_path(serve: Serve) -> None:
    async with serve(root_path="/attend") as client:
        assert (await client.post("/attend/echo/say", json={"q": "a"})).json() == {"q": "a", "n": 0}
        wrong(await client.get("/attend/echo/nowhere"), 404)


async def test_a_request_cancelled_by_a_stopping_server_gets_an_error_of_its_shape() -> None:
    began, sent = asyncio.Event(), []

    async def never(*_: object) -> None:
        began.set()
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    limited = Limits(never, Serving(1), {}, 10, PATIENCE_S)
    app = Identity(limited, Metrics(), Dialects([ECHO], []), access_log=False)
    scope = {"type": "http", "method": "POST", "path": "/echo/say", "headers": []}
    task = asyncio.ensure_future(app(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
    await began.wait()
    task.cancel()
    await task
    start, body = sent
    assert start["status"] == 503
    assert json.loads(body["body"])["wrong"].startswith("Draining: ")


async def test_a_body_that_is_too_slow_gets_an_error_of_its_shape(serve: Serve) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with serve(client_timeout_s=1e-3) as client:
        assert wrong(await client.post("/echo/say", content=slowly()), 408).startswith("BodyTooSlow: ")


async def test_a_key_may_be_in_any_kind_of_body_and_statuses_are_the_dialects(serve: Serve) -> None:
    async with serve(api_keys="one,clé") as client:
        missing = await client.post("/echo/say", json={"q": "a"})
        assert re.match("KeyMissing: .*in the field key$", wrong(missing, 418))
        assert "WWW-Authenticate" not in missing.headers
        wrong(await client.post("/echo/say", data={"q": "a", "key": "two"}), 403)
        for sent in (
            {"json": {"q": "a", "key": "clé"}},
            {"data": {"q": "a", "key": "clé"}},
            {"params": {"q": "a", "key": "clé"}},
        ):
            assert (await client.post("/echo/say", **sent)).json() == {"q": "a", "n": 0}
        for path in ("/echo/anonymous", "/echo/health"):
            assert (await client.get(path)).status_code == 200


async def test_a_client_has_one_rate_for_all_dialects(serve: Serve) -> None:
    async with serve(rate_limit="2/hour", api_keys="one,two") as client:
        bearer = {"Authorization": "Bearer one"}
        assert (await client.post("/classify", json={"text": "a"}, headers=bearer)).status_code == 200
        assert (await client.post("/echo/say", json={"q": "a", "key": "one"})).status_code == 200
        limited = await client.post("/echo/say", json={"q": "a", "key": "one"})
        assert wrong(limited, 429).startswith("RateLimited: ")
        assert "Retry-After" in limited.headers
        problem(await client.post("/classify", json={"text": "a"}, headers=bearer), RateLimited)
        assert (await client.post("/echo/say", json={"q": "a", "key": "two"})).status_code == 200
        statuses = [(await client.get("/echo/anonymous")).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert (await client.get("/echo/health")).status_code == 200


async def test_metrics_name_the_dialect_and_the_route(serve: Serve) -> None:
    metrics = Metrics()
    async with serve(metrics=metrics) as client:
        await client.post("/echo/say", json={"q": "a"})
        await client.get("/echo/say/a/b/again")
        await client.get("/echo/nowhere")
        await client.get("/nowhere")
    for dialect, route, status in (
        ("echo", "/echo/say", "200"),
        ("echo", "/echo/say/{word}/again", "200"),
        ("echo", "unmatched", "404"),
        ("native", "unmatched", "404"),
    ):
        labels = {"dialect": dialect, "route": route, "status": status}
        assert metrics.registry.get_sample_value("attend_requests_total", labels) == 1
    labels = {"dialect": "echo", "route": "/echo/health", "status": "500"}
    assert metrics.registry.get_sample_value("attend_requests_total", labels) == 0


@pytest.mark.parametrize("allowed_origins", ["", "https://other.example"])
async def test_pages_of_any_origin_may_read_what_is_open_to_all(serve: Serve, allowed_origins: str) -> None:
    async with serve(allowed_origins=allowed_origins) as client:
        asks = ORIGIN | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        preflight = await client.options("/echo/say", headers=asks)
        assert preflight.status_code == 200
        said = await client.post("/echo/say", json={"q": "a"}, headers=ORIGIN)
        error = await client.post("/echo/nowhere", headers=ORIGIN)
        wrong(error, 404)
        for response in (preflight, said, error):
            assert response.headers["Access-Control-Allow-Origin"] == "*"
        native = await client.post("/classify", json={"text": "a"}, headers=ORIGIN)
        assert "Access-Control-Allow-Origin" not in native.headers


async def test_openapi_has_its_tag_and_its_errors(serve: Serve) -> None:
    async with serve(api_keys="one") as client:
        document = (await client.get("/openapi.json")).json()
    assert document["tags"][-1] == {"name": "echo", "description": "Says it again."}
    say = document["paths"]["/echo/say"]["post"]
    assert say["tags"] == ["echo"]
    shape = {"application/json": {"schema": {"$ref": "#/components/schemas/EchoError"}}}
    assert all(say["responses"][status]["content"] == shape for status in ("400", "403", "404", "418", "500", "503"))
    assert "422" not in say["responses"]
    assert "application/problem+json" in document["paths"]["/classify"]["post"]["responses"]["422"]["content"]
