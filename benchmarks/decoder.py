"""Measures engines alone: token ids in, token ids out, the same weights in every engine.

For every batch size and beam, a small search finds each engine's best settings. Then the best of each run in turns, A B
C A B C, each in a fresh process, and medians are compared.
"""

import statistics
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from tokenizers import Tokenizer

from benchmarks.engines import ATTEND, ATTEND_EXACT, CTRANSLATE2, PYTORCH, TRANSFORMERS
from benchmarks.models import OPUS, RANDOM, SHIPPED, BenchmarkModel
from benchmarks.processes import Candidate, EngineError, EngineProcess, Run
from benchmarks.quality import bleu
from benchmarks.results import Record, command, save
from benchmarks.texts import load_sentences, works_of, works_of_random_ids
from service.base.cores import usable_cores

PARTS = {SHIPPED: "decoder", RANDOM: "decoder_random", OPUS: "imports"}
"""Part of each model: they may be measured on different machines."""
KEY = ["model", "beam_size", "batch", "engine"]
MAX_SLOWDOWN = 1.5
"""Candidates slower than the best by this factor in one pass are dropped."""
FINALISTS_REPETITIONS = 3
"""Passes, in turns, that choose among the remaining candidates."""
EAGER = (PYTORCH, TRANSFORMERS)
SLOW_REPETITIONS = 3
"""Passes of the eager engines."""


def candidates(cores: int) -> list[Candidate]:
    """Return the settings in which the best of each engine is searched."""
    each = f"{cores} of 1 thread"

    attend = [
        _attend("1 process of 1 thread", 1, 1),
        _attend(f"1 process of {_threads(cores)}", 1, cores),
        _attend(f"{cores} processes of 1 thread, sharing a batch", cores, cores),
        _attend(f"{cores} processes of 1 thread, a batch each", cores, cores, share=False),
    ]
    return [
        *attend,
        *(replace(candidate, engine=ATTEND_EXACT) for candidate in attend),
        _ctranslate2("1 of 1 thread", 1, 1),
        _ctranslate2(f"1 of {_threads(cores)}", 1, cores),
        _ctranslate2(f"{each}, sharing a batch", cores, 1),
        _ctranslate2(f"{each}, a batch each", cores, 1, share=False),
        _ctranslate2(f"{each}, sharing a batch counted in tokens", cores, 1, batch_type="tokens"),
        # It uses oneDNN on processors that are not Intel's, unless told to use MKL.
        _ctranslate2(f"{each}, sharing a batch, MKL", cores, 1, mkl=True),
        *(Candidate(engine, _threads(cores), {"threads": cores}) for engine in EAGER),
    ]


def _attend(label: str, workers: int, threads: int, share: bool = True) -> Candidate:
    return Candidate(ATTEND, label, {"threads": threads, "workers": workers, "share": share})


def _ctranslate2(label: str, inter_threads: int, intra_threads: int, mkl: bool = False, **settings: Any) -> Candidate:
    threads = {"compute_type": "int8", "inter_threads": inter_threads, "intra_threads": intra_threads}
    return Candidate(CTRANSLATE2, f"batches: {label}", {**threads, **settings}, {"CT2_USE_MKL": "1"} if mkl else {})


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


