"""What browsers, and proxies before them, want of the service."""

import re

import pytest
from pydantic import ValidationError

from service.base.errors import InferenceFailed, KeyMissing, UnknownPath
from service.base.settings import Settings
from service.documents.kinds import KINDS_BY_ENDING, LISTED_KINDS
from service.front.models import Models
from tests.service.conftest import Client, Serve, problem

pytestmark = pytest.mark.anyio

ORIGIN = "https://example.org"


async def test_the_page_of_docs_gets_all_from_the_service(client: Client) -> None:
    page = await client.get("/docs")
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?:", page.text) == []
    assert "unsafe" not in page.headers["content-security-policy"]
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(addresses) == 5
    for address in addresses:
        assert not address.startswith("/")
        assert (await client.get(address)).status_code == 200
    assert (await client.get("/docs/nothing.js")).status_code == 404
    assert (await client.get("/docs/index.html")).status_code == 404


async def test_page_and_descriptions_list_the_kinds_of_files(client: Client) -> None:
    page = (await client.get("/")).text
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert f'accept="{",".join(KINDS_BY_ENDING)}"' in page
    assert "$" not in page
    for path in ("/translate/document", "/v2/document", "/libretranslate/translate_file"):
        assert f"{LISTED_KINDS}." in paths[path]["post"]["description"]


async def test_pages_are_counted_under_their_own_names(client: Client) -> None:
    for path in ("/docs", "/openapi.json", "/", "/docs/start.js", "/playground/main.js"):
        assert (await client.get(path)).status_code == 200
    counted = (await client.get("/metrics")).text
    for route in ("/docs", "/openapi.json", "/", "/docs/{name}", "/playground/{name}"):
        assert f'attend_requests_total{{dialect="native",route="{route}",status="200"}} 1.0' in counted
    assert "unmatched" not in counted


async def test_a_large_answer_is_compressed_and_says_the_same(client: Client) -> None:
    body = {"text": ["the dog runs"] * 8, "attention": True}
    for path in ("/translate", "/openapi.json", "/metrics", "/docs/swagger-ui-bundle.js"):
        method, asked = ("POST", body) if path == "/translate" else ("GET", None)
        answer = await client.request(method, path, json=asked)
        uncompressed = await client.request(method, path, json=asked, headers={"Accept-Encoding": "gzip;q=0"})
        assert answer.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in uncompressed.headers
        assert int(answer.headers["content-length"]) < int(uncompressed.headers["content-length"])
        if path != "/metrics":
            assert answer.content == uncompressed.content


@pytest.mark.parametrize("root_path", ["/attend", "/some/where/"])
async def test_the_service_answers_under_its_path_and_without(serve: Serve, root_path: str) -> None:
    prefix = root_path.rstrip("/")
    async with serve(root_path=root_path) as client:
        for before in ("", prefix):
            document = (await client.get(f"{before}/openapi.json")).json()
            assert document["servers"] == [{"url": prefix}]
            assert (await client.post(f"{before}/translate", json={"text": "the dog"})).status_code == 200
            assert (await client.get(f"{before}/docs")).status_code == 200
            assert (await client.get(f"{before}/")).status_code == 200
        problem(await client.get(f"{prefix}er/docs"), UnknownPath)
        redirected = await client.get(prefix)
        assert (redirected.status_code, redirected.headers["location"]) == (307, f"{prefix}/")
        counted = (await client.get("/metrics")).text
    assert 'attend_requests_total{dialect="native",route="/translate",status="200"} 2.0' in counted


async def test_the_description_names_no_server_where_no_path_is_configured(client: Client) -> None:
    document = (await client.get("/openapi.json")).json()
    assert "servers" not in document
    assert not {"/docs", "/openapi.json", "/docs/{name}"} & document["paths"].keys()


@pytest.mark.parametrize("path", ["attend", "http://example.org/attend", "/a b", "//"])
def test_a_root_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        Settings(root_path=path)


async def test_a_browser_of_an_allowed_origin_may_ask_and_read_answers_and_errors(serve: Serve) -> None:
    async with serve(allowed_origins=f"{ORIGIN}, http://localhost:3000", api_keys="k") as client:
        preflight = await client.options(
            "/translate",
            headers={
                "Origin": ORIGIN,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type,x-request-id",
            },
        )
        answer = await client.post(
            "/translate", json={"text": "the dog"}, headers={"Origin": ORIGIN, "Authorization": "Bearer k"}
        )
        refused = await client.post("/translate", json={"text": "the dog"}, headers={"Origin": ORIGIN})
    assert preflight.status_code == 200
    assert "POST" in preflight.headers["access-control-allow-methods"]
    problem(refused, KeyMissing)
    for response in (preflight, answer, refused):
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert "Origin" in response.headers["vary"]
    exposed = refused.headers["access-control-expose-headers"]
    assert {"X-Request-ID", "Server-Timing", "Retry-After"} <= set(exposed.split(", "))


async def test_errors_that_nobody_expected_can_be_read_by_other_origins(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(allowed_origins="*") as client:
        monkeypatch.setattr(Models, "translate", lambda *_, **__: 1 / 0)
        response = await client.post("/translate", json={"text": "the dog"}, headers={"Origin": ORIGIN})
    problem(response, InferenceFailed)
    assert response.headers["access-control-allow-origin"] == "*"


async def test_a_browser_of_another_origin_is_told_nothing(serve: Serve) -> None:
    async with serve(allowed_origins=ORIGIN) as allowed, serve() as none:
        for client in (allowed, none):
            headers = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
            preflight = await client.options("/translate", headers=headers)
            answer = await client.post("/translate", json={"text": "a dog"}, headers={"Origin": "https://example.com"})
            assert preflight.status_code in (400, 405)
            assert answer.status_code == 200
            for response in (preflight, answer):
                assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("origin", ["example.org", f"{ORIGIN}/", f"{ORIGIN}/page", "*.example.org"])
def test_an_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(ValidationError, match="allowed_origins"):
        Settings(allowed_origins=origin)  # type: ignore[arg-type]
