"""Measures attend, LibreTranslate, and FastAPI with CTranslate2 over HTTP, with tokenization and sentence splitting.

The load generator shares the cores with each server alike. Runs of one table are in turns, each on a new server.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from tokenizers import Tokenizer

from benchmarks.engines import ATTEND
from benchmarks.load import Load, offer, saturate
from benchmarks.models import SHIPPED, BenchmarkModel
from benchmarks.peers.sentencepiece_model import tokenized_alike
from benchmarks.processes import Candidate, EngineProcess
from benchmarks.quality import bleu
from benchmarks.results import Record, command, load, save
from benchmarks.servers import Server, Variant, variants
from benchmarks.texts import load_sentences, works_of

SERVERS = (ATTEND, "fastapi", "libretranslate")
TEXTS = 512
TEXTS_PER_BATCH = 32
CONNECTIONS = {1: 64, TEXTS_PER_BATCH: 4}
"""Connections by texts per request: enough that every server always has work."""
MIN_ANSWERED_SHARE = 0.9
"""Smallest share of the offered load that settings must answer to be compared by latency."""


@dataclass(frozen=True)
class HttpBenchmark:
    """All servers at one beam size; each method measures one table and saves it.

    Args:
        seconds: seconds of one run of the load generator.
        repetitions: runs of each server, in turns.
    """

    beam_size: int
    seconds: float
    repetitions: int
    data: Path | None
    quick: bool
    console: Console

    def saturation(self) -> None:
        """Measure texts per second under full load, with one text per request and many, of each server at its best."""
        loads: dict[tuple[str, int], dict[str, list[Load]]] = {}
        for _ in range(self.repetitions):
            for name in SERVERS:
                for variant in variants(name, self.beam_size):
                    with Server(variant) as server:
                        for texts in CONNECTIONS:
                            runs = loads.setdefault((name, texts), {}).setdefault(variant.label, [])
                            runs.append(self._saturate(server, texts))
        for (name, texts), by_settings in loads.items():
            rates = {label: [run.rate for run in runs] for label, runs in by_settings.items()}
            best = max(rates, key=lambda label: statistics.median(rates[label]))
            run = _median(by_settings[best], rates[best])
            record = {"server": name, "settings": best, "texts": texts, **asdict(run), "texts_per_s": texts * run.rate}
            record |= {"rates": rates[best], "rates_by_settings": rates}
            self._save("saturation", ["server", "beam_size", "texts"], record)

    def latency(self, peer: str, share: float) -> None:
        """Measure attend and a peer at a share of the peer's saturation, each with its best settings for it. Raises
        LookupError: the saturation of the peer was not measured."""
        saturated = self._known("saturation", server=peer, texts=1)
        if saturated is None:
            raise LookupError(f"measure `--part saturation` of {peer} at beam {self.beam_size} first")
        rate = share * saturated["texts_per_s"]
        connections = max(64, round(rate))
        pair = [self._lowest_latency(name, connections, rate) for name in (ATTEND, peer)]
        connections = min(connections, *(variant.max_connections for variant in pair))
        turns = [[self._offer(variant, connections, rate) for variant in pair] for _ in range(self.repetitions)]
        for variant, runs in zip(pair, zip(*turns, strict=True), strict=True):
            run = _median(runs, [run.p99_ms for run in runs])
            record = {"server": variant.server, "settings": variant.label, "peer": peer, "share": share}
            record |= {"offered_per_s": rate, "connections": connections}
            record |= {**asdict(run), "rate": run.rate, "all_p99_ms": [run.p99_ms for run in runs]}
            self._save("latency", ["server", "beam_size", "peer", "share"], record)

    def survival(self) -> None:
        """Measure how much of the bare engine's throughput remains over HTTP, with many texts per request."""
        works = works_of(load_sentences(self.data, TEXTS), self._tokenizer())
        artifacts = BenchmarkModel(SHIPPED).artifacts("int8")
        in_flight = TEXTS_PER_BATCH * CONNECTIONS[TEXTS_PER_BATCH]
        bare, served = [], []
        for _ in range(self.repetitions):
            with EngineProcess(Candidate(ATTEND, "defaults", {"rows": 96}), artifacts, works) as engine:
                engine.run(self.beam_size, in_flight, TEXTS // 2)
                bare.append(TEXTS / statistics.median(engine.run(self.beam_size, in_flight).seconds for _ in range(3)))
            with Server(self._best(ATTEND)) as server:
                served.append(TEXTS_PER_BATCH * self._saturate(server, TEXTS_PER_BATCH).rate)
        medians = {"engine_texts_per_s": statistics.median(bare), "http_texts_per_s": statistics.median(served)}
        self._save("survival", ["beam_size"], {**medians, "all_engine": bare, "all_http": served})

    def agreement(self) -> None:
        """Measure whether servers do the same work: their BLEU, and how many translations equal those of FastAPI."""
        sentences = load_sentences(self.data, TEXTS)
        outputs: dict[str, list[str]] = {}
        for name in SERVERS:
            with Server(self._best(name)) as server:
                outputs[name] = [
                    text for request in self._requests(TEXTS_PER_BATCH) for text in server.translate(request)
                ]
        alike = tokenized_alike(self._tokenizer(), [sentence.text for sentence in sentences])
        for name, texts in outputs.items():
            record: Record = {"server": name, "texts": len(texts), "bleu": bleu(texts, sentences)}
            record["equal"] = sum(a == b for a, b in zip(texts, outputs["fastapi"], strict=True))
            record["tokenized_alike"] = alike if name == "libretranslate" else len(texts)
            self._save("agreement", ["server", "beam_size"], record)

    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(BenchmarkModel(SHIPPED).checkpoint() / "tokenizer.json"))

    def _best(self, server: str) -> Variant:
        """Return the best settings with many texts per request; if unknown, the first ones."""
        known = self._known("saturation", server=server, texts=TEXTS_PER_BATCH)
        candidates = variants(server, self.beam_size)
        return next((v for v in candidates if known and v.label == known["settings"]), candidates[0])

    def _requests(self, texts: int) -> list[list[str]]:
        sentences = [sentence.text for sentence in load_sentences(self.data, TEXTS)]
        return [sentences[start : start + texts] for start in range(0, TEXTS, texts)]

    def _saturate(self, server: Server, texts: int) -> Load:
        bodies = server.bodies(self._requests(texts))
        return saturate(server.url, bodies, CONNECTIONS[texts], self.seconds)

    def _lowest_latency(self, server: str, connections: int, rate: float) -> Variant:
        """Return the settings of a server with the lowest 99th percentile."""
        candidates = variants(server, self.beam_size)
        if len(candidates) == 1:
            return candidates[0]
        runs = [self._offer(variant, min(connections, variant.max_connections), rate) for variant in candidates]
        return candidates[
            min(range(len(runs)), key=lambda i: (runs[i].rate < MIN_ANSWERED_SHARE * rate, runs[i].p99_ms))
        ]

    def _offer(self, variant: Variant, connections: int, rate: float) -> Load:
        with Server(variant) as server:
            return offer(server.url, server.bodies(self._requests(1)), connections, rate, self.seconds)

    def _known(self, part: str, **fields: object) -> Record | None:
        wanted = {"beam_size": self.beam_size, **fields}.items()
        return next((record for record in load(part, self.quick) if wanted <= record.items()), None)

    def _save(self, part: str, key: list[str], record: Record) -> None:
        record = {**record, "beam_size": self.beam_size, "command": command()}
        self.console.print(part, record)
        save(part, key, [record], self.quick)


def _median(runs: Sequence[Load], values: list[float]) -> Load:
    return runs[values.index(statistics.median_low(values))]
