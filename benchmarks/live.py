"""Translation of texts that are being spoken: `python -m benchmarks live`.

Each session says its sentences word by word, at a steady pace, whether answers come or not. The final translations are
compared with those of whole sentences.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from statistics import mean, quantiles

import httpx

from benchmarks.live_client import LiveClient
from model.data import read_tsv
from model.evaluation.scoring import score_translations

SOURCE, TARGET = "en", "fr"
TEXTS_PER_REQUEST = 32
TIMEOUT_S = 300.0


@dataclass
class Outcome:
    """What one sentence got.

    Attributes:
        seconds: from each update to its answer.
        n_updates: updates that were sent.
        erased: words that were shown and had to be taken back (Arivazhagan et al. 2020).
        behind: by how many words less than the source the shown translation had, at each answer but the last.
        final: the final translation.
    """

    seconds: list[float] = field(default_factory=list)
    n_updates: int = 0
    erased: int = 0
    behind: list[int] = field(default_factory=list)
    final: str = ""


async def say(client: LiveClient, sentence: str, interval_s: float) -> Outcome:
    """Send a sentence word by word, and read the answers. Raises RuntimeError: the service answered with an error."""
    words, sent_at, shown, outcome = sentence.split(), dict[int, float](), list[str](), Outcome()
    n_words: dict[int, int] = {}

    async def send() -> None:
        began_at = time.perf_counter()
        for n in range(1, len(words) + 1):
            await asyncio.sleep(max(0.0, began_at + n * interval_s - time.perf_counter()))
            is_last = n == len(words)
            sent_at[client.n_sent + 1], n_words[client.n_sent + 1] = time.perf_counter(), n
            options = {"source": SOURCE, "target": TARGET} if n == 1 else {}
            client.send(text=" ".join(words[:n]) + " " * (not is_last), final=is_last, **options)

    sending = asyncio.create_task(send())
    try:
        while True:
            answer = await client.receive()
            if answer is None or "code" in answer:
                raise RuntimeError(f"the service answered {answer or client.close}")
            outcome.seconds.append(time.perf_counter() - sent_at[answer["update"]])
            now = (answer["concluded"] + answer["tentative"]).split()
            n_same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(shown, now, strict=False))])
            outcome.erased += len(shown) - n_same
            shown = now
            if answer["final"]:
                outcome.n_updates, outcome.final = len(words), answer["concluded"]
                return outcome
            outcome.behind.append(n_words[answer["update"]] - len(now))
    finally:
        sending.cancel()


async def _session(url: str, sentences: Iterator[str], interval_s: float, outcomes: dict[str, Outcome]) -> None:
    await asyncio.sleep(random.Random(len(outcomes)).random() * interval_s)
    client = await LiveClient.open(url)
    for sentence in sentences:  # shared by all sessions
        outcomes[sentence] = await say(client, sentence, interval_s)
    client.leave()


async def _run(url: str, sentences: Sequence[str], n_sessions: int, interval_s: float) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    shared = iter(sentences)
    await asyncio.gather(*(_session(url, shared, interval_s, outcomes) for _ in range(n_sessions)))
    return outcomes


def measure(
    url: str, data: Path, test: str, rows: tuple[int, int], n_sessions: int, updates_per_s: float
) -> Iterator[str]:
    """Let sessions say the sentences of a test set, from one row to another, each once. Yield what was measured.

    Raises:
        DataError: the test set is missing.
        RuntimeError: the service answered with an error.
    """
    file = data / "translation" / "test" / f"{test}.{SOURCE}-{TARGET}.tsv.xz"
    pairs = {source: target for source, target in [*read_tsv(file)][slice(*rows)] if len(source.split()) > 1}
    sources = [*pairs]
    outcomes = asyncio.run(_run(url, sources, n_sessions, 1 / updates_per_s))
    seconds = [s for outcome in outcomes.values() for s in outcome.seconds]
    n_updates = sum(outcome.n_updates for outcome in outcomes.values())
    cuts = quantiles(seconds, n=100)
    yield f"{test}: {len(sources)} sentences, {n_sessions} sessions, {updates_per_s:g} updates a second each"
    yield (
        f"update: p50 {cuts[49] * 1e3:.0f} ms, p95 {cuts[94] * 1e3:.0f} ms; "
        f"{1 - len(seconds) / n_updates:.1%} of {n_updates} overtaken"
    )
    n_words = sum(len(outcome.final.split()) for outcome in outcomes.values())
    erasure = sum(outcome.erased for outcome in outcomes.values()) / n_words
    behind = mean(n for outcome in outcomes.values() for n in outcome.behind)
    yield f"normalized erasure {erasure:.3f}; the translation is {behind:.1f} words behind the source"
    whole = [*_whole(url, sources)]
    references = [pairs[source] for source in sources]
    finals = [outcomes[source].final for source in sources]
    live, usual = (score_translations(texts, references, TARGET)[0]["bleu"] for texts in (finals, whole))
    n_same = sum(map(str.__eq__, finals, whole))
    yield f"BLEU {live:.2f}, of whole sentences {usual:.2f}; {n_same / len(sources):.0%} are the same"


def _whole(url: str, sources: Sequence[str]) -> Iterator[str]:
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        for start in range(0, len(sources), TEXTS_PER_REQUEST):
            body = {"text": sources[start : start + TEXTS_PER_REQUEST], "source": SOURCE, "target": TARGET}
            answer = client.post("/translate", json=body).raise_for_status().json()
            yield from (translation["text"] for translation in answer["translations"])
