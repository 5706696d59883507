"""Runs engines in their own processes (`benchmarks.worker`), in turns."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.engines import Work
from benchmarks.workspace import ROOT

SETTLING_S = 0.05
"""Pause between two runs, in which the threads of the one before stop spinning."""


class EngineError(RuntimeError):
    """The process of an engine ended, or does not support a request."""


@dataclass(frozen=True)
class Candidate:
    """An engine with candidate settings."""

    engine: str
    label: str
    settings: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One pass over the works.

    Args:
        tokens: target tokens written, ends of sequence included.
        peak_mb: peak memory of the process and its children until now.
    """

    seconds: float
    tokens: int
    peak_mb: float
    targets: list[list[int]]


class EngineProcess:
    """A candidate whose model loads in the background until the first run; leaving the context ends it."""

    def __init__(self, candidate: Candidate, model: Path, works: list[Work]) -> None:
        self.candidate = candidate
        self._works = len(works)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **candidate.environment},
        )
        description: dict[str, Any] = {"engine": candidate.engine, "model": str(model)}
        self._tell({**description, "settings": dict(candidate.settings), "works": [[*astuple(work)] for work in works]})
        self._loading = True

    def wait_until_loaded(self) -> None:
        """Wait until loading can disturb no run, of this engine or another."""
        if self._loading:
            self._hear()
            self._loading = False

    def run(self, beam_size: int, batch: int, count: int | None = None) -> Run:
        """Translate the first `count` works, by default all. Raises EngineError: the engine does not support it, or its
        process ended."""
        self.wait_until_loaded()
        time.sleep(SETTLING_S)
        self._tell({"beam_size": beam_size, "batch": batch, "count": count or self._works})
        return Run(**self._hear())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer

    def _ended(self) -> EngineError:
        return EngineError(f"{self.candidate.engine} ({self.candidate.label}) exited with code {self._process.wait()}")
