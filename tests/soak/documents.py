"""What clients do with documents, in three dialects: they send one, ask for it, fetch it, delete it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

from tests.service.documents.test_excel import string, workbook
from tests.service.documents.word_files import by_hand, paragraph, run
from tests.soak.calls import CalledServer
from tests.soak.client import Client
from tests.soak.http import Answer, Message, form_message, json_message
from tests.soak.oracle import file_content
from tests.soak.requests import Needs, Request
from tests.soak.texts import Texts

POLL_S = 0.1
PATIENCE_S = 120.0
KIND = "documents"
STORED = Needs.SERVER | Needs.MODELS | Needs.DATABASE
DOCUMENT, BATCH = "/translate/document/{document_id}", "/translate/batch"

Documents = dict[str, bytes]
"""Contents by file name."""


def make_documents(texts: Texts, n: int) -> Documents:
    """Make small documents, some of which a process of its own reads."""
    makers: dict[str, Callable[[], bytes]] = {
        "txt": lambda: "\n\n".join(texts.texts()).encode(),
        "md": lambda: f"# {texts.sentence()}\n\n* **{texts.sentence()}**\n* {texts.text()}\n".encode(),
        "html": lambda: f"<html lang=en><body>{texts.html()}</body></html>".encode(),
        "srt": lambda: f"1\n00:00:01,000 --> 00:00:02,000\n{texts.sentence()}\n".encode(),
        "jsonl": lambda: "\n".join(map(json.dumps, texts.texts())).encode(),
        "csv": lambda: f"id,text\n1,{texts.sentence()}\n2,{texts.sentence()}\n".encode(),
        "docx": lambda: by_hand(paragraph(run(texts.sentence())) + paragraph(run(texts.sentence(), "<w:b/>"))),
        "xlsx": lambda: workbook(string(texts.sentence())),
    }
    endings = [*makers]
    return {f"{i}.{ending}": makers[ending]() for i in range(n) for ending in [endings[i % len(endings)]]}


class Journeys:
    """Documents on their way.

    Args:
        called: is called when a batch is finished.
        calm: the translation of each document, as it was in calm; the first journey in calm writes it.
    """

    def __init__(self, documents: Documents, random: Random, called: CalledServer) -> None:
        self._documents = documents
        self._random = random
        self._called = called
        self.calm: dict[str, object] = {}

    @property
    def names(self) -> list[str]:
        return [*self._documents]

    async def any(self, client: Client) -> None:
        name = self._random.choice(self.names)
        journeys = [self.native, self.native, self.waiting, self.deepl, self.libretranslate]
        await self._random.choice([self.batch] if name.endswith("jsonl") else journeys)(client, name)

    async def native(self, client: Client, name: str) -> None:
        """Send a document, and ask until it is translated. Some leave it, and it is deleted by time."""
        began = time.monotonic()
        form = form_message("/translate/document", name, self._documents[name], source="en", target="fr")
        card = await self._made(client, _stored("/translate/document", form), 202)
        if card is None:
            return
        path, query = f"/translate/document/{card['id']}", f"?key={card['key']}"
        asking = _stored(DOCUMENT, Message("GET", path + query), Needs.DATABASE)
        async for state in self._states(client, asking, began):
            if state["status"] == "error":
                self._judge_failure(client, name, state["error"], began)
                break
            if state["status"] == "done":
                result = _stored(f"{DOCUMENT}/result", Message("GET", f"{path}/result{query}"))
                await self._fetch(client, name, result, began)
                break
        if self._random.random() < 0.8:
            request = _stored(DOCUMENT, Message("DELETE", path + query), Needs.DATABASE)
            await _until_right(lambda: client.ask(request, lambda answer: _unlike(answer, 204, 404)))

    async def batch(self, client: Client, name: str) -> None:
        """Send the lines of a document twice as a batch, and wait for the call that tells of its end."""
        began, number = time.monotonic(), next(client.shared.numbers)
        body = {"texts": [*map(json.loads, self._documents[name].splitlines())], "callback_url": self._called.url}
        message = json_message("POST", BATCH, {"source": "en", "target": "fr"} | body, idempotency_key=f"{number}")
        first, again = [
            await _until_right(lambda: client.ask(_stored(BATCH, message), lambda answer: _unlike(answer, 202)))
            for _ in range(2)
        ]
        if first is None or again is None or {first.status, again.status} != {202}:
            return
        card = first.json()
        is_forgotten = client.shared.oracle.forgets_documents
        if card["id"] != again.json()["id"] and not is_forgotten(began, time.monotonic()):
            client.shared.ledger.complain(f"{name}: sent again, it is another batch")
        try:
            async with asyncio.timeout(PATIENCE_S):
                status = await self._called.status(card["id"])
        except TimeoutError:
            if not is_forgotten(began, time.monotonic()):
                client.shared.ledger.complain(f"{name}: no call within {PATIENCE_S} s")
            return
        if status == "error":
            self._judge_failure(client, name, "as its call says", began)
            return
        result = Message("GET", f"/translate/document/{card['id']}/result?key={card['key']}")
        await self._fetch(client, name, _stored(f"{DOCUMENT}/result", result), began)

    async def waiting(self, client: Client, name: str) -> None:
        """Wait for the translation."""
        form = form_message("/translate/document", name, self._documents[name], source="en", target="fr", wait="true")
        began = time.monotonic()

        def judge(answer: Answer) -> str | None:
            if answer.status in (422, 504) and self._may_fail(client, began):
                return None
            return self._unlike_calm(name, answer)

        await client.ask(_stored("/translate/document", form), judge)

    async def deepl(self, client: Client, name: str) -> None:
        began = time.monotonic()
        form = form_message("/v2/document", name, self._documents[name], source_lang="EN", target_lang="FR")
        handle = await self._made(client, _stored("/v2/document", form, dialect="deepl"), 200)
        if handle is None:
            return
        path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
        route = "/v2/document/{document_id}"
        asking = _stored(route, json_message("POST", path, key), Needs.DATABASE, "deepl")
        async for state in self._states(client, asking, began):
            if state["status"] == "error":
                self._judge_failure(client, name, state["error_message"], began)
                break
            if state["status"] == "done":
                result = json_message("POST", f"{path}/result", key)
                await self._fetch(client, name, _stored(f"{route}/result", result, dialect="deepl"), began)
                break

    async def libretranslate(self, client: Client, name: str) -> None:
        began = time.monotonic()
        path = "/libretranslate/translate_file"
        form = form_message(path, name, self._documents[name], source="en", target="fr")
        request = _stored(path, form, dialect="libretranslate")
        answer = await client.ask(
            request,
            lambda found: _unlike(found, 200, *((400, 504) if self._may_fail(client, began) else ())),
        )
        if answer is not None and answer.status == 200:
            route = "/libretranslate/download_file/{document_id}/{key}/{file_name}"
            url = answer.json()["translatedFileUrl"]
            fetched = Message("GET", "/libretranslate" + url.partition("/libretranslate")[2])
            await self._fetch(client, name, _stored(route, fetched, Needs.DATABASE, "libretranslate"), began)

    async def _made(self, client: Client, request: Request, status: int) -> Any:
        """Send a document. Return what the service says of it; None if a fault prevented that."""
        answer = await client.ask(request, lambda answer: _unlike(answer, status))
        return None if answer is None or answer.status != status else answer.json()

    async def _states(self, client: Client, request: Request, began: float) -> AsyncIterator[Any]:
        """Yield the states of a document, until nobody asks for more, or it is forgotten in a fault.

        Args:
            began: when the document was sent.
        """
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            answer = await client.ask(request, lambda answer: self._unless_forgotten(client, began, answer, 200))
            if answer is not None and answer.status != 200:
                return
            if answer is not None:
                yield answer.json()
            await asyncio.sleep(POLL_S)
        client.shared.ledger.complain(f"{request.message.path}: not translated within {PATIENCE_S} s")

    async def _fetch(self, client: Client, name: str, request: Request, began: float) -> None:
        def judge(answer: Answer) -> str | None:
            if answer.status != 200:
                return self._unless_forgotten(client, began, answer, 200)
            return self._unlike_calm(name, answer)

        await _until_right(lambda: client.ask(request, judge))

    def _unless_forgotten(self, client: Client, began: float, answer: Answer, status: int) -> str | None:
        """Judge a status; a document may be gone if clocks jumped since it was sent."""
        is_forgotten = answer.status == 404 and client.shared.oracle.forgets_documents(began, time.monotonic())
        return None if is_forgotten else _unlike(answer, status)

    def _unlike_calm(self, name: str, answer: Answer) -> str | None:
        if answer.status != 200:
            return f"{name}: {answer.status} {answer.body[:300]!r}"
        found = file_content(answer.body)
        if self.calm.setdefault(name, found) != found:
            return f"{name}: another translation, {str(found)[:300]}"
        return None

    def _may_fail(self, client: Client, began: float) -> bool:
        windows = client.shared.oracle.windows_between(began, time.monotonic())
        return any(window.fault.fails_documents for window in windows)

    def _judge_failure(self, client: Client, name: str, error: str, began: float) -> None:
        if not self._may_fail(client, began):
            client.shared.ledger.complain(f"{name}: the document failed: {error}")


async def _until_right(ask: Callable[[], Awaitable[Answer | None]], tries: int = 100) -> Answer | None:
    """Ask again while a fault prevents the answer."""
    for _ in range(tries):
        if (answer := await ask()) is not None:
            return answer
        await asyncio.sleep(POLL_S)
    return None


def _stored(route: str, message: Message, needs: Needs = STORED, dialect: str = "native") -> Request:
    return Request(KIND, dialect, route, message, needs)


def _unlike(answer: Answer, *statuses: int) -> str | None:
    return None if answer.status in statuses else f"{answer.status} {answer.body[:300]!r}"
