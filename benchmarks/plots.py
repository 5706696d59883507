"""The curves of the report, one SVG each."""

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
"""By file: title, axes and curves."""


def draw_growth(records: list[Record], directory: Path) -> list[Path]:
    """Draw every plot that has records; returns their files."""
    directory.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "attend"  # the same results make the same bytes
    drawn = []
    for name, (title, x_label, y_label, curves) in PLOTS.items():
        points = [record for record in records if record["curve"] in curves]
        if points:
            path = directory / f"{name}.svg"
            _draw(points, title, x_label, y_label).savefig(path, metadata={"Date": None})
            drawn.append(path)
    return drawn


def _draw(points: list[Record], title: str, x_label: str, y_label: str) -> Figure:
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel=x_label, ylabel=y_label, xscale="log")
    lines: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        rows = point["curve"].rpartition(", ")[2] if "," in point["curve"] else ""
        lines.setdefault(f"{point['engine']} {rows}".strip(), []).append((point["x"], point["y"]))
    for label, line in lines.items():
        x, y = zip(*sorted(line), strict=True)
        axes.plot(x, y, marker="o", label=label)
    ticks = sorted({point["x"] for point in points})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend()
    return figure
