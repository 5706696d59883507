"""`python -m benchmarks`: run all parts, or one. Results are kept; the report has the latest of each part."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import httpx
import typer
from rich.console import Console

from benchmarks import (
    attention_cost,
    decoder,
    detection,
    documents,
    fairness,
    footprint,
    growth,
    instant,
    live,
    memories,
    overload,
    quality,
    report,
    served_quality,
    servers,
    shared_database,
)
from benchmarks.imports import classifier, large
from benchmarks.imports.models import ImportedModel
from benchmarks.lecture import quality as lecture_quality
from benchmarks.lecture import report as lecture_report
from benchmarks.lecture import speed as lecture_speed
from benchmarks.lecture.systems import SYSTEMS
from benchmarks.models import RANDOM, SHIPPED, BenchmarkModel, Precision
from benchmarks.over_http import HttpBenchmark

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, invoke_without_command=True, help=__doc__)
console = Console(width=None if sys.stdout.isatty() else 160)

MODELS = [SHIPPED, RANDOM]
BEAM_SIZES, BATCHES = [1, 4], [1, 8, 32, 64]
IMPORT_PARTS, IMPORT_BATCHES = ["translator", "classifier"], [1, 8, 32]
PRECISIONS = ["fp32", "int8"]
HTTP_PARTS = ["saturation", "latency", "survival", "agreement"]
LECTURE_PARTS = ["quality", "speed", "report"]
SERVER_COUNTS = [1, 2]
LIVE_TESTS = ["tatoeba-challenge-2021", "ntrex128"]
OVERLOAD_TEXTS, TIMEOUTS, LOADS = [1, overload.MANY], [1.0, 10.0, 30.0], [0.5, 0.8, 1.0, 1.5, 2.0, 4.0]
HTTP_BEAM_SIZES, PEERS, SHARES = [4], ["libretranslate", "fastapi"], [0.5, 0.8]

Data = Annotated[
    Path | None,
    typer.Option(
        envvar="ATTEND_TEST_DATA", help="Directory of the corpora; by default our own sentences, without BLEU."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Measure for a minute; kept apart from the full results.")]
BeamSizes = Annotated[list[int], typer.Option("--beam-size", help="May be repeated, like the options below.")]


@app.callback()
def everything(context: typer.Context, data: Data = None, quick: Quick = False) -> None:
    """Run all parts and write the report."""
    if context.invoked_subcommand is not None:
        return
    if quick:
        decoder_command(data, quick, model=[SHIPPED], beam_size=[1, 4], batch=[1, 32])
    else:
        prepare_command()
        decoder_command(data)
        imports_command(data)
        quality_command(data)
        http_command(data)
        attention_command(data)
    growth_command(data, quick)
    report_command(quick)


@app.command("prepare")
def prepare_command(models: Annotated[list[str], typer.Option("--model")] = MODELS) -> None:
    """Write every model in every format, and install LibreTranslate."""
    precisions: tuple[Precision, ...] = ("int8", "fp32")
    for model in map(BenchmarkModel, models):
        for precision in precisions if model.name == SHIPPED else ("int8",):
            for engine in ("pytorch", "ctranslate2", "attend"):
                console.print(engine, precision, model.path(engine, precision))
    servers.variants("libretranslate", beam_size=4)


@app.command("decoder")
def decoder_command(
    data: Data = None,
    quick: Quick = False,
    model: Annotated[list[str], typer.Option(help=f"{SHIPPED} or {RANDOM}.")] = MODELS,
    beam_size: BeamSizes = BEAM_SIZES,
    batch: Annotated[list[int], typer.Option(help="Sentences in flight.")] = BATCHES,
) -> None:
    """Measure engines alone: target tokens per second and memory at each batch and beam size."""
    for name in model:
        decoder.measure(BenchmarkModel(name), beam_size, batch, data, quick, console)


@app.command("imports")
def imports_command(
    data: Data = None,
    quick: Quick = False,
    part: Annotated[list[str], typer.Option(help=", ".join(IMPORT_PARTS))] = IMPORT_PARTS,
    beam_size: BeamSizes = BEAM_SIZES,
    batch: Annotated[list[int], typer.Option(help="Sentences in flight.")] = IMPORT_BATCHES,
    without: Annotated[
        list[str] | None, typer.Option(help="An engine to skip, for example transformers, which is slow.")
    ] = None,
) -> None:
    """Measure imported models: a translator of the size of OPUS-MT's, and a classifier of DistilBERT's."""
    if "translator" in part:
        decoder.measure(ImportedModel(), beam_size, batch, data, quick, console, without or ())
    if "classifier" in part:
        classifier.measure(data, quick, console)


@app.command("large")
def large_command() -> None:
    """Measure a translator of NLLB-200's size: time and memory of import, export and service, beside CTranslate2."""
    for name, value in large.measure().items():
        console.print(f"{name}: {value:.1f}")


