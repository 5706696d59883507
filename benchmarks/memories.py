"""Translation memories: `python -m benchmarks memories`. Sentences are those of the corpora, or made of words of random
lengths and ranks."""

import asyncio
import lzma
import random
import string
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate, islice
from pathlib import Path
from statistics import quantiles

from service.access.ownership import ANYBODY
from service.documents.memory_files import TMX_END, MemoryFile, tmx_head, tmx_units
from service.memories.recall import Recall
from service.memories.store import BATCH, Memories, Memory, Segment
from service.storage.database import Database

N_WORDS, N_LOOKUPS = 50_000, 500


def sentences(n_segments: int, data: Path | None) -> Iterator[tuple[str, str]]:
    """Yield sentences and their translations: of the corpora from English to French, or invented ones of 4 to 20 words,
    whose ranks follow Zipf's law."""
    for file in sorted((data / "translation" / "train").glob("*.en-fr.tsv.xz")) if data else ():
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, _, target = line.rstrip("\n").partition("\t")
                yield source, target
    chance = random.Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 11))) for _ in range(N_WORDS)]
    weights = [*accumulate(1 / rank for rank in range(1, N_WORDS + 1))]
    for number in range(n_segments):
        chosen = chance.choices(words, cum_weights=weights, k=chance.randint(4, 20))
        text = f"{' '.join(chosen).capitalize()} {number}."
        yield text, text[::-1]


def measure(place: Path | str, n_segments: int, data: Path | None) -> Iterator[str]:
    """Import a file of TMX, and look texts up. Yield what was measured, in words."""
    pairs = [*islice(sentences(n_segments, data), n_segments)]
    with closing(Database(place)) as database:
        memories = Memories(database)
        memory = memories.create(ANYBODY, "benchmark", "en", "fr")
        units = tmx_units(memory, (Segment(source, target) for source, target in pairs))
        file = MemoryFile("a.tmx", f"{tmx_head(memory)}{units}{TMX_END}".encode(), "en", "fr")
        began_at, busy_at = time.monotonic(), time.process_time()
        segments = file.segments()
        while batch := [*islice(segments, BATCH)]:
            memories.put(ANYBODY, memory.id, batch)
        busy_s, seconds = time.process_time() - busy_at, time.monotonic() - began_at
        yield (
            f"import: {n_segments / seconds:,.0f} segments/s, {busy_s / n_segments * 1e6:.0f} µs of the processor each"
        )
        chance = random.Random(2)
        known = [source for source, _ in chance.sample(pairs, N_LOOKUPS) if len(source.split()) > 2]
        changed = [_changed(text, chance) for text in known]
        for name, texts, exact_only in (("exact", known, True), ("similar", changed, False)):
            times, busy, n_found = _look_up(memories, memory, texts, known, exact_only)
            middle, late = quantiles(times, n=100)[49], quantiles(times, n=100)[94]
            yield (
                f"{name}: p50 {middle * 1e3:.2f} ms, p95 {late * 1e3:.2f} ms, {busy * 1e3:.2f} ms of the processor "
                f"each, {n_found / len(texts):.1%} found"
            )


def _changed(text: str, chance: random.Random) -> str:
    """Return a sentence with one word in eight replaced, and one at least."""
    words = text.split()
    for place in chance.sample(range(len(words)), max(1, len(words) // 8)):
        words[place] = "changed"
    return " ".join(words)


def _look_up(
    memories: Memories, memory: Memory, texts: list[str], known: list[str], exact_only: bool
) -> tuple[list[float], float, int]:
    """Return the seconds of each lookup, those of the processor, and how many found the text that was known."""
    times, busy, n_found = list[float](), 0.0, 0
    for text, source in zip(texts, known, strict=True):
        recall = asyncio.run(Recall.of(memories, ANYBODY, memory.id, ("en", "fr"), 50, exact_only))
        began_at, busy_at = time.perf_counter(), time.process_time()
        found = recall.look_up([text]).get(text)
        times.append(time.perf_counter() - began_at)
        busy += time.process_time() - busy_at
        matches = [] if found is None else [*found.matches, *([found.used] if found.used else [])]
        n_found += any(match.source.split() == source.split() for match in matches)
    return times, busy / len(texts), n_found
