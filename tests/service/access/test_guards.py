import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from service.access.limiters import RemoteRateLimiter
from service.base.errors import CrossSite, Draining, KeyMissing, KeyWrong, RateLimited, RequestError
from tests.service.conftest import Serve, problem

pytestmark = pytest.mark.anyio

BODY = {"text": "the dog"}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_a_missing_key_and_a_wrong_key_are_told_apart(serve: Serve) -> None:
    async with serve(api_keys="one,two,clé") as client:
        missing = await client.post("/classify", json=BODY)
        problem(missing, KeyMissing)
        assert missing.headers["WWW-Authenticate"] == "Bearer"
        problem(await client.post("/classify", json=BODY, headers=bearer("three")), KeyWrong)
        problem(await client.post("/classify", json=BODY, headers=[(b"Authorization", "Bearer é".encode())]), KeyWrong)
        accented = await client.post("/classify", json=BODY, headers=[(b"Authorization", "Bearer clé".encode())])
        assert accented.status_code == 200
        for key in ("one", "two"):
            assert (await client.post("/classify", json=BODY, headers=bearer(key))).status_code == 200


async def test_an_address_may_try_no_more_keys_than_its_rate(serve: Serve) -> None:
    async with serve(api_keys="one", rate_limit="2/hour") as client:
        for key, error in (("a", KeyWrong), ("b", KeyWrong), ("c", RateLimited)):
            problem(await client.post("/classify", json=BODY, headers=bearer(key)), error)
        assert (await client.post("/classify", json=BODY, headers=bearer("one"))).status_code == 200


@pytest.mark.parametrize("path", ["/models", "/health/live", "/health/ready", "/metrics"])
async def test_a_key_guards_models_but_not_operations(serve: Serve, path: str) -> None:
    async with serve(api_keys="one") as client:
        assert (await client.get(path)).status_code == (401 if path == "/models" else 200)


OPEN = {
    *("/", "/playground/{name}", "/docs", "/docs/{name}", "/openapi.json"),
    *("/health/live", "/health/ready", "/metrics", "/v2/health/live", "/v2/health/ready", "/libretranslate/health"),
    *("/libretranslate/frontend/settings", "/libretranslate/languages"),
    *("/azure/languages", "/lingva/api/v1/languages", "/lingva/api/v1/languages/{side}", "/deeplx", "/deeplx/"),
    *("/mtran/version", "/mtran/health", "/mtran/__heartbeat__", "/mtran/__lbheartbeat__"),
    # Their addresses have a key of their own.
    *("/libretranslate/download_file/{document_id}/{key}/{file_name}", "/v3/translation_memory_file"),
}
"""Routes that need no key: pages, what machines ask, and what other services tell without a key."""


async def test_a_route_wants_a_key_unless_it_is_listed(serve: Serve) -> None:
    async with serve(api_keys="one") as client:
        app = client._transport.app  # type: ignore[attr-defined]
        while not hasattr(app, "routes"):
            app = app.app if hasattr(app, "app") else app._app
        routes = [route for route in app.routes if isinstance(route, Route)]  # test_live.py asks the WebSocket
        asked = [(route.path, method) for route in routes for method in (route.methods or set()) - {"HEAD"}]
        answers = {one: await client.request(one[1], re.sub(r"\{\w+(:\w+)?\}", "x", one[0])) for one in asked}
    refused = {one for one, answer in answers.items() if answer.status_code in (401, 403)}
    # Amazon's clients expect a status of 400, and this type.
    refused |= {one for one, answer in answers.items() if "MissingAuthenticationTokenException" in answer.text}
    let_in = {path for path, _ in answers.keys() - refused}
    assert len(answers) > 50
    assert let_in == OPEN


async def test_a_missing_key_is_told_before_what_else_is_wrong(serve: Serve) -> None:
    async with serve(api_keys="one") as client:
        problem(await client.post("/translate", json={"text": "", "txet": 1}), KeyMissing)
        problem(await client.post("/translate", content=b"no JSON", headers={"Content-Type": "text/plain"}), KeyMissing)


@pytest.mark.parametrize(
    ("settings", "error"), [({"api_keys": "one"}, KeyMissing), ({"rate_limit": "1/hour"}, RateLimited)]
)
async def test_the_body_of_who_may_not_ask_is_never_read(
    serve: Serve, settings: dict[str, str], error: type[RequestError]
) -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("it is read")
        yield b""

    async with serve(**settings) as client:
        await client.post("/classify", json=BODY)
        problem(await client.post("/classify", content=body(), headers={"Content-Type": "application/json"}), error)


