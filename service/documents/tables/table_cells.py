"""The cells of tables in text files (.csv, .tsv): their texts, and their places in the file."""

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from service.base.errors import TooLarge

SEPARATORS = ",;\t|"
QUOTED = re.compile(r'"(?:[^"]|"")*+"')
NAMED = re.compile(r"sep=([^\r\n])(?:\r\n?|\n)", re.IGNORECASE)
"""The first line of a file that names its separator, as Excel reads and some programs write it."""
MAX_CELLS = 1_000_000
"""The limit of cells in a table: each takes some 100 bytes of memory."""
SAMPLE_CHARACTERS, SAMPLE_LINES = 20_000, 50
"""The beginning of a file that tells its separator."""
FORMULA = "=+-@\t\r"
"""Characters with which a spreadsheet begins a formula."""


class Cell(NamedTuple):
    """A cell: its place in the file, and its text."""

    start: int
    end: int
    text: str


def rows_of(text: str, separator: str | None) -> tuple[list[list[Cell]], str]:
    """Return the cells of each row, and the separator. The beginning of the file tells the separator if it is None; a
    file of one column may have none (""). Raises TooLarge: the table has too many cells."""
    named = NAMED.match(text)
    position = named.end() if named else 0
    separator = separator or (named[1] if named else _find_separator(text[:SAMPLE_CHARACTERS]))
    pattern = _cell(separator)
    rows: list[list[Cell]] = []
    goes_on = False
    n_cells = 0
    while position < len(text) or goes_on:
        match = pattern.match(text, position)
        assert match is not None, "a cell may be empty"
        quoted, bare, end = match.groups()
        if not goes_on:
            rows.append([])
        cell_end = match.end() - len(end)
        rows[-1].append(Cell(position, cell_end, bare if quoted is None else quoted[1:-1].replace('""', '"')))
        position, goes_on = match.end(), end != "" and end == separator
        n_cells += 1
        if n_cells > MAX_CELLS:
            raise TooLarge(f"The table has more than {MAX_CELLS} cells")
    return rows, separator


def written_cell(translation: str, source: str, like: str, separator: str) -> str:
    """Return a cell as it is written in a file. It is quoted if it must be, or if the written cell `like` is quoted. A
    translation never begins a formula unless its source does: a space stands before it."""
    if translation[:1] in FORMULA and source[:1] not in FORMULA:
        translation = f" {translation}"
    must_be = translation.startswith('"') or ('"' in translation and '"' not in like)
    special = f"\r\n{separator}"
    if must_be or QUOTED.fullmatch(like) or any(character in translation for character in special):
        return '"' + translation.replace('"', '""') + '"'
    return translation


@lru_cache
def _cell(separator: str) -> re.Pattern[str]:
    sign = re.escape(separator)
    end = rf"{sign}|\r\n?|\n|\Z" if separator else r"\r\n?|\n|\Z"
    return re.compile(rf"(?:({QUOTED.pattern})(?={end})|([^\r\n{sign}]*+))({end})")


def _find_separator(sample: str) -> str:
    """Return the character that most lines have equally often, preferably one of the first line; "" for none."""
    lines = [line for line in QUOTED.sub("", sample).splitlines() if line][:SAMPLE_LINES]
    best, best_score = "", (False, len(lines) / 2, 0)
    for separator in SEPARATORS:
        counts = Counter(n for line in lines if (n := line.count(separator)))
        for n_separators, n_lines in counts.most_common(1):
            score = (separator in lines[0], n_lines, n_separators)
            if n_lines >= len(lines) / 2 and score > best_score:
                best, best_score = separator, score
    return best
