"""The results as tables: on the terminal, and in docs/benchmarks.md with plots beside it."""

import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import tables
from benchmarks.plots import draw_growth
from benchmarks.results import Record, load, machine
from benchmarks.workspace import ROOT, workspace

TEMPLATE = Path(__file__).parent / "report.md"
"""The report with a place {{part}} for what each part measured."""

TABLES: dict[str, Callable[[list[Record]], tables.Rows]] = {
    "decoder": tables.decoder_rows,
    "decoder_random": tables.decoder_rows,
    "quality": tables.quality_rows,
    "saturation": tables.saturation_rows,
    "latency": tables.latency_rows,
    "survival": tables.survival_rows,
    "agreement": tables.agreement_rows,
    "attention": tables.attention_rows,
}


def write(quick: bool, console: Console) -> Path:
    """Print every table that has results, and write the report; a quick one stays in the workspace.

    What was not measured here stays as the report has it, with the machine that it was measured on.

    Returns:
        The report's path.
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


def written(template: Path, path: Path) -> dict[str, str]:
    """What a page has in each {{place}} of its template; nothing where it is of another template, or not there."""
    if not path.exists():
        return {}
    text = re.escape(template.read_text(encoding="utf-8"))
    pattern = re.sub(r"\\{\\{(\w+)\\}\\}", r"(?P<\1>.*?)", text)
    found = re.fullmatch(pattern, path.read_text(encoding="utf-8"), re.DOTALL)
    return found.groupdict() if found else {}


def fill(template: Path, places: dict[str, str], path: Path) -> None:
    """Write a page: the template with what belongs into each {{place}}."""
    page = template.read_text(encoding="utf-8")
    for place, content in places.items():
        page = page.replace(f"{{{{{place}}}}}", content)
    path.write_text(page, encoding="utf-8")


def machine_table(described: dict[str, str]) -> str:
    """A machine, as `describe_machine` tells of it."""
    return markdown([["", ""], *([name, value] for name, value in described.items())])


def image(plot: Path) -> str:
    """A plot in a folder beside the page."""
    return f"![{plot.stem.replace('-', ' ')}]({plot.parent.name}/{plot.name})"


def measured(content: str, records: list[Record], machine: dict[str, str] | None = None) -> str:
    """The content, with when, at which commit and how it was measured, and on which machine."""
    if not records:
        return "Not measured yet."
    dates = sorted({record["date"] for record in records})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits = ", ".join(sorted({record["commit"] for record in records}))
    commands = ", ".join(sorted({f"`{record['command']}`" for record in records}))
    where = f" on {'; '.join(f'{name} {value}' for name, value in machine.items())}" if machine else ""
    return f"{content}\n\nMeasured {when} at {commits} by {commands}{where}."


def markdown(rows: tables.Rows) -> str:
    """A table, its first row the header."""
    header, *cells = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *cells])


def printed(title: str, rows: tables.Rows) -> Table:
    """The same for a terminal."""
    header, *cells = rows
    table = Table(*header, title=title)
    for row in cells:
        table.add_row(*(cell.replace("**", "") for cell in row))
    return table
