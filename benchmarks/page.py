"""A page of the documentation as a template with places {{part}}, and what was measured for each."""

import re
from pathlib import Path

from rich.table import Table

from benchmarks.results import Record
from benchmarks.tables import Rows


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
    """The content, with when, at which commit and how it was measured, and on which processor."""
    if not records:
        return "Not measured yet."
    dates = sorted({record["date"] for record in records})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits = ", ".join(sorted({record["commit"] for record in records}))
    commands = ", ".join(sorted({f"`{record['command']}`" for record in records}))
    where = f" on {machine['cores of this process']} cores of {machine['processor']}" if machine else ""
    return f"{content}\n\nMeasured {when} at {commits} by {commands}{where}."


def markdown(rows: Rows) -> str:
    """A table, its first row the header."""
    header, *cells = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *cells])


def printed(title: str, rows: Rows) -> Table:
    """The same for a terminal."""
    header, *cells = rows
    table = Table(*header, title=title)
    for row in cells:
        table.add_row(*(cell.replace("**", "") for cell in row))
    return table
