"""Writes the results as tables: on the terminal, and in docs/benchmarks.md with plots beside it."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import tables
from benchmarks.page import fill, image, markdown, measured, printed, written
from benchmarks.plots import draw_growth
from benchmarks.results import Record, load, machine
from benchmarks.workspace import ROOT, workspace

TEMPLATE = Path(__file__).parent / "report.md"
"""Template of the report, with a place {{part}} for each part."""
TABLES: dict[str, Callable[[list[Record]], tables.Rows]] = {
    "decoder": tables.decoder_rows,
    "decoder_random": tables.decoder_rows,
    "imports": tables.decoder_rows,
    "imports_classifier": tables.classifier_rows,
    "quality": tables.quality_rows,
    "saturation": tables.saturation_rows,
    "latency": tables.latency_rows,
    "survival": tables.survival_rows,
    "agreement": tables.agreement_rows,
    "attention": tables.attention_rows,
}


def write(quick: bool, console: Console) -> Path:
    """Print every table that has results, and write the report, in the workspace if quick.

    Parts without new results stay as they are in the report, with their machine.

    Returns:
        The path of the report.
    """
    path = workspace("quick") / "benchmarks.md" if quick else ROOT / "docs" / "benchmarks.md"
    places = dict.fromkeys([*TABLES, "growth"], "Not measured yet.") | written(TEMPLATE, path)
    for part, rows_of in TABLES.items():
        if records := load(part, quick):
            rows = rows_of(records)
            console.print(printed(part, rows))
            places[part] = measured(markdown(rows), records, machine(part, quick))
    if growth := load("growth", quick):
        plots = draw_growth(growth, path.parent / "benchmarks")
        places["growth"] = measured("\n".join(map(image, plots)), growth, machine("growth", quick))
    fill(TEMPLATE, places, path)
    return path
