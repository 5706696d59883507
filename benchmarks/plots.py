"""Plots of the reports, one SVG each."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.results import Record

PLOTS = {
    "step-by-rows": ("Decoder step", "rows", "ms", ("step by rows",)),
    "step-by-cache-length": ("Decoder step of 32 rows", "cached tokens", "ms", ("step by cache length",)),
    "encoder-by-source-length": (
        "Encoder",
        "source tokens",
        "ms",
        ("encoder by source length, 1 row", "encoder by source length, 8 rows"),
    ),
    "memory-by-sentences-in-flight": ("Memory of the process", "sentences in flight", "MB", ("memory",)),
}
"""Title, axes and curves by file."""
Lines = dict[str, list[tuple[float, float]]]
"""Points (x, y) by the label of a line."""


def draw_growth(records: list[Record], directory: Path) -> list[Path]:
    """Draw every plot that has records; return the files."""
    figures = {}
    for name, (title, x_label, y_label, curves) in PLOTS.items():
        points = [record for record in records if record["curve"] in curves]
        if points:
            ticks = sorted({point["x"] for point in points})
            figures[name] = line_plot(_lines(points), ticks, title=title, xlabel=x_label, ylabel=y_label)
    return save(figures, directory)


def _lines(points: list[Record]) -> Lines:
    lines: Lines = {}
    for point in points:
        rows = point["curve"].rpartition(", ")[2] if "," in point["curve"] else ""
        lines.setdefault(f"{point['engine']} {rows}".strip(), []).append((point["x"], point["y"]))
    return {label: sorted(line) for label, line in lines.items()}


def line_plot(lines: Lines, ticks: Sequence[int] = (), **described: str) -> Figure:
    """Return a figure of lines; with ticks, on a logarithmic x axis and from 0 on."""
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(**described, xscale="log" if ticks else "linear")
    for label, line in lines.items():
        axes.plot(*zip(*line, strict=True), marker="o", markersize=4, label=label)
    if ticks:
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend()
    return figure


def save(figures: dict[str, Figure], directory: Path) -> list[Path]:
    """Save each figure as an SVG of its name; the same results give the same bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.svg" for name in figures]
    with mpl.rc_context({"svg.hashsalt": "attend"}):
        for path, figure in zip(paths, figures.values(), strict=True):
            figure.savefig(path, metadata={"Date": None})
    return paths
