"""attend's own engine, without HTTP and without a tokenizer: the only file here that knows its inside."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from benchmarks.engines import Work
from service.artifact import read_artifacts
from service.decoding import Search
from service.engine import Answer
from service.loading import load_models
from service.metrics import Metrics
from service.pool import Pool
from service.runner.provider import choose_provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from service.scheduler import Sequence
from service.settings import Settings

PATIENCE_S = 600.0


class AttendEngine:
    """The engines of the one translator in a directory of artifacts, fed in a closed loop.

    Args:
        artifacts: directory of artifact directories.
        threads: of the model, shared by its workers.
        workers: processes; 0 for none but this one, None for what the service chooses.
        slots: rows of one worker; None for what the service chooses.
    """

    def __init__(
        self, artifacts: Path, threads: int | None = None, workers: int | None = None, slots: int | None = None
    ) -> None:
        settings = Settings(artifacts=artifacts, provider="cpu", threads=threads, workers=workers, slots=slots)
        self._models = load_models(settings, Metrics())
        self._models.start()
        (translator,) = self._models.translators
        self._pool = translator.pool
        self._eos = translator.manifest.special_tokens.eos
        if not self._pool.wait_until_warm(PATIENCE_S):
            raise TimeoutError(f"{translator.manifest.name} is not ready after {PATIENCE_S:.0f} s")

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """`batch` sentences are in flight until none are left: a finished one is followed by the next at once."""
        sequences = [
            Sequence(work.source_ids, Search(work.max_target_tokens, beam_size), slots=beam_size) for work in works
        ]
        _ClosedLoop(self._pool, sequences).run(batch)
        return [_without(sequence.output.best()[0].token_ids, self._eos) for sequence in sequences]

    def close(self) -> None:
        self._models.stop(timeout_s=5.0)


class _ClosedLoop:
    """Submits each sequence as a request of its own. The thread that brings an answer submits the next one itself, so
    that no other has to wake up first."""

    def __init__(self, pool: Pool[Search], sequences: list[Sequence[Search]]) -> None:
        self._pool = pool
        self._left: Iterator[Sequence[Search]] = iter(sequences)
        self._unfinished = len(sequences)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._error: BaseException | None = None

    def run(self, in_flight: int) -> None:
        for _ in range(in_flight):
            self._next()
        if not self._done.wait(PATIENCE_S):
            raise TimeoutError(f"the engine did not finish in {PATIENCE_S:.0f} s")
        if self._error is not None:
            raise self._error

    def _next(self) -> None:
        with self._lock:
            sequence = next(self._left, None)
        if sequence is not None:
            engine = min(self._pool.engines, key=lambda engine: engine.load)
            engine.submit([sequence], self._pool.clock() + PATIENCE_S).add_done_callback(self._finished)

    def _finished(self, future: Future[Answer[Search]]) -> None:
        self._error = self._error or future.exception()
        self._next()
        with self._lock:
            self._unfinished -= 1
            if self._unfinished == 0:
                self._done.set()


class ComputationProbe:
    """The forward passes alone, one at a time and at any shape, without engine and scheduler."""

    def __init__(self, artifacts: Path, threads: int, slots: int = 64) -> None:
        (artifact,) = read_artifacts(artifacts)
        self._slots = slots
        self._graphs = TranslationGraphs(artifact, choose_provider("cpu", threads))
        self._bos, self._eos = artifact.manifest.special_tokens.bos, artifact.manifest.special_tokens.eos

    def stepping(self, rows: int, cache_length: int, source_length: int) -> Callable[[], object]:
        """What runs one decoder step: `rows` sentences, one hypothesis each, all writing their last cached token."""
        runner = TranslationRunner(self._graphs, self._slots)
        runner.encode(0, [[self._eos] * source_length] * rows)
        token_ids, places = np.full(rows, self._bos), np.arange(rows)
        positions = np.full(rows, cache_length - 1)
        return lambda: runner.step(token_ids, positions, places[:, None], places, 1)

    def encoding(self, rows: int, source_length: int) -> Callable[[], object]:
        """What reads `rows` sources into empty places."""
        runner = TranslationRunner(self._graphs, self._slots)
        return lambda: runner.encode(0, [[self._eos] * source_length] * rows)


def _without(token_ids: list[int], eos: int) -> list[int]:
    return token_ids[:-1] if token_ids and token_ids[-1] == eos else token_ids