@dataclass(frozen=True)
class Effort:
    """Amount of work of a measurement.

    Args:
        sentences: sentences of one pass; a third of them if one sentence runs at a time.
        search: sentences of one pass in the search for settings.
        repetitions: passes of each engine, in turns; eager engines make only `SLOW_REPETITIONS`.
    """

    sentences: int
    search: int
    repetitions: int

    def count(self, batch: int) -> int:
        return self.sentences if batch > 1 else max(1, self.sentences // 3)


FULL = {
    SHIPPED: Effort(sentences=384, search=256, repetitions=15),
    RANDOM: Effort(sentences=128, search=64, repetitions=3),
    OPUS: Effort(sentences=128, search=64, repetitions=3),
}
QUICK = {
    SHIPPED: Effort(sentences=96, search=32, repetitions=3),
    RANDOM: Effort(sentences=64, search=16, repetitions=1),
    OPUS: Effort(sentences=64, search=16, repetitions=1),
}


def measure(
    model: BenchmarkModel,
    beam_sizes: list[int],
    batches: list[int],
    data: Path | None,
    quick: bool,
    console: Console,
    without: Collection[str] = (),
) -> None:
    """Measure every engine at every beam size and batch, and save the results.

    Args:
        without: engines to skip.
    """
    engines_of_model = [engine for engine in model.engines if engine not in without]
    effort = (QUICK if quick else FULL)[model.name]
    sentences = load_sentences(data, effort.sentences)
    tokenizer = Tokenizer.from_file(str(BenchmarkModel(SHIPPED).checkpoint() / "tokenizer.json"))
    if model.name == SHIPPED:
        works = works_of(sentences, tokenizer)
    else:
        works = works_of_random_ids(sentences, tokenizer, model.random_ids, model.eos)
    paths = {engine: model.path(engine, "int8") for engine in engines_of_model}

    @contextmanager
    def processes(wanted: list[Candidate]) -> Iterator[list[EngineProcess]]:
        with ExitStack() as stack:
            engines = [stack.enter_context(EngineProcess(c, paths[c.engine], works)) for c in wanted]
            for engine in engines:
                engine.wait_until_loaded()
            yield engines

    cells = [(beam_size, batch) for beam_size in beam_sizes for batch in batches]
    wanted = [c for c in candidates(usable_cores()) if c.engine in engines_of_model]
    with processes(wanted) as engines:
        best = {cell: _search(engines, *cell, effort, console) for cell in cells}
    for (beam_size, batch), chosen in best.items():
        with processes(chosen) as engines:
            runs = _in_turns(engines, beam_size, batch, effort)
        cell = {"model": model.name, "beam_size": beam_size, "batch": batch}
        records = [{**cell, **_record(e, r, effort.count(batch))} for e, r in zip(engines, runs, strict=True)]
        if model.name == SHIPPED:
            for record, engine_runs in zip(records, runs, strict=True):
                record["bleu"] = bleu(tokenizer.decode_batch(engine_runs[0].targets), sentences)
        save(PARTS[model.name], KEY, records, quick)
        for record in records:
            console.print(
                f"{model.name} beam {beam_size} batch {batch}: {record['engine']} ({record['settings']}) "
                f"{record['tokens_per_s']:.0f} tokens/s, {record['peak_mb']:.0f} MB"
            )


def _search(
    engines: list[EngineProcess], beam_size: int, batch: int, effort: Effort, console: Console
) -> list[Candidate]:
    """Return the fastest candidate of each engine that supports this search."""
    count = min(effort.search, effort.count(batch))
    by_engine: dict[str, list[tuple[float, EngineProcess]]] = {}
    for engine in engines:
        candidate = engine.candidate
        if batch == 1 and max(candidate.settings.get(name, 1) for name in ("inter_threads", "workers")) > 1:
            continue  # one sentence occupies only one of them
        if candidate.engine == ATTEND_EXACT and beam_size == 1:
            continue  # greedy search drops no hypotheses
        try:
            engine.run(beam_size, batch, 1)  # it may have to restart for this size
            seconds = engine.run(beam_size, batch, count).seconds
        except EngineError as error:
            console.print(f"{candidate.engine}, beam {beam_size}: {error}")
            continue
        by_engine.setdefault(candidate.engine, []).append((seconds, engine))
    return [_fastest(tried, beam_size, batch, count, console) for tried in by_engine.values()]


def _fastest(
    tried: list[tuple[float, EngineProcess]], beam_size: int, batch: int, count: int, console: Console
) -> Candidate:
    limit = MAX_SLOWDOWN * min(seconds for seconds, _ in tried)
    finalists = [engine for seconds, engine in tried if seconds <= limit]
    if len(finalists) == 1:
        return finalists[0].candidate
    turns = [[engine.run(beam_size, batch, count) for engine in finalists] for _ in range(FINALISTS_REPETITIONS)]
    medians = [statistics.median(run.seconds for run in runs) for runs in zip(*turns, strict=True)]
    for engine, seconds in zip(finalists, medians, strict=True):
        candidate = engine.candidate
        console.print(f"  beam {beam_size} batch {batch}: {candidate.engine}, {candidate.label}: {seconds:.2f} s")
    return finalists[medians.index(min(medians))].candidate


def _in_turns(engines: list[EngineProcess], beam_size: int, batch: int, effort: Effort) -> list[list[Run]]:
    count = effort.count(batch)
    runs: list[list[Run]] = [[] for _ in engines]
    for engine in engines:
        engine.run(beam_size, batch, count // 2)  # warm-up
    for turn in range(effort.repetitions):
        for engine, of_engine in zip(engines, runs, strict=True):
            if turn < SLOW_REPETITIONS or engine.candidate.engine not in EAGER:
                of_engine.append(engine.run(beam_size, batch, count))
    return runs


def _record(engine: EngineProcess, runs: list[Run], sentences: int) -> Record:
    seconds = statistics.median(run.seconds for run in runs)
    return {
        "engine": engine.candidate.engine,
        "settings": engine.candidate.label,
        "precision": "fp32" if engine.candidate.engine in EAGER else "int8",
        "tokens_per_s": runs[0].tokens / seconds,
        "ms_per_sentence": 1000 * seconds / sentences,
        "seconds": [run.seconds for run in runs],
        "tokens": runs[0].tokens,
        "sentences": sentences,
        "peak_mb": runs[-1].peak_mb,
        "command": command(),
    }