@app.command("quality")
def quality_command(
    data: Data = None,
    quick: Quick = False,
    precision: Annotated[list[str], typer.Option(help="fp32 or int8.")] = PRECISIONS,
    beam_size: BeamSizes = BEAM_SIZES,
) -> None:
    """Measure the BLEU of every engine, and its agreement with the reference decoder."""
    precisions: list[Precision] = ["fp32" if name == "fp32" else "int8" for name in precision]
    quality.measure(precisions, beam_size, data, quick, console)


@app.command("served")
def served_command(
    data: Annotated[
        Path | None,
        typer.Option(envvar="ATTEND_TEST_DATA", help="Directory of the corpora; by default they are downloaded."),
    ] = None,
    url: Annotated[str, typer.Option(help="Address of a running service.")] = "http://127.0.0.1:8000",
    test: Annotated[list[str] | None, typer.Option(help="Part of a test set's name, or cases; by default all.")] = None,
    limit: Annotated[int | None, typer.Option(help="Rows to read of each test set; by default all.")] = None,
) -> None:
    """Score every model of a running service on test sets and failure cases, with default options."""
    with httpx.Client(base_url=url) as client:
        served_quality.measure(client, data, test or [], limit, console)


@app.command("http")
def http_command(
    data: Data = None,
    quick: Quick = False,
    part: Annotated[list[str], typer.Option(help=", ".join(HTTP_PARTS))] = HTTP_PARTS,
    beam_size: BeamSizes = HTTP_BEAM_SIZES,
    peer: Annotated[list[str], typer.Option(help="Peers of the latency part.")] = PEERS,
    share: Annotated[
        list[float], typer.Option(help="Loads of the latency part, as shares of the peer's saturation.")
    ] = SHARES,
    seconds: Annotated[float | None, typer.Option(help="Seconds of one run of the load generator.")] = None,
    repetitions: Annotated[int | None, typer.Option(help="Number of runs of each server, in turns.")] = None,
) -> None:
    """Measure attend, FastAPI with CTranslate2, and LibreTranslate over HTTP with wrk."""
    for size in beam_size:
        default_s, default_repetitions = (3.0, 1) if quick else (10.0, 3)
        efforts = (seconds or default_s, repetitions or default_repetitions)
        benchmark = HttpBenchmark(size, *efforts, data, quick, console)
        if "saturation" in part:
            benchmark.saturation()
        if "latency" in part:
            for name in peer:
                for share_of_tokens in share:
                    benchmark.latency(name, share_of_tokens)
        if "survival" in part:
            benchmark.survival()
        if "agreement" in part:
            benchmark.agreement()


@app.command("attention")
def attention_command(data: Data = None, quick: Quick = False) -> None:
    """Measure what attention costs its users, and other users of the server."""
    attention_cost.measure(data, quick, console)


@app.command("growth")
def growth_command(data: Data = None, quick: Quick = False) -> None:
    """Measure how the cost of steps, the encoder and memory grows."""
    growth.measure(data, quick, console)


@app.command("lecture")
def lecture_command(
    data: Data = None,
    quick: Quick = False,
    part: Annotated[list[str], typer.Option(help=", ".join(LECTURE_PARTS))] = LECTURE_PARTS,
    system: Annotated[list[str] | None, typer.Option(help="Name of a system in the table; by default all.")] = None,
) -> None:
    """Measure quality and cost of every system of the lecture; write docs/lecture.md. DATA has the corpora."""
    unknown = set(system or ()) - {candidate.name for candidate in SYSTEMS}
    if unknown:
        raise typer.BadParameter(f"unknown `--system` {', '.join(sorted(unknown))}")
    chosen = [candidate for candidate in SYSTEMS if system is None or candidate.name in system]
    if "quality" in part:
        lecture_quality.measure(chosen, data, quick, console)
    if "speed" in part:
        lecture_speed.measure(chosen, quick, console)
    if "report" in part:
        console.print(f"written: {lecture_report.write(quick, console)}")


@app.command("detection")
def detection_command(data: Data = None) -> None:
    """Measure libraries that identify languages: accuracy, memory and time."""
    if data is None:
        raise typer.BadParameter("`--data` is required")
    for row in detection.measure(data):
        rounded = (f"{value:.1f}" if isinstance(value, float) else str(value) for value in row.values())
        console.print(" ".join(rounded), highlight=False)


@app.command("footprint")
def footprint_command(
    artifacts: Annotated[Path, typer.Option(help="Directory of artifact directories.")] = Path("artifacts"),
) -> None:
    """Measure the start, processes and memory of a service with many models."""
    for name, value in footprint.measure(artifacts).items():
        console.print(f"{name}: {value:.1f}")


@app.command("fairness")
def fairness_command() -> None:
    """Measure the latency of a small model alone, and beside a slow one that is always busy."""
    for name, value in fairness.measure().items():
        console.print(f"{name}: {value:.2f}")


