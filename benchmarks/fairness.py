"""Latency of a small model beside a slow one that is always busy: `python -m benchmarks fairness`.

The slow model is a stand-in that keeps a core busy for the times of NLLB: 400 ms per encoder pass and 40 ms per decoder
step. The latency of a sentence with the small model is measured alone and beside it.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.models import SHIPPED, BenchmarkModel
from benchmarks.texts import load_sentences
from service.base.artifact import read_artifacts
from service.base.contract import ModelInfo
from service.base.log import Log
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.engine import Computation, ContinuousEngine
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from service.pool.pool import Pool
from service.pool.remote_loader import RemoteLoader
from service.pool.remote_worker import RemoteWorker
from service.text.tokenization import Tokenizer
from service.worker.artifact_source import ArtifactSource
from service.worker.on_demand import Engines

SLOW = "slow"
ENCODE_S, STEP_S = 0.4, 0.04
LENGTH = 30
N_BUSY = 8
"""Requests that the slow model always has."""
N_REQUESTS = 300
PAUSE_S = 0.02


@dataclass(frozen=True)
class WithSlowModel(ArtifactSource):
    """Source of the small model and the stand-in."""

    @property
    def models(self) -> list[str]:
        return [*super().models, SLOW]

    def model_info(self, model: str) -> ModelInfo:
        return ModelInfo("cpu", (f"{SLOW}/greedy",), 0) if model == SLOW else super().model_info(model)

    def load(self, model: str, alone: bool) -> Engines:
        if model != SLOW:
            return super().load(model, alone)
        engine = ContinuousEngine(Burning(), Scheduler[None](96, 1000, 512))
        return {f"{SLOW}/greedy": engine}


class Burning(Computation[None]):
    """A computation that only takes time."""

    def warm_up(self) -> None:
        _burn(STEP_S)

    def encode(self, sequences: list[Sequence[None]], /) -> None:
        _burn(ENCODE_S)
        for sequence in sequences:
            sequence.state = 0

    def enter(self, _first_place: int, _sequences: list[Sequence[None]], /) -> None:
        """Do nothing: no state is kept in places."""

    def step(self, running: list[Sequence[None]], /) -> int:
        _burn(STEP_S)
        for sequence in running:
            sequence.state += 1
            sequence.finished = sequence.state == LENGTH
        return len(running)

    def move(self, _source_place: int, _target_place: int, _sequence: Sequence[None], /) -> None:
        pass


def measure() -> dict[str, float]:
    """Return milliseconds per sentence, alone and beside the slow model: median and 99th percentile."""
    (artifact,) = read_artifacts(BenchmarkModel(SHIPPED).artifacts("int8"))
    settings = Settings(provider="cpu")
    arguments = {artifact.manifest.name: artifact}, settings
    loader = RemoteLoader("benchmarks.fairness:WithSlowModel", arguments, settings.probe_interval_s, Log("warning"))
    loader.wait_until_loaded()
    tokenizer = Tokenizer(artifact.path("tokenizer.json"))
    sources = tokenizer.encode([sentence.text for sentence in load_sentences(None, None)])
    try:
        return asyncio.run(_measure(artifact.manifest.name, loader, sources))
    finally:
        loader.end()


async def _measure(name: str, loader: RemoteLoader, sources: list[list[int]]) -> dict[str, float]:
    metrics = Metrics()
    workers = [RemoteWorker(path, metrics.add) for path in loader.paths]
    for worker in workers:
        worker.start()
    small: Pool[Search] = Pool(f"{name}/greedy", workers, metrics.of_task("translation"))
    slow: Pool[None] = Pool(f"{SLOW}/greedy", workers, metrics.of_task("slow"))
    while small.unready_reason() or slow.unready_reason():
        await asyncio.sleep(0.05)
    figures = {}
    await _times(small, sources)
    for company in ("alone", "beside"):
        busy = [asyncio.ensure_future(_keep_busy(slow)) for _ in range(N_BUSY)] if company == "beside" else []
        times = await _times(small, sources)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        figures[f"{company}_p50_ms"] = 1000 * statistics.median(times)
        figures[f"{company}_p99_ms"] = 1000 * statistics.quantiles(times, n=100)[98]
    return figures | {"p99_ratio": figures["beside_p99_ms"] / figures["alone_p99_ms"]}


async def _times(pool: Pool[Search], sources: list[list[int]]) -> list[float]:
    times = []
    for number in range(N_REQUESTS):
        sequence = Sequence(sources[number % len(sources)], Search(max_target_tokens=64))
        began = time.perf_counter()
        await pool.run([sequence], pool.clock() + 60)
        times.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_S)
    return times


async def _keep_busy(pool: Pool[Any]) -> None:
    while True:
        await pool.run([Sequence([1] * 40, None)], pool.clock() + 600)


def _burn(seconds: float) -> None:
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        pass
