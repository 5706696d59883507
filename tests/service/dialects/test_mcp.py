"""The Model Context Protocol, with the official client, in both of its eras."""

from base64 import b64decode, b64encode
from typing import Any

import httpx
import pytest
import uvicorn

from tests.service.dialects.conftest import Listen

_HANDLE_EXIT = uvicorn.Server.handle_exit
from mcp import Client  # noqa: E402

uvicorn.Server.handle_exit = _HANDLE_EXIT  # type: ignore[method-assign]  # a package of mcp's replaces it

pytestmark = pytest.mark.anyio

TRANSLATORS = {"from-fr": (3, "fr", "en"), "from-en": (11, "en", "fr")}
TEXT = "the red dog runs"
STATELESS = "2026-07-28"


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return listen(max_text_characters=1000)


def native(address: str, text: str = TEXT) -> str:
    answer = httpx.post(f"{address}/translate", json={"text": text, "source": "en", "target": "fr"})
    return str(answer.json()["translations"][0]["text"])


def sent(address: str, message: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{address}/mcp", json=message, headers={"accept": "application/json", **headers})


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agents_translate(address: str, mode: Any) -> None:
    async with Client(f"{address}/mcp", mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["translate"].description is not None
        assert set(tools["translate"].input_schema["required"]) == {"text", "target"}

        answer = await client.call_tool("translate", {"text": [TEXT, ""], "source": "en", "target": "fr"})
        assert not answer.is_error
        assert answer.structured_content == {
            "translations": [{"text": native(address), "source": "en"}, {"text": "", "source": "en"}]
        }
        detected = await client.call_tool("detect_language", {"text": "le chien court sur la plage"})
        assert detected.structured_content["languages"][0]["language"] == "fr"
        languages = (await client.call_tool("list_languages", {})).structured_content["languages"]
        assert languages == [
            {"code": "en", "name": "English", "targets": ["fr"]},
            {"code": "fr", "name": "French", "targets": ["en"]},
        ]
        label = (await client.call_tool("classify", {"text": TEXT})).structured_content
        assert label["label"] in label["scores"]


async def test_agents_translate_files_and_read_glossaries(address: str) -> None:
    terms = {"dictionaries": [{"source": "en", "target": "fr", "entries": {"dog": "CHIEN"}}], "name": "animals"}
    glossary_id = httpx.post(f"{address}/glossaries", json=terms).json()["id"]
    content = b64encode(TEXT.encode()).decode()
    async with Client(f"{address}/mcp") as client:
        file = {"name": "letter.txt", "content": content, "source": "en", "target": "fr"}
        translated = (await client.call_tool("translate_document", file)).structured_content
        assert b64decode(translated["content"]).decode() == native(address)
        listed = (await client.call_tool("list_glossaries", {})).structured_content["glossaries"]
        assert listed == [{"glossary_id": glossary_id, "name": "animals", "pairs": ["en-fr"]}]
        glossary = await client.call_tool("get_glossary", {"glossary_id": glossary_id})
        assert glossary.structured_content == {"name": "animals", "terms": {"en-fr": {"dog": "CHIEN"}}}
        assert (await client.call_tool("list_memories", {})).structured_content == {"memories": []}
        with_terms = {"text": TEXT, "source": "en", "target": "fr", "glossary_id": glossary_id}
        answer = (await client.call_tool("translate", with_terms)).structured_content
        assert "CHIEN" in answer["translations"][0]["text"]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("translate", {"text": TEXT, "target": "xx"}, "list_languages"),
        ("translate", {"text": TEXT}, "`target` is required"),
        ("translate", {"text": "a" * 1001, "source": "en", "target": "fr"}, "1,000|1000"),
        ("get_glossary", {"glossary_id": "none"}, "none"),
        ("translate_document", {"name": "a.txt", "content": "?", "target": "fr"}, "base64"),
    ],
)
async def test_what_a_tool_refuses_is_told_to_the_agent(
    address: str, tool: str, arguments: dict[str, Any], told: str
) -> None:
    async with Client(f"{address}/mcp") as client:
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.content[0].type == "text"
    assert any(part in answer.content[0].text for part in told.split("|")), answer.content[0].text


@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [
        (request("resources/list"), {}, 200, -32601),
        (request("resources/list"), {"mcp-protocol-version": STATELESS, "mcp-method": "resources/list"}, 404, -32601),
        (request("tools/call", name="rm"), {}, 200, -32602),
        (request("ping"), {"mcp-protocol-version": "1999-01-01"}, 400, -32022),
        (request("ping"), {"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"}, 400, -32020),
        ([request("ping")], {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, {}, 400, -32600),
    ],
)
def test_wrong_messages_are_named(address: str, message: Any, headers: Any, status: int, code: int) -> None:
    answer = sent(address, message, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_notifications_and_pings(address: str) -> None:
    assert sent(address, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    assert sent(address, request("ping")).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert httpx.get(f"{address}/mcp").status_code == 405
    not_json = httpx.post(f"{address}/mcp", content=b"{")
    assert (not_json.status_code, not_json.json()["error"]["code"]) == (400, -32700)
    of_another_site = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert sent(address, request("ping"), **of_another_site).status_code == 403


async def test_a_key_is_wanted(listen: Listen) -> None:
    address = listen(api_keys="a-key")
    refused = sent(address, request("ping"))
    assert refused.status_code == 403, "401 would begin a search for an authorization server"
    assert "key" in refused.json()["error"]["message"]
    assert sent(address, request("ping"), authorization="Bearer a-key").json()["result"] == {}
