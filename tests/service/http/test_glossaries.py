"""Glossaries that are kept under a name: made, changed, used and forgotten over HTTP."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.base.errors import (
    GlossaryMismatch,
    InvalidFields,
    InvalidGlossary,
    KeyMissing,
    LimitExceeded,
    RequestError,
    UnknownGlossary,
    UnsupportedMediaType,
)
from service.glossaries.store import MAX_NAMED_GLOSSARIES
from tests.running_service import running_service
from tests.service.conftest import Client, Serve, problem
from tests.service.server.test_servers import environment

pytestmark = pytest.mark.anyio

ANIMALS = {
    "name": "Animals",
    "dictionaries": [
        {"source": "en", "target": "fr", "entries": {"dog": "clebs", "the cat": "le matou"}},
        {"source": "EN", "target": "de-DE", "entries": {"dog": "Köter"}},
    ],
}


async def made(client: Client) -> dict[str, Any]:
    response = await client.post("/glossaries", json=ANIMALS)
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_glossary_is_kept_until_it_is_deleted(client: Client) -> None:
    assert (await client.get("/glossaries")).json() == {"glossaries": []}
    card = await made(client)
    assert datetime.fromisoformat(card["created_at"]).tzinfo is not None
    assert card == {
        "id": card["id"],
        "name": "Animals",
        "created_at": card["created_at"],
        "dictionaries": [
            {"source": "en", "target": "fr", "entry_count": 2},
            {"source": "en", "target": "de", "entry_count": 1},
        ],
    }
    path = f"/glossaries/{card['id']}"
    assert (await client.get("/glossaries")).json() == {"glossaries": [card]}
    whole = (await client.get(path)).json()
    assert [dictionary.pop("entries") for dictionary in whole["dictionaries"]] == [
        {"dog": "clebs", "the cat": "le matou"},
        {"dog": "Köter"},
    ]
    assert whole == card
    assert (await client.delete(path)).status_code == 204
    for call in (client.get, client.delete):
        assert card["id"] in problem(await call(path), UnknownGlossary)["detail"]


async def test_a_glossary_is_changed(client: Client) -> None:
    path = f"/glossaries/{(await made(client))['id']}"
    more = {"name": "Beasts", "dictionaries": [{"source": "en", "target": "fr", "entries": {"cow": "vache"}}]}
    card = (await client.patch(path, json=more)).raise_for_status().json()
    assert (card["name"], card["dictionaries"][0]["entry_count"]) == ("Beasts", 3)
    other = {"source": "en", "target": "fr", "entries": {"dog": "chien"}}
    put = (await client.put(f"{path}/dictionaries", json=other)).raise_for_status().json()
    assert put == {"source": "en", "target": "fr", "entry_count": 1}
    of_pair = {"source": "en", "target": "de"}
    assert (await client.delete(f"{path}/dictionaries", params=of_pair)).status_code == 204
    whole = (await client.get(path)).json()
    assert whole["dictionaries"] == [{**other, "entry_count": 1}]
    problem(await client.delete(f"{path}/dictionaries", params=of_pair), UnknownGlossary)
    missing = problem(await client.delete(f"{path}/dictionaries", params={"source": "en"}), InvalidFields)
    assert [error["loc"] for error in missing["errors"]] == [["query", "target"]]


@pytest.mark.parametrize(
    ("body", "error", "part"),
    [
        ({}, InvalidFields, "`name`"),
        ({"name": " "}, InvalidFields, "`name`"),
        ({"name": "a\ud800"}, InvalidFields, "`name`"),
        (
            {"name": "a", "dictionaries": [{"source": "en", "target": "fr", "entries": {}}]},
            InvalidGlossary,
            "`entries` must not be empty",
        ),
        (
            {"name": "a", "dictionaries": [{"source": "en", "target": "fr", "entries": {"a": "\ud800"}}]},
            InvalidGlossary,
            "`entries` entry 1: the translation",
        ),
        (
            {"name": "a", "dictionaries": [{"source": "en", "target": "en-US", "entries": {"a": "b"}}]},
            InvalidGlossary,
            "both are en",
        ),
        (
            {"name": "a", "dictionaries": [{"source": "e'", "target": "fr", "entries": {"a": "b"}}]},
            InvalidGlossary,
            "e' ",
        ),
        ({"name": "a", "dictionaries": ANIMALS["dictionaries"][:1] * 2}, InvalidGlossary, "from en to fr"),
    ],
)
async def test_a_wrong_glossary_is_refused_in_words(
    client: Client, body: dict[str, Any], error: type[RequestError], part: str
) -> None:
    content = json.dumps(body).encode()
    response = await client.post("/glossaries", content=content, headers={"content-type": "application/json"})
    assert part in problem(response, error)["detail"]
    assert (await client.get("/glossaries")).json() == {"glossaries": []}


async def test_a_translation_has_the_terms_of_a_stored_glossary(client: Client) -> None:
    body = {"text": ["the dog of Tom", "a cat", "dog"], "target": "fr"}
    card = await made(client)
    inline = await client.post("/translate", json=body | {"glossary": ANIMALS["dictionaries"][0]["entries"]})
    stored = await client.post("/translate", json=body | {"glossary_id": card["id"]})
    own = await client.post("/translate", json=body | {"glossary_id": card["id"], "glossary": {"dog": "chien"}})
    none = await client.post("/translate", json=body)
    headers = {"accept": "application/x-ndjson"}
    pieces = await client.post("/translate", json=body | {"glossary_id": card["id"]}, headers=headers)
    texts = [translation["text"] for translation in stored.raise_for_status().json()["translations"]]
    assert stored.json() == inline.json()
    assert texts[2] == "clebs"
    assert "clebs" in texts[0]
    assert [translation["text"] for translation in own.json()["translations"]][2] == "chien"
    assert none.json()["translations"][2]["text"] != "clebs"
    assert json.loads(pieces.text.splitlines()[-1])["translations"] == stored.json()["translations"]


async def test_a_glossary_that_is_not_there_or_not_for_these_languages_is_refused(client: Client) -> None:
    body = {"text": "the dog", "target": "fr"}
    card = await made(client)
    unknown = await client.post("/translate", json=body | {"glossary_id": "x"})
    await client.delete(f"/glossaries/{card['id']}/dictionaries", params={"source": "en", "target": "fr"})
    other = await client.post("/translate", json=body | {"glossary_id": card["id"]})
    same = await client.post("/translate", json=body | {"source": "fr", "glossary_id": card["id"]})
    problem(unknown, UnknownGlossary)
    detail = problem(other, GlossaryMismatch)["detail"]
    assert [value for value in ("'Animals'", "en to fr", "en to de") if value not in detail] == []
    assert same.json()["translations"][0]["text"] == "the dog"


async def test_where_languages_are_detected_a_glossary_is_for_those_that_it_has(client: Client) -> None:
    card = await made(client)
    body = {"text": ["the dog runs on the beach", "42"], "source": "auto", "target": "fr"}
    found = await client.post("/translate", json=body | {"glossary_id": card["id"]})
    assert "clebs" in found.raise_for_status().json()["translations"][0]["text"]
    await client.delete(f"/glossaries/{card['id']}/dictionaries", params={"source": "en", "target": "fr"})
    without = await client.post("/translate", json=body | {"glossary_id": card["id"]})
    assert "clebs" not in without.raise_for_status().json()["translations"][0]["text"]


@pytest.mark.parametrize(
    ("ids", "error"), [(["{card}"] * (MAX_NAMED_GLOSSARIES + 1), LimitExceeded), (["{card}", "x"], UnknownGlossary)]
)
@pytest.mark.parametrize("source", ["en", "auto"])
async def test_wrong_glossaries_of_a_request_are_told_in_every_language(
    client: Client, source: str, ids: list[str], error: type[RequestError]
) -> None:
    card = await made(client)
    await client.delete(f"/glossaries/{card['id']}/dictionaries", params={"source": "en", "target": "fr"})
    body = {"text": "the dog runs on the beach", "source": source, "target": "fr"}
    problem(await client.post("/translate", json=body | {"glossary_id": ",".join(ids).format(card=card["id"])}), error)


async def test_glossaries_are_behind_keys_and_rates(serve: Serve) -> None:
    async with serve(api_keys="k", rate_limit="2/minute") as client:
        problem(await client.get("/glossaries"), KeyMissing)
        headers = {"authorization": "Bearer k"}
        for status in (200, 200, 429):
            assert (await client.get("/glossaries", headers=headers)).status_code == status


@pytest.mark.process
def test_all_servers_have_the_same_glossaries(artifacts: Path, tmp_path: Path) -> None:
    settings = environment(artifacts, data=tmp_path / "data")
    with running_service(tmp_path / "log", settings) as service:
        card = service.post("/glossaries", json=ANIMALS).raise_for_status().json()
        body = {"text": "dog", "target": "fr", "glossary_id": card["id"]}
        for number in range(8):  # each connection may be with another server
            with httpx.Client(base_url=service.base_url) as client:
                entries = {"dog": f"chien {number}"}
                of_pair = {"source": "en", "target": "fr", "entries": entries}
                client.put(f"/glossaries/{card['id']}/dictionaries", json=of_pair).raise_for_status()
            with httpx.Client(base_url=service.base_url) as client:
                answer = client.post("/translate", json=body).raise_for_status().json()
                assert answer["translations"][0]["text"] == f"chien {number}"
    with running_service(tmp_path / "log", settings | {"ATTEND_SERVERS": "1"}) as service:
        assert len(service.get("/glossaries").json()["glossaries"]) == 1


async def upload(client: Client, content: bytes, file_name: str = "Terms.tsv", **fields: str) -> httpx.Response:
    data = {"source": "en", "target": "fr", **fields}
    return await client.post("/glossaries/file", files={"file": (file_name, content)}, data=data)


async def test_a_file_becomes_a_glossary_or_a_dictionary_of_one(client: Client) -> None:
    card = (await upload(client, b"dog\tclebs\ncat\tmatou\n")).raise_for_status().json()
    assert (card["name"], card["dictionaries"]) == ("Terms", [{"source": "en", "target": "fr", "entry_count": 2}])
    named = (await upload(client, b"a,b", "a.csv", name="Animals", target="de")).raise_for_status().json()
    assert (named["name"], named["dictionaries"][0]["target"]) == ("Animals", "de")
    of_dog = '<tuv lang="en-US"><seg>dog</seg></tuv><tuv lang="fr-FR"><seg>chien</seg></tuv>'
    tmx = f"<tmx><body><tu>{of_dog}</tu></body></tmx>".encode()
    changed = (await upload(client, tmx, "x.tmx", glossary_id=card["id"], name="Dogs")).raise_for_status().json()
    assert changed == {**card, "name": "Dogs", "dictionaries": [{**card["dictionaries"][0], "entry_count": 1}]}
    whole = (await client.get(f"/glossaries/{card['id']}")).json()
    assert whole["dictionaries"][0]["entries"] == {"dog": "chien"}


async def test_a_file_that_is_no_glossary_is_refused_in_words(client: Client) -> None:
    assert problem(await upload(client, b"dog\tclebs\ncat\t"), InvalidGlossary)["detail"].startswith(
        "Line 2: the trans"
    )
    assert "both are en" in problem(await upload(client, b"a\tb", target="en"), InvalidGlossary)["detail"]
    assert "`extra`" in problem(await upload(client, b"a\tb", extra="1"), InvalidFields)["detail"]
    problem(await upload(client, b"a\tb", glossary_id="x"), UnknownGlossary)
    problem(await client.post("/glossaries/file", json={}), UnsupportedMediaType)
    problem(await client.post("/glossaries/file", data={"source": "en"}, files={"x": b""}), InvalidFields)
    assert (await client.get("/glossaries")).json() == {"glossaries": []}


async def test_terms_may_be_case_sensitive_in_a_request_and_in_a_glossary(client: Client) -> None:
    exact = {"dog": {"translation": "clebs", "case_sensitive": True}}
    body = {"name": "A", "dictionaries": [{"source": "en", "target": "fr", "entries": exact | {"cat": "matou"}}]}
    card = (await client.post("/glossaries", json=body)).raise_for_status().json()
    whole = (await client.get(f"/glossaries/{card['id']}")).json()
    assert whole["dictionaries"][0]["entries"] == exact | {"cat": "matou"}
    texts = {"text": ["dog", "Dog", "CAT", "cats"], "target": "fr"}
    stored = await client.post("/translate", json=texts | {"glossary_id": card["id"]})
    own = await client.post("/translate", json=texts | {"glossary": exact | {"cat": "matou"}})
    for answer in (stored, own):
        found = [translation["text"] for translation in answer.raise_for_status().json()["translations"]]
        assert (found[0], found[2:]) == ("clebs", ["MATOU", "matou"])
        assert "clebs" not in found[1].casefold()
    all_exact = await client.post("/translate", json=texts | {"glossary_id": card["id"], "case_sensitive": True})
    assert "MATOU" not in all_exact.json()["translations"][2]["text"]
    for entry in ({"translation": ""}, {"case_sensitive": True}, 1):
        refused = await client.post("/translate", json=texts | {"glossary": {"dog": entry}})
        assert "`glossary.dog" in problem(refused, InvalidFields)["detail"]
