"""Lines of a PDF become headings, paragraphs, items of lists and tables."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import median

from service.documents.pdf.layout import LARGER, MARKER, Line, Row
from service.documents.pdf.words import SOFT_HYPHEN
from service.text.scripts import is_unspaced

ITEM = re.compile(rf"({MARKER.pattern})\s+(?=\S)")
HYPHENATED = re.compile(rf"[^\W\d_][-\u2010{SOFT_HYPHEN}]$")
ENDS_SENTENCE = re.compile(r"[.!?:;…。！？][\"'”’»)\]」』]*$")  # noqa: RUF001
SIZE_TOLERANCE = 0.1
MAX_HEADING_LINES, MAX_HEADING_CHARACTERS = 4, 200
MAX_LEVELS = 6
INDENT, SPACE, MAX_GAP, MIN_FULL = 0.7, 0.25, 4.0, 10.0
"""In sizes of letters: the least indent, a space, the widest gap within a line, and the least length of a full line."""
MIN_HEADING = 0.4
"""The least length of a full line of a heading, relative to the widest line of its page. A shorter line is a separate
heading, such as the title before the first heading."""
PITCH_TOLERANCE = 1.25
MAX_ROW_GAP = 8.0
"""The widest gap between two rows of a table, in sizes of letters."""
COLUMN_STEP = 24.0
"""Lines whose starts are at most this far apart, in points, are in the same column."""
DASHES = "–—-"  # noqa: RUF001
BULLETS = f"•◦▪▫■□●○‣⁃➢➤✓✔*{DASHES}"  # noqa: RUF001


@dataclass
class Paragraph:
    """Lines that are read as one text. It may be a heading of a level from 1 on, or an item of a list with a marker."""

    lines: list[Line]
    text: str = ""
    level: int = 0
    marker: str = ""


@dataclass
class Table:
    rows: list[list[str]]


def blocks_of(layout: Sequence[Line | Row], size: float) -> list[Paragraph | Table]:
    """Return the headings, paragraphs, items and tables of a document, whose usual size of letters is `size`."""
    words = Counter(_bare(word) for item in layout for line in _lines(item) for word in line.text.split())
    columns = _Columns([line for item in layout for line in _lines(item)], LARGER * size)
    blocks: list[Paragraph | Table] = []
    for group in _groups(layout):
        table = _table([item for item in group if isinstance(item, Row)], words)
        if table:
            blocks.append(table)
            continue
        parts = columns.paragraphs([line for item in group for line in _lines(item)])
        blocks += [Paragraph(part, join([line.text for line in part], words)) for part in parts]
    paragraphs = [block for block in blocks if isinstance(block, Paragraph)]
    _find_headings(paragraphs, size)
    for paragraph in paragraphs:
        item = ITEM.match(paragraph.text)
        if item and not paragraph.level:
            paragraph.marker, paragraph.text = item[1], paragraph.text[item.end() :]
    return blocks


def _groups(layout: Sequence[Line | Row]) -> Iterator[list[Line | Row]]:
    group: list[Line | Row] = []
    for item in layout:
        if group and not _is_beside(group[-1], item):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _is_beside(before: Line | Row, item: Line | Row) -> bool:
    if isinstance(before, Line) or isinstance(item, Line):
        return isinstance(before, Line) and isinstance(item, Line)
    first = item.cells[0][0]
    return before.cells[0][0].page != first.page or before.bottom - item.top < MAX_ROW_GAP * first.size


def join(lines: Sequence[str], words: Counter[str]) -> str:
    """Join lines. A hyphen at the end of a line stays only in a word that has it elsewhere in the document."""
    parts: list[str] = [""]
    for line in lines:
        start, end = parts[-1].rsplit(" ", 1)[-1], line.split(" ", 1)[0]
        if HYPHENATED.search(start) and end[:1].isalpha():
            start = start[:-1]
            is_parted = end[0].islower() or (start.isupper() and end.isupper())
            keeps = words[_bare(f"{start}-{end}")] > words[_bare(start + end)] or "-" in start or not is_parted
            parts[-1] = parts[-1][:-1] + "-" * keeps
        elif parts[-1] and not (is_unspaced(parts[-1][-1]) or is_unspaced(line[:1])):
            parts.append(" ")
        parts.append(line)
    return "".join(parts).replace(SOFT_HYPHEN, "-")


def _bare(word: str) -> str:
    return word.lower().strip("\"'.,;:!?()[]«»“”„")


def _table(rows: Sequence[Row], words: Counter[str]) -> Table | None:
    cells = (cell for row in rows for cell in row.cells)
    spans = sorted((min(line.left for line in cell), max(line.right for line in cell)) for cell in cells)
    columns: list[float] = []  # their right ends
    for left, right in spans:
        if columns and left < columns[-1]:
            columns[-1] = max(columns[-1], right)
        else:
            columns.append(right)
    if len(rows) < 2 or len(columns) < 2:
        return None
    table = []
    for row in rows:
        texts = [""] * len(columns)
        for cell in row.cells:
            column = min(bisect_right(columns, cell[0].left), len(columns) - 1)
            text = join([line.text for line in cell], words)
            texts[column] = f"{texts[column]} {text}".strip()
        table.append(texts)
    return Table(table)


def _lines(item: Line | Row) -> Iterable[Line]:
    return [item] if isinstance(item, Line) else chain(*item.cells)


class _Columns:
    """The columns of text on all pages: the right ends of their lines, and the distance between lines."""

    def __init__(self, lines: Sequence[Line], heading_size: float) -> None:
        self._heading_size = heading_size
        self._rights: dict[tuple[int, int], float] = {}
        self._widest: dict[int, float] = {}
        for line in lines:
            self._widest[line.page] = max(self._widest.get(line.page, 0), line.right - line.left)
            for place in self._places(line):
                self._rights[place] = max(self._rights.get(place, 0), line.right)
        pitches = [_below(*both) for both in pairwise(lines) if 0 < _below(*both) < 3]
        self._pitch = median(pitches) if pitches else 0

    def paragraphs(self, lines: Sequence[Line]) -> Iterator[list[Line]]:
        paragraph: list[Line] = []
        for line in lines:
            if paragraph and not self._goes_on(paragraph, line):
                yield paragraph
                paragraph = []
            paragraph.append(line)
        if paragraph:
            yield paragraph

    def _goes_on(self, paragraph: Sequence[Line], line: Line) -> bool:
        last = paragraph[-1]
        is_like = abs(line.size - last.size) <= SIZE_TOLERANCE * last.size and line.is_bold == last.is_bold
        is_full = self._is_full(last, line)
        is_open = not ENDS_SENTENCE.search(last.text)
        below = _below(last, line)
        if below == 0 and last.right < line.left < last.right + MAX_GAP * line.size:
            return True
        if not is_like or self._begins_item(paragraph, line, is_full):
            return False
        if not 0 < below <= PITCH_TOLERANCE * self._pitch:
            is_elsewhere = line.page != last.page or line.base > last.base
            return is_elsewhere and is_open and (is_full or line.text[:1].islower())
        indent = (line.left - last.left) / line.size
        is_item = ITEM.match(paragraph[0].text) is not None
        if indent > INDENT:
            return len(paragraph) == 1 and is_open and (is_item or is_full)
        if indent < -INDENT:
            return len(paragraph) == 1 and is_full and not is_item
        return is_full or (is_open and line.text[:1].islower())

    def _begins_item(self, paragraph: Sequence[Line], line: Line, is_full: bool) -> bool:
        """A dash or a number may also begin a line within a sentence."""
        item = ITEM.match(line.text)
        if not item:
            return False
        is_bullet = (item[1] in BULLETS and item[1] not in DASHES) or item[1] >= "\ue000"
        return is_bullet or not is_full or ITEM.match(paragraph[0].text) is not None

    def _is_full(self, last: Line, line: Line) -> bool:
        word = line.size if is_unspaced(line.text[:1]) else line.first_width + SPACE * line.size
        width, is_heading = last.right - last.left, last.size >= self._heading_size
        is_long = width > (MIN_HEADING * self._widest[last.page] if is_heading else MIN_FULL * last.size)
        return is_long and last.right + word > max(self._rights[place] for place in self._places(last))

    def _places(self, line: Line) -> list[tuple[int, int]]:
        near = round(line.left / COLUMN_STEP)
        return [(line.page, near + i) for i in (-1, 0, 1)]


def _below(before: Line, line: Line) -> float:
    """Return the distance of a line below another line, in sizes of letters; 0 for a line beside it."""
    below = (before.base - line.base) / max(line.size, 1)
    return 0 if abs(below) < 0.3 else below


def _find_headings(paragraphs: Sequence[Paragraph], size: float) -> None:
    n_bold = sum(len(paragraph.text) for paragraph in paragraphs if paragraph.lines[0].is_bold)
    bold_is_usual = 2 * n_bold > sum(len(paragraph.text) for paragraph in paragraphs)
    headings: list[tuple[Paragraph, float]] = []
    for paragraph in paragraphs:
        first, are_bold = paragraph.lines[0], all(line.is_bold for line in paragraph.lines)
        is_larger = first.size >= LARGER * size
        is_bold = not bold_is_usual and are_bold and not ENDS_SENTENCE.search(paragraph.text)
        is_short = len(paragraph.lines) <= MAX_HEADING_LINES and len(paragraph.text) <= MAX_HEADING_CHARACTERS
        item = ITEM.match(paragraph.text)
        is_item = item is not None and item[1] in BULLETS
        if is_short and not is_item and (is_larger or is_bold) and any(map(str.isalpha, paragraph.text)):
            headings.append((paragraph, round(first.size) if is_larger else 0))
    sizes = sorted({size for _, size in headings}, reverse=True)
    for paragraph, heading_size in headings:
        paragraph.level = min(MAX_LEVELS, sizes.index(heading_size) + 1)
