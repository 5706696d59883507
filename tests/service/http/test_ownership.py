"""What a key stored: seen, used and changed by that key, and by those with which it is shared."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from service.access.key_file import read_keys
from service.base.errors import NotOwner, StartRefused, UnknownGlossary, UnknownMemory
from tests.service.access.key_tables import table
from tests.service.conftest import Client, Serve, problem

pytestmark = pytest.mark.anyio

OWN, OTHER, READER, WRITER = ({"authorization": f"Bearer {name}"} for name in ("own", "other", "reader", "writer"))
PAIR = {"source": "dog", "target": "clebs"}


@pytest.fixture
async def keyed(serve: Serve, tmp_path: Path) -> AsyncIterator[Client]:
    """A service with four keys, of which two may use what the first one has."""
    file = tmp_path / "keys"
    tables = [table("own", "own"), table("other", "other")]
    shared = ((name, f'shared = {{ own = "{right}" }}\n') for name, right in (("reader", "read"), ("writer", "write")))
    file.write_text("".join(tables + [table(name, name) + line for name, line in shared]))
    async with serve(api_keys_file=file) as client:
        yield client


async def stored(client: Client) -> tuple[str, str]:
    """The ids of a glossary and of a memory of the first key."""
    dictionary = {"source": "en", "target": "fr", "entries": {"dog": "clebs"}}
    glossary = await client.post("/glossaries", json={"name": "g", "dictionaries": [dictionary]}, headers=OWN)
    languages = {"source": "en", "target": "fr"}
    memory = await client.post("/memories", json={"name": "m", **languages}, headers=OWN)
    path = f"/memories/{memory.json()['id']}"
    assert (await client.post(f"{path}/segments", json={"segments": [PAIR]}, headers=OWN)).status_code == 200
    return glossary.json()["id"], memory.json()["id"]


@pytest.mark.parametrize("key", [OWN, READER, WRITER])
async def test_the_owner_and_those_it_shares_with_see_and_use_it(keyed: Client, key: Mapping[str, str]) -> None:
    glossary, memory = await stored(keyed)
    assert [one["id"] for one in (await keyed.get("/glossaries", headers=key)).json()["glossaries"]] == [glossary]
    assert [one["id"] for one in (await keyed.get("/memories", headers=key)).json()["memories"]] == [memory]
    body = {"text": "dog", "memory_id": memory}
    answer = await keyed.post("/translate", json=body, headers=key)
    assert answer.json()["translations"][0]["text"] == "clebs"
    answer = await keyed.post("/translate", json={"text": "dog", "glossary_id": glossary}, headers=key)
    assert answer.json()["translations"][0]["text"] == "clebs"
    file = {"file": ("a.txt", b"dog")}
    answer = await keyed.post(
        "/translate/document", files=file, data={"memory_id": memory, "wait": "true"}, headers=key
    )
    assert answer.text == "clebs"


async def test_to_another_key_it_does_not_exist(keyed: Client) -> None:
    glossary, memory = await stored(keyed)
    assert (await keyed.get("/glossaries", headers=OTHER)).json() == {"glossaries": []}
    assert (await keyed.get("/memories", headers=OTHER)).json() == {"memories": []}
    for body, error in (({"glossary_id": glossary}, UnknownGlossary), ({"memory_id": memory}, UnknownMemory)):
        problem(await keyed.post("/translate", json={"text": "dog", **body}, headers=OTHER), error)
        file = {"file": ("a.txt", b"dog")}
        problem(await keyed.post("/translate/document", files=file, data=body, headers=OTHER), error)
    for path, error in ((f"/glossaries/{glossary}", UnknownGlossary), (f"/memories/{memory}", UnknownMemory)):
        problem(await keyed.get(path, headers=OTHER), error)
        problem(await keyed.delete(path, headers=OTHER), error)


@pytest.mark.parametrize(("key", "may"), [(READER, False), (WRITER, True)])
async def test_who_may_only_read_changes_nothing(keyed: Client, key: Mapping[str, str], may: bool) -> None:
    glossary, memory = await stored(keyed)
    dictionary = {"source": "en", "target": "fr", "entries": {"cat": "matou"}}
    calls: list[tuple[str, str, Any]] = [
        ("PATCH", f"/glossaries/{glossary}", {"name": "x"}),
        ("PUT", f"/glossaries/{glossary}/dictionaries", dictionary),
        ("DELETE", f"/glossaries/{glossary}/dictionaries?source=en&target=fr", None),
        ("DELETE", f"/glossaries/{glossary}", None),
        ("POST", f"/memories/{memory}/segments", {"segments": [PAIR]}),
        ("DELETE", f"/memories/{memory}/segments?source=dog", None),
        ("DELETE", f"/memories/{memory}", None),
    ]
    for method, path, body in calls:
        answer = await keyed.request(method, path, json=body, headers=key)
        if may:
            assert answer.status_code in (200, 204), answer.text
        else:
            problem(answer, NotOwner)


async def test_what_was_stored_without_keys_belongs_to_all(serve: Serve, tmp_path: Path) -> None:
    async with serve() as client:
        _, memory = await stored(client)
    async with serve(api_keys=["own", "other"]) as client:
        for key in (OWN, OTHER):
            assert (await client.get(f"/memories/{memory}", headers=key)).status_code == 200


def test_a_key_shares_with_keys_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for line in ('shared = { nobody = "read" }', 'shared = { own = "delete" }'):
        file.write_text(f"{table('own', 'own')}{table('reader', 'reader')}{line}\n")
        with pytest.raises(StartRefused, match="shared"):
            read_keys(file)
