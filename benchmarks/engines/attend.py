"""attend's own engine, without HTTP and without a tokenizer: the only file here that knows its inside."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from benchmarks.engines import Work
from service.decoding import Hypothesis
from service.engine import Answer
from service.loading import load_models
from service.metrics import Metrics
from service.scheduler import Sequence
from service.settings import Settings

PATIENCE_S = 600.0


class AttendEngine:
    """The engine of the one translator in a directory of artifacts, fed in a closed loop.

    Args:
        artifacts: directory of artifact directories.
        threads: of one forward pass.
    """

    def __init__(self, artifacts: Path, threads: int, slots: int = 64) -> None:
        settings = Settings(artifacts=artifacts, provider="cpu", threads=threads, slots=slots)
        self._models = load_models(settings, Metrics())
        self._models.start()
        for model in self._models:
            if not model.engine.warm.wait(PATIENCE_S):
                raise TimeoutError(f"{model.manifest.name} is not ready after {PATIENCE_S:.0f} s")
        (translator,) = self._models.translators
        self._engine = translator.engine
        self._eos = translator.manifest.special_tokens.eos

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """`batch` sentences are in flight until none are left: a finished one is followed by the next at once."""
        if beam_size != 1:
            raise NotImplementedError(f"this version searches greedily, not with beam_size {beam_size}")
        sequences = [Sequence(work.source_ids, Hypothesis(work.max_target_tokens)) for work in works]
        _ClosedLoop(self._engine.submit, sequences).run(batch)
        return [_without(sequence.output.token_ids, self._eos) for sequence in sequences]

    def close(self) -> None:
        self._models.stop(timeout_s=5.0)


class _ClosedLoop:
    """Submits each sequence as a request of its own. The worker's own callback submits the next, so that no other
    thread has to wake up first."""

    def __init__(self, submit, sequences) -> None:
        self._submit = submit
        self._left: Iterator[Sequence[Hypothesis]] = iter(sequences)
        self._unfinished = len(sequences)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._error: BaseException | None = None

    def run(self, in_flight: int) -> None:
        for _ in range(min(in_flight, self._unfinished)):
            self._next()
        if not self._done.wait(PATIENCE_S):
            raise TimeoutError(f"the engine did not finish in {PATIENCE_S:.0f} s")
        if self._error is not None:
            raise self._error

    def _next(self) -> None:
        with self._lock:
            sequence = next(self._left, None)
        if sequence is not None:
            self._submit([sequence], time.monotonic() + PATIENCE_S).add_done_callback(self._finished)

    def _finished(self, future: Future[Answer[Hypothesis]]) -> None:
        self._error = self._error or future.exception()
        with self._lock:
            self._unfinished -= 1
            if self._unfinished == 0:
                self._done.set()
        self._next()


def _without(token_ids: list[int], eos: int) -> list[int]:
    return token_ids[:-1] if token_ids and token_ids[-1] == eos else token_ids
