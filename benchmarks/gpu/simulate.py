"""Measures the engine for a GPU without one: what the host costs beside the device, and which constants are best."""

import gc
from pathlib import Path
from unittest.mock import patch

from tokenizers import Tokenizer

from benchmarks.engines import Work
from benchmarks.engines.attend import sequences_of, targets_of
from benchmarks.gpu.driving import Constants, Driven, drive
from benchmarks.gpu.inputs import say
from benchmarks.gpu.simulation import Lengths, SimulatedGraphs, SimulatedProvider, SimulatedRunner
from benchmarks.models import SHIPPED
from benchmarks.texts import load_sentences, works_of
from benchmarks.workspace import ROOT
from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import read_artifact
from service.base.settings import Settings
from service.worker import artifact_source

SENTENCES = 512
WORKS_OF_SLOW_BATCHES = {1: 64, 8: 128}
CTRANSLATE2 = {
    1: {1: 1_648, 8: 9_934, 64: 68_246, 256: 145_809},
    4: {1: 1_547, 8: 10_130, 64: 50_778, 256: 106_944},
}
"""Target tokens a second of CTranslate2 in float16 on an H200 (docs/gpu.md), by beam size and sentences in flight."""
ARRIVALS_PER_S = (100, 400, 1600)
"""Requests of one sentence that arrive in a second, at random times."""


def measure(data: Path | None, constants: Constants, n_works: int | None, repetitions: int = 3) -> None:
    """Print tokens a second beside CTranslate2's, and latencies of single sentences that arrive at random times.

    Args:
        repetitions: the fastest is printed, since other processes make a host slow.
    """
    sentences = load_sentences(data, SENTENCES)[:n_works]
    tokenizer = Tokenizer.from_file(str(ROOT / "artifacts" / SHIPPED / "tokenizer.json"))
    works = works_of(sentences, tokenizer)
    targets = [tokenizer.encode(sentence.reference or sentence.text).ids for sentence in sentences]
    lengths = {tuple(work.source_ids): len(target) - 1 for work, target in zip(works, targets, strict=True)}
    gc.collect()
    gc.freeze()  # as a worker does
    for beam_size, speeds in CTRANSLATE2.items():
        for batch, others in speeds.items():
            some = works[: WORKS_OF_SLOW_BATCHES.get(batch)]
            engine = SimulatedEngine(lengths, constants, beam_size, batch * beam_size)
            runs = [engine.run(some, together=batch > 1) for _ in range(1 + repetitions)][1:]
            driven = min(runs, key=lambda run: run.seconds)
            tokens_per_s = round(engine.n_tokens / driven.seconds)
            say(
                part="simulate",
                beam_size=beam_size,
                batch=batch,
                **constants.changes(),
                tokens_per_s=tokens_per_s,
                ratio=round(tokens_per_s / others, 2),
                **engine.costs(driven),
            )
        for per_s in ARRIVALS_PER_S:
            engine = SimulatedEngine(lengths, constants, beam_size, 256)
            _, driven = (engine.run(works, together=False, per_s=per_s) for _ in range(2))
            p50, p95 = driven.latency_ms(0.5), driven.latency_ms(0.95)
            say(
                part="simulate",
                beam_size=beam_size,
                arrivals_per_s=per_s,
                **constants.changes(),
                p50_ms=p50,
                p95_ms=p95,
            )


class SimulatedEngine:
    """The engine of one kind of search, over stand-ins for the graphs of the shipped model.

    Args:
        updates: what its manifest says otherwise.
    """

    def __init__(self, lengths: Lengths, constants: Constants, beam_size: int, rows: int, **updates: object) -> None:
        self._constants, self._beam_size = constants, beam_size
        manifest = read_artifact(ROOT / "artifacts" / SHIPPED).manifest.model_copy(update=updates)
        self._provider = SimulatedProvider("cpu", threads=1, captures=True)
        self.clock, self.runs = self._provider.clock, self._provider.runs
        self.graphs = SimulatedGraphs(manifest, self._provider, lengths)
        with constants.changed(), patch.object(artifact_source, "DeviceTranslationRunner", SimulatedRunner):
            settings = Settings(rows=max(MAX_BEAM_SIZE, rows), max_waiting=10**6)
            self.engine = artifact_source.fixed_engines(self.graphs, settings)["greedy" if beam_size == 1 else "beam"]
        self.n_tokens = 0

    def run(self, works: list[Work], together: bool, per_s: float | None = None) -> Driven:
        """Translate works, as one request or one after the other."""
        sequences = sequences_of(works, self.graphs.manifest, self._beam_size)
        requests = [sequences] if together else [[sequence] for sequence in sequences]
        with self._constants.changed():
            driven = drive(self.engine, requests, per_s, self.clock.now, self.clock.wait_until, self._provider.forget)
        self.n_tokens = sum(map(len, targets_of(sequences, self.graphs.manifest)))
        return driven

    def costs(self, driven: Driven) -> dict[str, float]:
        """Return the number of runs, and milliseconds: in all, of the device, and in which the device had to wait."""
        device_s = self.clock.device_s()
        figures = {"ms": driven.seconds, "device_ms": device_s, "idle_ms": driven.seconds - device_s}
        return {**self.runs, **{name: round(1000 * seconds, 1) for name, seconds in figures.items()}}
