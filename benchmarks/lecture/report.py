"""Writes docs/lecture.md: tables and plots of the lecture's systems."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.lecture.speed import BATCH_TOKENS, LENGTHS, tokens_per_s
from benchmarks.page import fill, image, machine_table, markdown, measured, printed
from benchmarks.plots import Lines, line_plot, save
from benchmarks.results import Record, load, machine
from benchmarks.tables import Rows
from benchmarks.workspace import ROOT, workspace

TEMPLATE = Path(__file__).parent / "report.md"
"""Template of the page, with a place {{part}} for each table and plot."""
SCORES = {
    "translation": {"bleu": "BLEU", "chrf": "chrF"},
    "language-model": {"perplexity": "perplexity", "bits_per_byte": "bits per byte"},
    "classification": {"accuracy": "accuracy, %"},
}
DECIMALS = {"bits_per_byte": 3}
PLOTS = ("loss-by-time", "training-by-length", "decoding-by-length")
COMPARED = (
    "lecture's Transformer",
    "GRU without attention",
    "GRU, attention before the cell",
    "GRU, attention after the cell",
    "LSTM, attention after the cell",
)


def write(quick: bool, console: Console) -> Path:
    """Print the tables and write the page, in the workspace if quick; return its path."""
    path = workspace("quick") / "lecture.md" if quick else ROOT / "docs" / "lecture.md"
    quality, speed = load("lecture-quality", quick), load("lecture-speed", quick)
    budgets = {r["family"]: f"{r['steps']:,} steps, {r['tokens'] / 1e6:.1f} million padded tokens" for r in quality}
    places = {
        "budget": budgets.get("translation", ""),
        "batch": f"{BATCH_TOKENS:,}",
        "machine": machine_table(machine("lecture-quality", quick)),
    }
    for family, scores in SCORES.items():
        tables = []
        for records in _by_commit([record for record in quality if record["family"] == family]):
            systems = {record["system"] for record in records}
            rows = _rows(records, {r["system"]: r for r in speed if r["system"] in systems}, scores)
            console.print(printed(family, rows))
            tables.append(measured(markdown(rows), records))
        places[family] = "\n\n".join(tables) or measured("", [])
    places |= dict.fromkeys(PLOTS, measured("", []))
    places |= {plot.stem: image(plot) for plot in _draw(quality, speed, path.parent / "lecture")}
    fill(TEMPLATE, places, path)
    return path


def _by_commit(records: list[Record]) -> list[list[Record]]:
    """Group records by commit, the earliest first: a table never mixes two."""
    commits = dict.fromkeys(record["commit"] for record in sorted(records, key=lambda record: record["date"]))
    return [[record for record in records if record["commit"] == commit] for commit in commits]


def _rows(quality: list[Record], speed: dict[str, Record], scores: dict[str, str]) -> Rows:
    shuffled = any("same_when_shuffled" in record for record in quality)
    decoding = any(record["decoding"] for record in speed.values())
    header = ["system", "lecture", "parameters", *scores.values()]
    header += ["same when shuffled"] if shuffled else []
    header += ["training tokens/s"] if speed else []
    header += [f"ms a token at {length}" for length in LENGTHS if decoding]
    rows = [header]
    for record in quality:
        times = speed.get(record["system"], {"training": {}, "decoding": {}})
        row = [record["system"], record["section"], f"{record['parameters'] / 1e6:.2f} M"]
        row += [f"{record['scores'][name]:.{DECIMALS.get(name, 1)}f}" for name in scores]
        row += [f"{record['same_when_shuffled']:.0%}"] if shuffled else []
        row += [f"{tokens_per_s(times):,.0f}" if times["training"] else ""] if speed else []
        row += [_milliseconds(times["decoding"], length) for length in LENGTHS if decoding]
        rows.append(row)
    return rows


def _milliseconds(times: dict[str, float], length: int) -> str:
    return f"{times[str(length)]:.2f}" if str(length) in times else ""


def _draw(quality: list[Record], speed: list[Record], directory: Path) -> list[Path]:
    speed_of = {r["system"]: r for r in speed}
    quality_of = {r["system"]: r for r in quality}
    compared = [system for system in COMPARED if system in speed_of]
    by_time = {name: _by_time(quality_of[name], speed_of[name]) for name in compared if name in quality_of}
    training = {name: _by_length(speed_of[name]["training"]) for name in compared}
    decoding = {name: _by_length(speed_of[name]["decoding"]) for name in compared}
    plots: dict[str, tuple[Lines, Sequence[int], str, str]] = {
        "loss-by-time": (by_time, (), "seconds of training", "validation loss, nats a token"),
        "training-by-length": (training, LENGTHS, "tokens of each sequence", "ms a training step"),
        "decoding-by-length": (decoding, LENGTHS, "tokens of source and target", "ms a token"),
    }
    figures = {
        name: line_plot(lines, ticks, xlabel=x, ylabel=y) for name, (lines, ticks, x, y) in plots.items() if lines
    }
    return save(figures, directory)


def _by_time(quality: Record, speed: Record) -> list[tuple[float, float]]:
    """Return the validation loss by seconds of training, computed from the time of a step."""
    seconds_a_step = quality["tokens"] / quality["steps"] / tokens_per_s(speed)
    return [(step * seconds_a_step, loss) for step, loss in quality["curve"]]


def _by_length(times: dict[str, float]) -> list[tuple[float, float]]:
    return [(int(length), ms) for length, ms in times.items()]
