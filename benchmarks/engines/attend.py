"""attend's own engine, without HTTP and tokenizer; the only file here that uses its internals."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import numpy as np
from anyio.from_thread import start_blocking_portal

from benchmarks.engines import Work
from manifest.schema import MAX_BEAM_SIZE, Manifest
from service.base.artifact import read_artifacts
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.front.assembly import load_catalog
from service.front.catalog import Catalog
from service.pool.pool import Pool
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs, TranslationRunner

TIMEOUT_S = 600.0


class AttendEngine:
    """The engines of the only translator in a directory of artifacts.

    Args:
        artifacts: directory of artifact directories.
        threads: threads of the model, shared by the worker processes.
        workers: number of worker processes; None for the default.
        share: whether workers share the sentences in flight, or have as many each.
        rows: rows of one worker; None for as many as the sentences in flight need.
        exact: whether beam search drops no hypothesis.
    """

    def __init__(
        self,
        artifacts: Path,
        threads: int | None = None,
        workers: int | None = None,
        share: bool = True,
        rows: int | None = None,
        exact: bool = False,
        provider: Literal["cpu", "cuda"] = "cpu",
    ) -> None:
        self._settings = Settings(
            artifacts=artifacts,
            provider=provider,
            threads=threads,
            workers=workers,
            max_waiting=10**6,
        )
        self._shares = (workers or 1) if share else 1
        self._fixed_rows = rows
        self._exact = exact
        self._rows = rows or MAX_BEAM_SIZE
        with ExitStack() as starting:
            self._portal = starting.enter_context(start_blocking_portal())
            self._models = self._started()
            self._running = starting.pop_all()

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """Translate all works as one request, with `batch` sentences in flight; a batch of one waits for each
        answer."""
        rows = self._fixed_rows or max(MAX_BEAM_SIZE, batch // self._shares * beam_size)
        if rows != self._rows:
            self._models.stop(timeout_s=5.0)
            self._rows = rows
            self._models = self._started()
        (translator,) = self._models.translators
        sequences = sequences_of(works, translator.manifest, beam_size, self._exact)
        requests = [[sequence] for sequence in sequences] if batch == 1 else [sequences]
        pool = translator.greedy if beam_size == 1 else translator.beam
        self._portal.call(_run, pool, requests)
        return targets_of(sequences, translator.manifest)

    def close(self) -> None:
        self._models.stop(timeout_s=5.0)
        self._running.close()

    def _started(self) -> Catalog:
        models = load_catalog(self._settings.model_copy(update={"rows": self._rows}), Metrics())
        self._portal.call(models.start)
        ends_at = time.monotonic() + TIMEOUT_S
        while (reason := models.unready_reason()) is not None:
            if time.monotonic() > ends_at:
                raise TimeoutError(f"the engine is not ready after {TIMEOUT_S:.0f} s: {reason}")
            time.sleep(0.02)
        return models


def sequences_of(works: list[Work], manifest: Manifest, beam_size: int, exact: bool = False) -> list[Sequence[Search]]:
    """Return the sequences of the engine for works."""
    decoding = manifest.decoding
    assert decoding is not None
    # Probabilities of random weights say nothing, so no hypothesis is dropped.
    beam_threshold = math.inf if exact or works[0].fixed_length else decoding.beam_threshold
    return [
        Sequence(
            work.source_ids,
            Search(work.max_target_tokens, beam_size, decoding.length_penalty, beam_threshold=beam_threshold),
            n_rows=beam_size,
        )
        for work in works
    ]


def targets_of(sequences: list[Sequence[Search]], manifest: Manifest) -> list[list[int]]:
    """Return the targets without the end of sequence."""
    targets = [sequence.output.best()[0].token_ids for sequence in sequences]
    return [target[:-1] if target[-1:] == [manifest.special_tokens.eos] else target for target in targets]


async def _run(pool: Pool[Search], requests: list[list[Sequence[Search]]]) -> None:
    for sequences in requests:
        await pool.run(sequences, pool.clock() + TIMEOUT_S)


class ComputationProbe:
    """Runs single forward passes at any shape, without engine and scheduler.

    Args:
        provider: by default the CPU with these threads.
    """

    def __init__(self, artifacts: Path, threads: int, rows: int = 64, provider: Provider | None = None) -> None:
        (artifact,) = read_artifacts(artifacts)
        self._rows = rows
        self.graphs = TranslationGraphs(artifact, provider or Provider("cpu", threads))
        self._on_device = self.graphs.provider.name != "cpu"
        self._bos, self._eos = artifact.manifest.special_tokens.bos, artifact.manifest.special_tokens.eos

    def stepping(self, rows: int, cache_length: int, source_length: int) -> Callable[[], object]:
        """Return a function that runs one decoder step of `rows` sentences with one hypothesis, at the last
        position."""
        places, sources = np.arange(rows), [[self._eos] * source_length] * rows
        tokens, positions = np.full(rows, self._bos), np.full(rows, cache_length - 1)
        if self._on_device:
            fixed = self._fixed(rows)
            fixed.encode(places, sources)

            def step() -> object:
                fixed.launch(tokens, positions[None], places[:, None], places, 1)
                return fixed.fetch()

            return step
        compact = TranslationRunner(self.graphs, self._rows)
        compact.enter(0, compact.encode(sources))
        return lambda: compact.step(tokens, positions, cache_length, k=1)

    def encoding(self, rows: int, source_length: int) -> Callable[[], object]:
        """Return a function that encodes `rows` sources."""
        sources = [[self._eos] * source_length] * rows
        if self._on_device:
            fixed = self._fixed(rows)
            return lambda: fixed.encode(np.arange(rows), sources)
        compact = TranslationRunner(self.graphs, self._rows)
        return lambda: compact.encode(sources)

    def _fixed(self, rows: int) -> DeviceTranslationRunner:
        return DeviceTranslationRunner(self.graphs, DeviceEncoder(self.graphs, rows, 8192), rows, rows)
