"""Latency of single sentences while documents are translated: `python -m benchmarks documents`.

Four clients send one sentence after the other, alone and beside one document and three.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.engines import ATTEND
from benchmarks.load import Load, saturate
from benchmarks.servers import Server, variants
from benchmarks.texts import load_sentences

N_DOCUMENTS = (0, 1, 3)
N_CLIENTS = 4
N_PARAGRAPHS = 3000
"""Paragraphs of a document, of three sentences each: it outlasts the measurement."""


def measure(beam_size: int, seconds: float, data: Path | None) -> Iterator[tuple[int, Load]]:
    """Yield the latency of single sentences for each number of documents beside them."""
    sentences = [sentence.text for sentence in load_sentences(data, None)]
    with Server(variants(ATTEND, beam_size)[0]) as server:
        bodies = server.bodies(sentences)
        for n_documents in N_DOCUMENTS:
            with _documents(server, n_documents, sentences):
                yield n_documents, saturate(server.url, bodies, N_CLIENTS, seconds)


@contextmanager
def _documents(server: Server, n_documents: int, sentences: list[str]) -> Iterator[None]:
    """Have documents translated."""
    with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
        cards = []
        for seed in range(n_documents):
            chosen = random.Random(seed)
            paragraphs = (
                f"<p>{' '.join(chosen.choices(sentences, k=2))} <b>{chosen.choice(sentences)}</b> {i}</p>"
                for i in range(N_PARAGRAPHS)
            )
            file = "manual.html", "\n".join(paragraphs).encode()
            answer = client.post("/translate/document", files={"file": file}, data={"source": "en", "target": "fr"})
            cards.append(answer.raise_for_status().json())
        yield
        for card in cards:
            address, key = f"/translate/document/{card['id']}", {"key": card["key"]}
            assert client.get(address, params=key).json()["status"] in ("translating", "queued"), "it was too short"
            client.delete(address, params=key)
