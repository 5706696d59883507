"""Over HTTP, tokenization and sentence splitting included: attend, LibreTranslate, and FastAPI with CTranslate2.

The load generator shares the machine's cores with the server: the same for all. Runs of one table are in turns, each on
a server just started.
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
"""By the texts of one request: enough that every server always has work."""

LEAST_SHARE = 0.9
"""Of the load offered, that settings must bear to be chosen for how fast they answer."""


@dataclass(frozen=True)
class HttpBenchmark:
    """All servers at one beam size; every method measures one table and saves it.

    Args:
        seconds: of one run of the load generator.
        repetitions: runs of each server, in turns.
    """

    beam_size: int
    seconds: float
    repetitions: int
    data: Path | None
    quick: bool
    console: Console

    def saturation(self) -> None:
        """Texts per second when each connection always has a request open, of one text and of many; of each server at
        those of its settings with which it answers most."""
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
        """attend and a peer at one load, a share of what the peer bears, each with the settings that are best at it.

        Raises:
            LookupError: the peer's saturation has not been measured.
        """
        saturated = self._known("saturation", server=peer, texts=1)
        if saturated is None:
            raise LookupError(f"measure saturation first, {peer} has none at beam {self.beam_size}")
        rate = share * saturated["texts_per_s"]
        connections = max(64, round(rate))
        pair = [self._calmest(name, connections, rate) for name in (ATTEND, peer)]
        connections = min(connections, *(variant.max_connections for variant in pair))
        turns = [[self._offer(variant, connections, rate) for variant in pair] for _ in range(self.repetitions)]
        for variant, runs in zip(pair, zip(*turns, strict=True), strict=True):
            run = _median(runs, [run.p99_ms for run in runs])
            record = {"server": variant.server, "settings": variant.label, "peer": peer, "share": share}
            record |= {"offered_per_s": rate, "connections": connections}
            record |= {**asdict(run), "rate": run.rate, "all_p99_ms": [run.p99_ms for run in runs]}
            self._save("latency", ["server", "beam_size", "peer", "share"], record)

    def survival(self) -> None:
        """What is left over HTTP, in requests of many texts, of the throughput of attend's bare engine."""
        works = works_of(load_sentences(self.data, TEXTS), self._tokenizer())
        artifacts = BenchmarkModel(SHIPPED).artifacts("int8")
        in_flight = TEXTS_PER_BATCH * CONNECTIONS[TEXTS_PER_BATCH]
        bare, served = [], []
        for _ in range(self.repetitions):
            with EngineProcess(Candidate(ATTEND, "defaults", {"slots": 96}), artifacts, works) as engine:
                engine.run(self.beam_size, in_flight, TEXTS // 2)
                bare.append(TEXTS / statistics.median(engine.run(self.beam_size, in_flight).seconds for _ in range(3)))
            with Server(self._best(ATTEND)) as server:
                served.append(TEXTS_PER_BATCH * self._saturate(server, TEXTS_PER_BATCH).rate)
        medians = {"engine_texts_per_s": statistics.median(bare), "http_texts_per_s": statistics.median(served)}
        self._save("survival", ["beam_size"], {**medians, "all_engine": bare, "all_http": served})

    def agreement(self) -> None:
        """Whether the servers do the same work: their BLEU, and how many translations are those of FastAPI."""
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
        """With the settings that were best at requests of many texts; where that is unknown, the first there are."""
        known = self._known("saturation", server=server, texts=TEXTS_PER_BATCH)
        candidates = variants(server, self.beam_size)
        return next((v for v in candidates if known and v.label == known["settings"]), candidates[0])

    def _requests(self, texts: int) -> list[list[str]]:
        sentences = [sentence.text for sentence in load_sentences(self.data, TEXTS)]
        return [sentences[start : start + texts] for start in range(0, TEXTS, texts)]

    def _saturate(self, server: Server, texts: int) -> Load:
        bodies = server.bodies(self._requests(texts))
        return saturate(server.url, bodies, CONNECTIONS[texts], self.seconds)

    def _calmest(self, server: str, connections: int, rate: float) -> Variant:
        """The settings with which a server's slowest hundredth is fastest."""
        candidates = variants(server, self.beam_size)
        if len(candidates) == 1:
            return candidates[0]
        runs = [self._offer(variant, min(connections, variant.max_connections), rate) for variant in candidates]
        return candidates[min(range(len(runs)), key=lambda i: (runs[i].rate < LEAST_SHARE * rate, runs[i].p99_ms))]

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
