"""What clients do with glossaries and translation memories: they make one, translate with it, change and delete it."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tests.soak.client import Client, Judge
from tests.soak.http import Answer, Message, ask, json_message
from tests.soak.ledger import Ledger
from tests.soak.oracle import comparable, same
from tests.soak.requests import Needs, Request
from tests.soak.service import Soaked
from tests.soak.texts import Texts

KIND = "glossaries"
NAME = "of the soak"
ENTRIES = {"dog": "clebs", "cat": "matou", "red horse": "alezan"}
STORED = Needs.SERVER | Needs.DATABASE
GLOSSARY = "/glossaries/{glossary_id}"
MEMORY, STORED_TEXT = "/memories/{memory_id}", "Voilà."
PAUSE_S, TRIES = 0.1, 100


class Journeys:
    """Glossaries on their way. Those of which no client knows whether they were made have the name NAME."""

    def __init__(self, texts: Texts, random: Random) -> None:
        self._texts, self._random = texts, random

    async def any(self, client: Client) -> None:
        await self._random.choice([self.native, self.memory, self.deepl_2, self.deepl_3])(client)

    async def native(self, client: Client) -> None:
        dictionary = {"source": "en", "target": "fr", "entries": ENTRIES}
        made = _request("POST", "/glossaries", "/glossaries", name=NAME, dictionaries=[dictionary])
        card = await _answer(client, made, 201)
        if card is None:
            return
        path = f"/glossaries/{card['id']}"
        text = f"the dog sees a red horse. {self._texts.sentence()}"
        asked = {"text": text, "source": "en", "target": "fr"}
        inline = await client.ask(_translation(**asked, glossary=ENTRIES), _has_status(200))
        if inline is not None:
            await client.ask(_translation(**asked, glossary_id=card["id"]), _has_same_body(inline))
        renamed = _request("PATCH", path, GLOSSARY, name=f"{NAME}, renamed")
        await _until_right(lambda: client.ask(renamed, _has_status(200)))
        shown = Request(KIND, "native", GLOSSARY, Message("GET", path), STORED)
        await client.ask(shown, lambda answer: _differs(answer.json()["dictionaries"][0].get("entries"), ENTRIES))
        await self._delete(client, path, GLOSSARY, "native")
        await client.ask(_translation(**asked, glossary_id=card["id"]), _has_status(404))

    async def memory(self, client: Client) -> None:
        pair = {"source": "en", "target": "fr"}
        card = await _answer(client, _request("POST", "/memories", "/memories", name=NAME, **pair), 201)
        if card is None:
            return
        path = f"/memories/{card['id']}"
        text = self._texts.sentence()
        segments = [{"source": text, "target": STORED_TEXT}]
        put = _request("POST", f"{path}/segments", f"{MEMORY}/segments", segments=segments)
        await _until_right(lambda: client.ask(put, _has_status(200)))
        translated = _translation(text=f" {text}", memory_id=card["id"], **pair)
        await client.ask(
            translated, lambda answer: _differs(answer.json()["translations"][0]["text"].strip(), STORED_TEXT)
        )
        await self._delete(client, path, MEMORY, "native")
        await client.ask(_translation(text=text, memory_id=card["id"], **pair), _has_status(404))

    async def deepl_2(self, client: Client) -> None:
        entries = {"entries": "dog\tclebs", "entries_format": "tsv"}
        pair = {"source_lang": "en", "target_lang": "fr"}
        made = _request("POST", "/v2/glossaries", "/v2/glossaries", STORED, "deepl", name=NAME, **entries, **pair)
        card = await _answer(client, made, 201)
        if card is None:
            return
        path, route = f"/v2/glossaries/{card['glossary_id']}", "/v2/glossaries/{glossary_id}"
        fields = {"text": ["the dog"], "glossary_id": card["glossary_id"], **pair}
        translated = _request("POST", "/v2/translate", "/v2/translate", Needs.MODELS, "deepl", **fields)
        await client.ask(translated, lambda answer: None if b"clebs" in answer.body else f"no term: {answer.body!r}")
        listed = Request(KIND, "deepl", f"{route}/entries", Message("GET", f"{path}/entries"), STORED)
        await client.ask(listed, lambda answer: _differs(answer.body, b"dog\tclebs"))
        await self._delete(client, path, route, "deepl")

    async def deepl_3(self, client: Client) -> None:
        dictionary = {"source_lang": "en", "target_lang": "fr", "entries": "dog\tclebs"}
        made = _request(
            "POST", "/v3/glossaries", "/v3/glossaries", STORED, "deepl", name=NAME, dictionaries=[dictionary]
        )
        card = await _answer(client, made, 201)
        if card is None:
            return
        path, route = f"/v3/glossaries/{card['glossary_id']}", "/v3/glossaries/{glossary_id}"
        put = _request("PUT", f"{path}/dictionaries", f"{route}/dictionaries", STORED, "deepl", **dictionary)
        await _until_right(lambda: client.ask(put, _has_status(200)))
        await client.ask(Request(KIND, "deepl", route, Message("GET", path), STORED), _has_status(200))
        await self._delete(client, path, route, "deepl")

    async def _delete(self, client: Client, path: str, route: str, dialect: str) -> None:
        """A deletion whose answer is lost may have happened: then it is not found."""
        request = Request(KIND, dialect, route, Message("DELETE", path), STORED)
        await _until_right(lambda: client.ask(request, _has_status(204, 404)))


def _request(
    method: str, path: str, route: str, needs: Needs = STORED, dialect: str = "native", /, **fields: Any
) -> Request:
    return Request(KIND, dialect, route, json_message(method, path, fields), needs | STORED)


def _translation(**fields: Any) -> Request:
    return _request("POST", "/translate", "/translate", Needs.MODELS, **fields)


async def _answer(client: Client, request: Request, status: int) -> Any:
    answer = await client.ask(request, _has_status(status))
    return None if answer is None or answer.status != status else answer.json()


async def _until_right(ask: Callable[[], Awaitable[Answer | None]]) -> None:
    """Ask again while a fault prevents the answer."""
    for _ in range(TRIES):
        if await ask() is not None:
            return
        await asyncio.sleep(PAUSE_S)


def _has_status(*statuses: int) -> Judge:
    return lambda answer: None if answer.status in statuses else f"{answer.status} {answer.body[:300]!r}"


def _has_same_body(other: Answer) -> Judge:
    return lambda answer: (
        None if same(comparable(answer), comparable(other)) else f"{answer.body!r}, not {other.body!r}"
    )


def _differs(found: object, expected: object) -> str | None:
    return None if found == expected else f"{found!r}, not {expected!r}"


async def delete_forgotten(soaked: Soaked, ledger: Ledger) -> list[str]:
    """Delete glossaries and memories whose maker was not told their ids. Return what is wrong: there are more."""
    ids = list[str]()
    for kind in ("glossaries", "memories"):
        answer = await ask(soaked.host, soaked.port, Message("GET", f"/{kind}"))
        of_kind = [stored["id"] for stored in answer.json()[kind]]
        for stored_id in of_kind:
            await ask(soaked.host, soaked.port, Message("DELETE", f"/{kind}/{stored_id}"))
        ids += of_kind
    paths = ("/glossaries", "/memories", "/v2/glossaries", "/v3/glossaries")
    n_lost = sum(n for (_, route), n in ledger.unanswered.items() if route in paths)
    n_lost += sum(n for (_, route, status), n in ledger.answered.items() if route in paths and status >= 500)
    return (
        [f"{len(ids)} glossaries and memories, though only {n_lost} of their makers got no answer"]
        if len(ids) > n_lost
        else []
    )