async def test_without_keys_a_client_cannot_escape_its_rate_by_inventing_one(serve: Serve) -> None:
    async with serve(rate_limit="2/hour") as client:
        statuses = [(await client.post("/classify", json=BODY, headers=bearer(f"{i}"))).status_code for i in range(3)]
    assert statuses == [200, 200, 429]


async def test_a_client_over_its_rate_waits_and_others_do_not(serve: Serve) -> None:
    async with serve(rate_limit="2/hour", api_keys="one,two") as client:
        for _ in range(2):
            assert (await client.post("/classify", json=BODY, headers=bearer("one"))).status_code == 200
        refused = await client.post("/classify", json=BODY, headers=bearer("one"))
        assert "2 per 1 hour" in problem(refused, RateLimited)["detail"]
        assert 0 < int(refused.headers["Retry-After"]) <= 3600
        otherwise_written = {"Authorization": "bEARER  one"}
        problem(await client.post("/classify", json=BODY, headers=otherwise_written), RateLimited)
        assert (await client.post("/classify", json=BODY, headers=bearer("two"))).status_code == 200


@pytest.mark.parametrize("read", [1, 100], ids=["with something unread", "with nothing unread"])
async def test_when_who_counts_has_gone_requests_are_told_that_the_service_ends(tmp_path: Path, read: int) -> None:
    loop, path = asyncio.get_running_loop(), tmp_path / "rates.sock"
    limiter = RemoteRateLimiter(path)
    with socket.socket(socket.AF_UNIX) as counting:
        counting.bind(str(path))
        counting.listen()
        counting.setblocking(False)
        asked = asyncio.create_task(limiter.wait_s("a", "1/hour"))
        connection, _ = await loop.sock_accept(counting)
        with connection:
            await loop.sock_recv(connection, 100)
            await loop.sock_sendall(connection, b"0\n")
            assert await asked == 0
            asked = asyncio.create_task(limiter.wait_s("a", "1/hour"))
            await loop.sock_recv(connection, read)
    for asking in (asked, limiter.wait_s("a", "1/hour")):
        with pytest.raises(Draining):
            await asking


FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
"""What a browser says of a request that a page of another site makes."""


def changes() -> list[tuple[str, dict[str, Any]]]:
    """Requests that a page may send to any site without asking it first: forms, and texts."""
    text = {"Content-Type": "text/plain"}
    terms = {"source": "en", "target": "fr"}
    return [
        ("/models/reload", {}),
        ("/glossaries/file", {"data": terms, "files": {"file": ("a.csv", b"dog,chat")}}),
        ("/translate/document", {"data": {"target": "fr"}, "files": {"file": ("a.txt", b"a dog")}}),
        ("/v2/glossaries", {"data": {"name": "x", "source_lang": "en", "target_lang": "fr", "entries": "a,b",
                                     "entries_format": "csv"}}),
        ("/v1/embeddings", {"content": b'{"input": "a dog", "model": "tiny-sentiment"}', "headers": text}),
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "sent"), changes(), ids=[path for path, _ in changes()])
async def test_a_page_of_another_site_changes_nothing(serve: Serve, path: str, sent: dict[str, Any]) -> None:
    sent = {**sent, "headers": {**sent.get("headers", {}), **FOREIGN}}
    async with serve() as client:
        refused = await client.post(path, **sent)
        assert (refused.status_code, "ATTEND_ALLOWED_ORIGINS" in refused.text) == (403, True)
        sent["headers"] = {**sent["headers"], "Sec-Fetch-Site": "same-origin"}
        assert (await client.post(path, **sent)).status_code != 403
        assert (await client.get("/models", headers=FOREIGN)).status_code == 200


async def test_a_page_may_ask_that_is_allowed_or_has_a_key_or_speaks_as_libretranslate_does(serve: Serve) -> None:
    for settings in ({"allowed_origins": FOREIGN["Origin"]}, {"allowed_origins": "*"}, {"api_keys": "one"}):
        async with serve(**settings) as client:
            answer = await client.post("/classify", json=BODY, headers={**FOREIGN, **bearer("one")})
            assert answer.status_code == 200
    async with serve() as client:
        form = {"q": "a dog", "source": "en", "target": "fr"}
        assert (await client.post("/libretranslate/translate", data=form, headers=FOREIGN)).status_code == 200
        problem(await client.post("/classify", json=BODY, headers=FOREIGN), CrossSite)
