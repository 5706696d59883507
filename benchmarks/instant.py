"""Speed of servers before workers that answer immediately: `python -m benchmarks servers`.

The workers are stand-ins that compute nothing, so that only the servers are measured, one or several of them.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.load import saturate
from benchmarks.models import SHIPPED, BenchmarkModel
from benchmarks.servers import Server, Variant, variants
from benchmarks.texts import load_sentences
from service.engine.engine import ContinuousEngine, Engine, OnePass
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Hypothesis, Search
from service.pool import loader
from service.server.start import main
from service.worker.artifact_source import ArtifactSource
from service.worker.on_demand import Engines

SECONDS = 8.0
CONNECTIONS = 64


@dataclass(frozen=True)
class InstantSource(ArtifactSource):
    """Source of translators that answer with their source."""

    def load(self, model: str, alone: bool) -> Engines:
        return {name: _instant(engine) for name, engine in super().load(model, alone).items()}


def _instant(engine: Engine[Any]) -> Engine[Any]:
    def answer(sequences: list[Sequence[Search]]) -> None:
        for sequence in sequences:
            sequence.output.finished.append(Hypothesis(sequence.source_ids, 0.0, "eos"))

    def probe() -> Sequence[Search]:
        return Sequence([5], Search(9))

    return ContinuousEngine(OnePass(answer, probe), Scheduler(engine.scheduler.max_rows, 10**6, 10**6))


def measure(counts: list[int], repetitions: int) -> dict[int, list[float]]:
    """Return the texts per second, one per request, for each number of servers, in turns."""
    (variant,) = variants("attend", beam_size=1)
    texts = [sentence.text for sentence in load_sentences(None, None)]
    rates: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(repetitions):
        for count in counts:
            with Server(_with_servers(variant, count)) as server:
                rates[count].append(saturate(server.url, server.bodies(texts), CONNECTIONS, SECONDS).rate)
    return rates


def _with_servers(variant: Variant, count: int) -> Variant:
    def command(port: int) -> list[str]:
        return ["env", f"ATTEND_PORT={port}", f"ATTEND_SERVERS={count}", sys.executable, "-m", "benchmarks.instant"]

    artifacts = {"ATTEND_ARTIFACTS": str(BenchmarkModel(SHIPPED).artifacts("int8"))}
    return replace(variant, label=f"{count} servers", command=command, environment={**variant.environment, **artifacts})


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])  # where the loader finds this module
    loader.SOURCE = "benchmarks.instant:InstantSource"
    main()
