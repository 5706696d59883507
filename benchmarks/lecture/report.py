"""The table of the lecture's systems, with plots: docs/lecture.md."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks.lecture.speed import BATCH_TOKENS, LENGTHS, tokens_per_s
from benchmarks.report import markdown, measured, printed
from benchmarks.results import Record, load, machine
from benchmarks.tables import Rows
from benchmarks.workspace import ROOT, workspace

TEMPLATE = Path(__file__).parent / "report.md"
"""The page with a place {{part}} for each table and plot."""

SCORES = {
    "translation": {"bleu": "BLEU", "chrf": "chrF"},
    "language-model": {"perplexity": "perplexity", "bits_per_byte": "bits per byte"},
    "classification": {"accuracy": "accuracy, %"},
}
DECIMALS = {"bits_per_byte": 3}
COMPARED = (
    "lecture's Transformer",
    "GRU without attention",
    "GRU with additive attention",
    "LSTM with additive attention",
)


def write(quick: bool, console: Console) -> Path:
    """Print the tables, and write the page; a quick one stays in the workspace. Returns its path."""
    path = workspace("quick") / "lecture.md" if quick else ROOT / "docs" / "lecture.md"
    quality, speed = load("lecture-quality", quick), load("lecture-speed", quick)
    budget = next((f"{r['steps']:,} steps, {r['tokens'] / 1e6:.1f} million padded tokens" for r in quality), "")
    places = {"budget": budget, "batch": f"{BATCH_TOKENS:,}"}
    places |= {"machine": markdown([["", ""], *([name, value] for name, value in machine(quick).items())])}
    for family, scores in SCORES.items():
        records = [record for record in quality if record["family"] == family]
        rows = _rows(records, {r["system"]: r for r in speed if r["family"] == family}, scores)
        console.print(printed(family, rows))
        places[family] = measured(markdown(rows), records)
    plots = _draw(quality, speed, path.parent / "lecture")
    for name in ("loss-by-time", "training-by-length", "decoding-by-length"):
        drawn = any(plot.stem == name for plot in plots)
        places[name] = f"![{name.replace('-', ' ')}](lecture/{name}.svg)" if drawn else "Not measured yet."
    page = TEMPLATE.read_text(encoding="utf-8")
    for place, content in places.items():
        page = page.replace(f"{{{{{place}}}}}", content)
    path.write_text(page, encoding="utf-8")
    return path


def _rows(quality: list[Record], speed: dict[str, Record], scores: dict[str, str]) -> Rows:
    shuffled = any("same_when_shuffled" in record for record in quality)
    decoding = any(record["decoding"] for record in speed.values())
    header = ["system", "lecture", "parameters", *scores.values()]
    header += ["same when shuffled"] if shuffled else []
    header += ["training tokens/s"] + [f"ms a token at {length}" for length in LENGTHS if decoding]
    rows = [header]
    for record in quality:
        times = speed.get(record["system"], {"training": {}, "decoding": {}})
        row = [record["system"], record["section"], f"{record['parameters'] / 1e6:.2f} M"]
        row += [f"{record['scores'][name]:.{DECIMALS.get(name, 1)}f}" for name in scores]
        row += [f"{record['same_when_shuffled']:.0%}"] if shuffled else []
        row.append(f"{tokens_per_s(times):,.0f}" if times["training"] else "")
        row += [_milliseconds(times["decoding"], length) for length in LENGTHS if decoding]
        rows.append(row)
    return rows


def _milliseconds(times: dict[str, float], length: int) -> str:
    return f"{times[str(length)]:.2f}" if str(length) in times else ""


def _draw(quality: list[Record], speed: list[Record], directory: Path) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "attend"  # the same results make the same bytes
    times = {record["system"]: record for record in speed}
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {
        "loss-by-time": {
            record["system"]: [
                (step * record["tokens"] / record["steps"] / tokens_per_s(times[record["system"]]), loss)
                for step, loss in record["curve"]
            ]
            for record in quality
            if record["system"] in COMPARED and record["system"] in times
        },
        "training-by-length": _by_length(times, "training"),
        "decoding-by-length": _by_length(times, "decoding"),
    }
    axes: dict[str, dict[str, Any]] = {
        "loss-by-time": {"xlabel": "seconds of training", "ylabel": "validation loss, nats a token"},
        "training-by-length": {"xlabel": "tokens of each sequence", "ylabel": "ms a training step", "xscale": "log"},
        "decoding-by-length": {"xlabel": "tokens of source and target", "ylabel": "ms a token", "xscale": "log"},
    }
    drawn = []
    for name, lines in curves.items():
        if lines:
            path = directory / f"{name}.svg"
            _plot(lines, axes[name]).savefig(path, metadata={"Date": None})
            drawn.append(path)
    return drawn


def _by_length(times: dict[str, Record], kind: str) -> dict[str, list[tuple[float, float]]]:
    return {
        system: [(int(length), ms) for length, ms in times[system][kind].items()]
        for system in COMPARED
        if system in times
    }


def _plot(lines: dict[str, list[tuple[float, float]]], described: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(**described)
    for label, line in lines.items():
        axes.plot(*zip(*line, strict=True), marker="o", markersize=3, label=label)
    if described.get("xscale") == "log":
        axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
