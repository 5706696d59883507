"""What clients do at the WebSocket for live translation: they type a text, flood the service with it, or leave."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from benchmarks.live_client import LIVE_PATH, LiveClient, RefusedError
from tests.soak.client import PATIENCE_S, Client
from tests.soak.http import Answer, Lost, Message
from tests.soak.oracle import PROBLEM
from tests.soak.requests import Request
from tests.soak.texts import Texts

KIND = "live"
N_TEXTS = 8
START = {"source": "en", "target": "fr"}
UPDATE = Request(KIND, "native", LIVE_PATH, Message("GET", LIVE_PATH))


class Sessions:
    """Texts that are typed word by word.

    Args:
        calm: the answers to each text, as they were in calm; the first client that types it in calm writes them.
    """

    def __init__(self, texts: Texts, random: Random) -> None:
        self.texts = [texts.text() for _ in range(N_TEXTS)]
        self._random = random
        self.calm = dict[str, list[Any]]()

    async def any(self, client: Client) -> None:
        await self._random.choice([self.typed, self.typed, self.flooded, self.left])(
            client, self._random.choice(self.texts)
        )

    async def typed(self, client: Client, text: str) -> None:
        """Wait for the answer to each word."""
        async with _losses_noted(client), _opened(client) as session:
            answers = [await session.ask(update) for update in _updates(text)]
            if self.calm.setdefault(text, answers) != answers:
                client.shared.ledger.complain(f"{text!r} live: {answers[-1]}, in calm {self.calm[text][-1]}")

    async def flooded(self, client: Client, text: str) -> None:
        """Wait for nothing but the end."""
        async with _losses_noted(client), _opened(client) as session:
            for update in _updates(text):
                session.send(update)
            while not (await session.hear())["final"]:
                pass

    async def left(self, client: Client, text: str) -> None:
        async with _losses_noted(client), _opened(client) as session:
            session.send(START | self._random.choice([*_updates(text)]))
            if self._random.random() < 0.5:
                await session.hear()


def _updates(text: str) -> Iterator[dict[str, Any]]:
    words = text.split(" ")
    for n in range(1, len(words) + 1):
        options = START if n == 1 else {}
        yield {"text": " ".join(words[:n]), "final": n == len(words), **options}


class _ErrorAnswered(Exception):  # noqa: N818
    """A message was answered with an error, which has been judged."""


class _Session:
    """One WebSocket, whose answers are counted. Each goes on from what was concluded before."""

    def __init__(self, client: Client, socket: LiveClient) -> None:
        self._client, self._socket = client, socket
        self._sent_at = time.monotonic()
        self._concluded = ""
        self.n_answers = 0

    def send(self, update: dict[str, Any]) -> None:
        self._sent_at = time.monotonic()
        self._socket.send(**update)

    async def ask(self, update: dict[str, Any]) -> dict[str, Any]:
        self.send(update)
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        """Return the next answer. Raises Lost: the WebSocket has ended. Raises _ErrorAnswered."""
        message = await self._socket.receive()
        if message is None:
            raise Lost(f"closed with {self._socket.close}")
        self.n_answers += 1
        answer = Answer(message.get("status", 200), {"content-type": PROBLEM}, json.dumps(message).encode())
        self._client.shared.ledger.answered["native", LIVE_PATH, answer.status] += 1
        self._client.note_answer(UPDATE, answer, self._sent_at, self._complaint)
        if answer.status != 200:
            raise _ErrorAnswered
        self._concluded = message["concluded"]
        return message

    def _complaint(self, answer: Answer) -> str | None:
        message = answer.json()
        if answer.status == 200 and message["concluded"].startswith(self._concluded):
            return None
        return f"live, after {self._concluded!r}: {message}"


@asynccontextmanager
async def _losses_noted(client: Client) -> AsyncIterator[None]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    except _ErrorAnswered:
        pass
    except (Lost, OSError, RefusedError, TimeoutError) as error:
        client.note_loss(UPDATE, began, error)


@asynccontextmanager
async def _opened(client: Client) -> AsyncIterator[_Session]:
    shared = client.shared
    socket = await LiveClient.open(f"http://{shared.host}:{shared.port}")
    session = _Session(client, socket)
    try:
        yield session
    finally:
        socket.leave()
        shared.ledger.unanswered["native", LIVE_PATH] += socket.n_sent - session.n_answers
