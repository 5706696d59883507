"""Counts what an engine asks of a device for one sentence: session runs, copies, shapes. It works on a CPU too."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from numpy.typing import NDArray
from onnxruntime import InferenceSession, IOBinding

from benchmarks.engines import Work
from benchmarks.engines.attend import sequences_of, targets_of
from benchmarks.gpu.inputs import BEAM_SIZES, ProviderName, artifacts, read_inputs, say
from benchmarks.gpu.speed import THREADS
from manifest.schema import MAX_BEAM_SIZE, Manifest
from service.base.artifact import read_artifacts
from service.base.settings import Settings
from service.engine.engine import Engine
from service.engine.search import Search
from service.runner.caches import HostCaches
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs
from service.worker.artifact_source import compact_engines, fixed_engines

BATCHES = (8, 64, 256)
ENGINES = {"compact": compact_engines, "fixed": fixed_engines}


class _Binding(IOBinding):  # type: ignore[misc]
    """A binding that remembers the bound shapes."""

    def __init__(self, session: InferenceSession) -> None:
        super().__init__(session)
        self.shapes: dict[str, tuple[int, ...]] = {}

    def bind_input(self, name: str, *place: Any) -> None:
        super().bind_input(name, *place)
        self.shapes[name] = tuple(place[3])

    def bind_cpu_input(self, name: str, array: NDArray[Any]) -> None:
        super().bind_cpu_input(name, array)
        self.shapes[name] = array.shape


@dataclass(frozen=True, eq=False)
class CountingProvider(Provider):
    """A provider that counts the runs of each graph and their shapes."""

    runs: Counter[str] = field(default_factory=Counter)
    shapes: set[tuple[Any, ...]] = field(default_factory=set)

    def forget(self) -> None:
        """Reset the counts."""
        self.runs.clear()
        self.shapes.clear()

    def session(
        self,
        graph: bytes,
        tensors: Mapping[str, NDArray[Any]] | None = None,
        shared: Iterable[str] = (),
        captured: bool = False,
        name: str = "copy",
    ) -> InferenceSession:
        session = super().session(graph, tensors, shared, captured, name)
        name = Path(name).stem
        run = session.run_with_iobinding

        def counting(binding: _Binding, *options: object) -> None:
            self.runs[name] += 1
            self.shapes.add((name, *sorted(binding.shapes.items())))
            run(binding, *options)

        session.io_binding = lambda: _Binding(session)
        session.run_with_iobinding = counting
        return session


def measure(model: str, provider: ProviderName, n_works: int | None) -> None:
    """Print the counts of each engine at each beam size and number of sentences in flight. On a device there is no
    compact engine: it would need a run for each of its copies."""
    inputs = read_inputs()
    works = inputs.works[model][:n_works]
    (artifact,) = read_artifacts(artifacts(model))
    counting = CountingProvider(provider, THREADS, captures=provider == "cuda")
    graphs = TranslationGraphs(artifact, counting)
    for name in ENGINES if provider == "cpu" else ("fixed",):
        for beam_size in BEAM_SIZES:
            for batch in BATCHES:
                settings = Settings(rows=max(MAX_BEAM_SIZE, batch * beam_size), max_waiting=10**6)
                engine = ENGINES[name](graphs, settings)["greedy" if beam_size == 1 else "beam"]
                with counted_copies(counting.runs):
                    counting.forget()
                    engine.probe()
                    beforehand = len(counting.shapes)
                    counting.runs.clear()
                    answers, seconds = translated(engine, works, beam_size, artifact.manifest)
                say(
                    part="counts",
                    engine=name,
                    model=model,
                    beam_size=beam_size,
                    batch=batch,
                    sentences=len(works),
                    **counting.runs,
                    per_sentence=round(counting.runs.total() / len(works), 2),
                    shapes=len(counting.shapes),
                    shapes_beforehand=beforehand,
                    tokens_per_s=round(sum(map(len, answers)) / seconds),
                    as_float32_on_cpu=inputs.agreement(model, beam_size, answers),
                )


def translated(
    engine: Engine[Search], works: list[Work], beam_size: int, manifest: Manifest
) -> tuple[list[list[int]], float]:
    """Return the answers and their seconds."""
    sequences = sequences_of(works, manifest, beam_size)
    start = time.perf_counter()
    engine.scheduler.add(sequences)
    while engine.scheduler.waiting or engine.n_running:
        engine.step(lambda _: None)
    return targets_of(sequences, manifest), time.perf_counter() - start


@contextmanager
def counted_copies(runs: Counter[str]) -> Iterator[None]:
    """Count copies in main memory as well."""
    with ExitStack() as patches:
        for name in ("write", "copy"):
            copy = getattr(HostCaches, name)

            def counting(self: HostCaches, *arguments: Any, copy: Callable[..., None] = copy) -> None:
                runs["copy"] += 1
                copy(self, *arguments)

            patches.enter_context(patch.object(HostCaches, name, counting))
        yield
