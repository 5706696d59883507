"""Pages of the documentation, written from a template with places {{part}} for results."""

import os
import re
from pathlib import Path

from rich.table import Table

from benchmarks.results import Record
from benchmarks.tables import Rows

RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^()\s]+)\)")


def written(template: Path, path: Path) -> dict[str, str]:
    """Return the content of a page by {{place}} of its template; empty if the page does not fit."""
    if not path.exists():
        return {}
    text = re.escape(_text(template, path))
    pattern = re.sub(r"\\{\\{(\w+)\\}\\}", r"(?P<\1>.*?)", text)
    match = re.fullmatch(pattern, path.read_text(encoding="utf-8"), re.DOTALL)
    return match.groupdict() if match else {}


def fill(template: Path, places: dict[str, str], path: Path) -> None:
    """Write a page: the template with the content of each {{place}}."""
    page = _text(template, path)
    for place, content in places.items():
        page = page.replace(f"{{{{{place}}}}}", content)
    path.write_text(page, encoding="utf-8")


def _text(template: Path, path: Path) -> str:
    """Return a template with its relative links as they are from the page at `path`."""

    def moved(link: re.Match[str]) -> str:
        target, sign, anchor = link[1].partition("#")
        return f"]({os.path.relpath((template.parent / target).resolve(), path.parent.resolve())}{sign}{anchor})"

    return RELATIVE_LINK.sub(moved, template.read_text(encoding="utf-8"))


def machine_table(described: dict[str, str]) -> str:
    """Return a table of a machine from `describe_machine`."""
    return markdown([["", ""], *([name, value] for name, value in described.items())])


def image(plot: Path) -> str:
    """Return the Markdown of a plot in a folder beside the page."""
    return f"![{plot.stem.replace('-', ' ')}]({plot.parent.name}/{plot.name})"


def measured(content: str, records: list[Record], machine: dict[str, str] | None = None) -> str:
    """Return the content with date, commit and command of its measurement, and the processor."""
    if not records:
        return "Not measured yet."
    dates = sorted({record["date"] for record in records})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits = ", ".join(sorted({record["commit"] for record in records}))
    commands = ", ".join(sorted({f"`{record['command']}`" for record in records}))
    where = f" on {machine['cores of this process']} cores of {machine['processor']}" if machine else ""
    return f"{content}\n\nMeasured {when} at {commits} by {commands}{where}."


def markdown(rows: Rows) -> str:
    """Return a Markdown table; the first row is the header."""
    header, *cells = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *cells])


def printed(title: str, rows: Rows) -> Table:
    """Return a table for a terminal."""
    header, *cells = rows
    table = Table(*header, title=title)
    for row in cells:
        table.add_row(*(cell.replace("**", "") for cell in row))
    return table
