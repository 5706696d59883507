"""Measures the engine without HTTP: target tokens per second beside CTranslate2, single steps, and their kernels."""

import collections
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import onnxruntime

from benchmarks.engines import TranslationEngine, Work
from benchmarks.engines.attend import AttendEngine, ComputationProbe
from benchmarks.gpu.inputs import BEAM_SIZES, ProviderName, artifacts, read_inputs, say
from benchmarks.models import BenchmarkModel
from benchmarks.workspace import workspace
from manifest.schema import MAX_BEAM_SIZE
from service.runner.provider import Provider

BATCHES = (1, 8, 64, 256)
WORKS_OF_SLOW_BATCHES = {1: 64, 8: 128}
"""Number of works for batches that would take long."""
SOURCE_LENGTH, CACHE_LENGTH = 24, 21
REPEATED, PROFILED = 50, 30
THREADS = 4


def tokens_per_second(
    engine_name: str, model: str, provider: ProviderName, repetitions: int, n_works: int | None
) -> None:
    """Print the speed of an engine at each beam size and number of sentences in flight.

    Args:
        engine_name: "attend" or "ctranslate2".
    """
    inputs = read_inputs()
    engine = _engine(engine_name, model, provider)
    # Cells with the same number of rows are neighbours, as the engine restarts for another number.
    cells = sorted(product(BEAM_SIZES, BATCHES), key=lambda cell: max(MAX_BEAM_SIZE, cell[0] * cell[1]), reverse=True)
    for beam_size, batch in cells:
        works = inputs.works[model][:n_works][: WORKS_OF_SLOW_BATCHES.get(batch)]
        answers, seconds = _timed(engine, works, beam_size, batch, repetitions)
        say(
            part="speed",
            engine=engine_name,
            model=model,
            beam_size=beam_size,
            batch=batch,
            tokens_per_s=round(sum(map(len, answers)) / seconds),
            as_float32_on_cpu=inputs.agreement(model, beam_size, answers),
        )
    engine.close()


def _engine(name: str, model: str, provider: ProviderName) -> TranslationEngine:
    if name == "ctranslate2":
        if provider == "cuda":
            _find_cublas_12()
        from benchmarks.engines.ctranslate2 import CTranslate2Engine  # other engines must not load its libraries

        compute_type = "float16" if provider == "cuda" else "float32"
        return CTranslate2Engine(BenchmarkModel(model).ctranslate2("fp32"), compute_type, 1, THREADS, device=provider)
    return AttendEngine(artifacts(model), THREADS, workers=1, provider=provider)


def _find_cublas_12() -> None:
    """Let CTranslate2, which needs cuBLAS 12, find that of CUDA 13. The process restarts, as libraries are searched
    where the environment said at the start."""
    folder = str(workspace("gpu", "lib"))
    known = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    nvidia = importlib.util.find_spec("nvidia")
    if folder in known or nvidia is None or nvidia.submodule_search_locations is None:
        return
    for place in nvidia.submodule_search_locations:
        for library in Path(place).glob("*/lib/libcublas*.so.13"):
            link = Path(folder) / library.name.replace(".13", ".12")
            link.unlink(missing_ok=True)
            link.symlink_to(library)
    os.environ["LD_LIBRARY_PATH"] = ":".join([folder, *filter(None, known)])
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gpu", *sys.argv[1:]])


def _timed(
    engine: TranslationEngine, works: list[Work], beam_size: int, batch: int, repetitions: int
) -> tuple[list[list[int]], float]:
    """Return the answers and their median seconds, after two passes to warm up."""
    seconds = []
    for _ in range(2 + repetitions):
        start = time.perf_counter()
        answers = engine.translate(works, beam_size, batch)
        seconds.append(time.perf_counter() - start)
    return answers, statistics.median(seconds[2:])


def steps(model: str, provider: ProviderName) -> None:
    """Print the time of a decoder step and an encoder pass, with and without CUDA graphs."""
    for captures in (False, True) if provider == "cuda" else (False,):
        probe = ComputationProbe(artifacts(model), THREADS, max(BATCHES), Provider(provider, THREADS, captures))
        for rows in BATCHES:
            encode = probe.encoding(rows, SOURCE_LENGTH)
            first = _milliseconds(encode, 1)
            say(
                part="steps",
                model=model,
                captures=captures,
                rows=rows,
                encode_first_ms=first,
                encode_ms=_milliseconds(encode, REPEATED),
                step_ms=_milliseconds(probe.stepping(rows, CACHE_LENGTH, SOURCE_LENGTH), REPEATED),
            )


def _milliseconds(run: Callable[[], object], repetitions: int) -> float:
    """Return the median milliseconds of a run, after a warm-up if there are several."""
    seconds = []
    for _ in range(repetitions if repetitions == 1 else repetitions + 5):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return round(1000 * statistics.median(seconds[-repetitions:]), 3)


@dataclass(frozen=True)
class _Profiled(Provider):
    """A provider whose sessions profile their kernels."""

    def _options(self) -> onnxruntime.SessionOptions:
        options = super()._options()
        options.enable_profiling = True
        options.profile_file_prefix = str(workspace("gpu", "profiles") / "run")
        return options


def profile(model: str, provider: ProviderName, rows: int) -> None:
    """Print which operators run where, how often per pass, and for how long."""
    probe = ComputationProbe(artifacts(model), THREADS, rows, _Profiled(provider, THREADS))
    step = probe.stepping(rows, CACHE_LENGTH, SOURCE_LENGTH)
    for _ in range(PROFILED):
        step()
    for graph, passes in (("encoder", 1), ("decoder_step", PROFILED)):
        path = Path(getattr(probe.graphs, graph).end_profiling())
        events: list[dict[str, Any]] = json.loads(path.read_text())
        took: collections.Counter[tuple[str, str]] = collections.Counter()
        ran: collections.Counter[tuple[str, str]] = collections.Counter()
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                kind = event["args"]["op_name"], event["args"]["provider"]
                took[kind] += event["dur"]
                ran[kind] += 1
        for (operator, where), microseconds in took.most_common():
            say(
                part="profile",
                model=model,
                graph=graph,
                rows=rows,
                operator=operator,
                provider=where,
                runs=ran[operator, where] / passes,
                microseconds=round(microseconds / passes),
            )