@app.command("documents")
def documents_command(
    data: Data = None,
    beam_size: Annotated[int, typer.Option(help="Width of the search for the single sentences.")] = 1,
    seconds: Annotated[float, typer.Option(help="Seconds of one measurement.")] = 10.0,
) -> None:
    """Measure the latency of single sentences alone, and while documents are translated."""
    for n_documents, load in documents.measure(beam_size, seconds, data):
        console.print(
            f"beside {n_documents} documents: p50 {load.p50_ms:.1f} ms, p95 {load.p95_ms:.1f} ms, {load.rate:.0f}/s"
        )


@app.command("overload")
def overload_command(
    data: Data = None,
    texts: Annotated[list[int], typer.Option(help="Texts per request: 1 or 256; may be repeated.")] = OVERLOAD_TEXTS,
    timeout: Annotated[list[float], typer.Option(help="Seconds of the deadline; 30 is the default one.")] = TIMEOUTS,
    load: Annotated[list[float], typer.Option(help="Multiples of the best rate.")] = LOADS,
    seconds: Annotated[float, typer.Option(help="Seconds of each load.")] = 10.0,
    mixed: Annotated[bool, typer.Option(help="Whether to measure single texts beside large requests.")] = True,
) -> None:
    """Measure what a service does with more requests than it can bear, and with single ones beside large ones."""
    with overload.service() as server:
        benchmark = overload.OverloadBenchmark(server, seconds, data)
        best_of_singles = 0.0
        for n in texts:
            best = benchmark.best(n, timeout)
            best_of_singles = max(best.values()) if n == 1 else best_of_singles
            console.print(f"best with {n} texts:", ", ".join(f"{rate:.1f}/s in {s:g} s" for s, rate in best.items()))
            for timeout_s in timeout:
                for part in load if best[timeout_s] else ():
                    console.print(str(benchmark.offer(n, timeout_s, part, best[timeout_s])), highlight=False)
        if mixed:
            best_of_singles = best_of_singles or max(benchmark.best(1, timeout).values())
            for beside in benchmark.beside(overload.SINGLES_SHARE * best_of_singles, "127.0.0.2"):
                console.print(str(beside), highlight=False)


@app.command("servers")
def servers_command(
    counts: Annotated[list[int], typer.Option("--servers", help="Number of servers; may be repeated.")] = SERVER_COUNTS,
    repetitions: Annotated[int, typer.Option(help="Number of runs of each, in turns.")] = 3,
) -> None:
    """Measure requests per second of one and several servers, before workers that answer immediately."""
    for count, rates in instant.measure(counts, repetitions).items():
        console.print(f"{count} servers: {', '.join(f'{rate:.0f}' for rate in rates)} requests a second")


@app.command("shared")
def shared_command(
    address: Annotated[str, typer.Argument(help="Database of PostgreSQL, whose tables of attend are deleted.")],
    restart: Annotated[str | None, typer.Option(help="Command that restarts the database.")] = None,
    n_starts: Annotated[int, typer.Option("--starts", help="Number of starts.")] = 20,
) -> None:
    """Measure servers that share a database: claims, starts on an empty one, and documents while servers fail."""
    with TemporaryDirectory() as directory:
        for name, place in (("SQLite", Path(directory)), ("PostgreSQL", address)):
            console.print(f"{name}: {shared_database.claims_per_second(place):.0f} claims a second")
    for seconds in shared_database.starts(address, 3, n_starts):
        console.print(f"three services were ready after {seconds:.1f} s")
    for end, count in shared_database.ends_of_documents(address, restart).items():
        console.print(f"documents: {count} {end}")


@app.command("memories")
def memories_command(
    address: Annotated[str | None, typer.Argument(help="Database of PostgreSQL; by default SQLite.")] = None,
    data: Data = None,
    n_segments: Annotated[int, typer.Option("--segments", help="Number of segments.")] = 1_000_000,
) -> None:
    """Measure translation memories: the import of a file, exact matches and similar ones."""
    with TemporaryDirectory() as directory:
        for line in memories.measure(address or Path(directory), n_segments, data):
            console.print(line, highlight=False)


@app.command("live")
def live_command(
    data: Data = None,
    url: Annotated[str, typer.Option(help="Address of a running service.")] = "http://127.0.0.1:8000",
    test: Annotated[list[str], typer.Option(help="Name of a test set from English to French.")] = LIVE_TESTS,
    first: Annotated[int, typer.Option(help="Number of the first row to read.")] = 0,
    limit: Annotated[int, typer.Option(help="Rows to read of each test set.")] = 300,
    sessions: Annotated[int, typer.Option(help="Sessions at the same time.")] = 200,
    updates: Annotated[float, typer.Option(help="Updates a second of each session.")] = 3.0,
) -> None:
    """Measure translation while it is spoken: latency, words taken back, and the quality of the final text."""
    if data is None:
        raise typer.BadParameter("`--data` is required")
    for name in test:
        for line in live.measure(url, data, name, (first, first + limit), sessions, updates):
            console.print(line, highlight=False)


@app.command("report")
def report_command(quick: Quick = False) -> None:
    """Print every table, and write docs/benchmarks.md from the results of all parts."""
    console.print(f"written: {report.write(quick, console)}")


if __name__ == "__main__":
    app()
