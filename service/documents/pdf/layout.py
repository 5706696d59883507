"""The layout of a PDF's page: its lines of text, and its tables. The file itself has only words at places."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from statistics import median

from service.documents.pdf.words import Page, Rule, Word

LARGER = 1.15
"""The letters of a heading are larger than those of most text by this factor."""
GAP, WIDE_GAP = 1.0, 2.5
"""The width of a gap that ends a cell, in sizes of letters: `GAP` if other gaps in its line are narrower."""
MIN_JUSTIFIED = 2
LINE_PITCH = 1.8
"""The maximum distance of two lines of a cell, in sizes of letters."""
MAX_CELL_LINES = 8
EDGE_LINES, MARGIN = 3, 0.12
"""The number of lines at the top and bottom of a page that may be a header or footer, and their part of the page."""
NUMBERS, NUMBER = re.compile(r"\d+|\b[ivxlc]+\b"), "0"
"""Page numbers, in digits or in Roman, and their stand-in when pages are compared."""
LEADER = re.compile(r"\s?(?:[.·_]\s?){5,}")
"""The dots between a title and its page number."""
MARKER = re.compile(r"[•◦▪▫■□●○‣⁃➢➤✓✔*–—-]|[\ue000-\uf8ff]|\(?(?:\d{1,3}|[a-zA-Z])[.)]")  # noqa: RUF001
"""The mark of an item of a list; Word and others take bullets from the private area of Unicode."""


@dataclass(frozen=True)
class Line:
    """A line of text, or the part of a line in a cell of a table. Lengths are as in words."""

    page: int
    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool
    first_width: float


@dataclass
class Row:
    """A row of a table, or lines like a row. `top` and `bottom` are the heights of its first and last line."""

    cells: list[list[Line]]
    top: float
    bottom: float

    def add(self, line: Line) -> bool:
        """Take a line that is in the next cell or goes on in the last cell. Return whether it was taken."""
        last = self.cells[-1]
        if line.page != last[-1].page:
            return False
        is_level = self.bottom - line.size / 2 <= line.base <= self.top + LINE_PITCH * line.size
        if line.left > last[-1].right and is_level:
            self.cells.append([line])
        elif line.left > max(above.right for above in self.cells[-2]) and _goes_on(last, line):
            last.append(line)
        else:
            return False
        self.top, self.bottom = max(self.top, line.base), min(self.bottom, line.base)
        return True


def lines_of(page: Page, number: int) -> Iterator[Line]:
    """Yield the lines of a page, cut at wide gaps and at the lines between the columns of a table."""
    words, start = page.words, 0
    lines: list[Sequence[Word]] = []
    for i in range(1, len(words) + 1):
        if i == len(words) or not _is_beside(words[start], words[i - 1], words[i]):
            lines.append(words[start:i])
            start = i
    gaps = [_wide_gaps(line) for line in lines]
    # In justified text any gap may be wide. Such lines begin and end at the same places.
    ends = Counter(_ends(line) for line, wide in zip(lines, gaps, strict=True) if not wide)
    for line, wide in zip(lines, gaps, strict=True):
        cuts = wide if ends[_ends(line)] < MIN_JUSTIFIED else []
        ruled = [i for i in range(1, len(line)) if _has_rule(line[i - 1], line[i], page.rules)]
        for first, last in pairwise([0, *sorted({*cuts, *ruled}), len(line)]):
            yield _line(line[first:last], number)


def _is_beside(first: Word, last: Word, word: Word) -> bool:
    size = max(first.size, word.size)
    return abs(word.base - first.base) < size / 2 and word.left > last.right - size / 2


def _ends(line: Sequence[Word]) -> tuple[int, int]:
    return round(line[0].left / 2), round(line[-1].right / 2)


def _wide_gaps(line: Sequence[Word]) -> list[int]:
    gaps = [after.left - before.right for before, after in pairwise(line)]
    limit = 2 * median(gaps) if gaps else 0
    pairs = enumerate(zip(gaps, line, strict=False), 1)
    wide = [(i, word) for i, (gap, word) in pairs if gap > min(WIDE_GAP * word.size, max(GAP * word.size, limit))]
    return [i for i, word in wide if not MARKER.fullmatch(word.text)]


def _has_rule(before: Word, after: Word, rules: Sequence[Rule]) -> bool:
    first = bisect_left(rules, before.right - 1, key=lambda rule: rule.x)
    near = takewhile(lambda rule: rule.x < after.left + 1, rules[first:])
    return any(rule.bottom <= before.base <= rule.top for rule in near)


def _line(words: Sequence[Word], page: int) -> Line:
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[word.size] += len(word.text)
    size = max(sizes, key=sizes.__getitem__)
    base = next(word.base for word in words if word.size == size)
    text = LEADER.sub(" … ", " ".join(word.text for word in words)).strip()
    first, is_bold = words[0], all(word.is_bold for word in words)
    return Line(page, text, first.left, words[-1].right, base, size, is_bold, first.right - first.left)


def without_margins(pages: Sequence[Sequence[Line]], size: float) -> list[list[Line]]:
    """Leave out headers, footers and page numbers: they are the same at the same place of several pages, except
    numbers. Lines that are larger than the usual `size` of letters are headings."""
    edges = [_edges([line for line in page if line.size < LARGER * size]) for page in pages]
    counts = Counter(look for looks in edges for look in {*looks.values()})
    kept = []
    for page, looks in zip(pages, edges, strict=True):
        left_out = {base for base, look in looks.items() if counts[look] >= _least(look, len(pages))}
        shown = [line for line in page if round(line.base) not in left_out or line.size >= LARGER * size]
        kept.append(shown or [*page])
    return kept


def _least(look: tuple[str, int], n_pages: int) -> int:
    """A header that begins or ends with a page number is on two pages at least: the title of a chapter is on few."""
    return 2 if n_pages < 5 or NUMBER in (look[0][0], look[0][-1]) else 3


def _edges(page: Sequence[Line]) -> dict[int, tuple[str, int]]:
    """Return the look of each line at the top and at the bottom of a page: its text without numbers, and its place."""
    bases = sorted({round(line.base) for line in page})
    margin = MARGIN * (bases[-1] - bases[0]) if bases else 0
    edges = [*bases[:EDGE_LINES], *bases[-EDGE_LINES:]]
    texts: dict[int, list[str]] = {base: [] for base in edges if not bases[0] + margin < base < bases[-1] - margin}
    for line in page:
        texts.get(round(line.base), []).append(line.text)
    return {base: (NUMBERS.sub(NUMBER, " ".join(text)), base // 2) for base, text in texts.items()}


def with_rows(lines: Iterable[Line]) -> list[Line | Row]:
    """Group lines that stand side by side, one after the other in the file, into rows."""
    items: list[Line | Row] = []
    for line in lines:
        last = items[-1] if items else None
        if isinstance(last, Row):
            if last.add(line):
                continue
        elif last and line.left > last.right and line.page == last.page and line.base > last.base - line.size / 2:
            cell = _taken_back(items, line)
            if cell:
                bases = [cell_line.base for cell_line in [*cell, line]]
                items.append(Row([cell, [line]], max(bases), min(bases)))
                continue
        items.append(line)
    return items


def _goes_on(cell: list[Line], line: Line) -> bool:
    last = cell[-1]
    below = last.base - line.base
    overlaps = line.left < max(above.right for above in cell) and line.right > min(above.left for above in cell)
    return overlaps and line.page == last.page and 0 < below < LINE_PITCH * line.size and len(cell) < MAX_CELL_LINES


def _taken_back(items: list[Line | Row], beside: Line) -> list[Line]:
    """Take back the lines of the first cell of a row, which are not higher than its second cell."""
    cell: list[Line] = []
    while items and len(cell) <= MAX_CELL_LINES:
        last = items[-1]
        if isinstance(last, Row) or last.page != beside.page or last.right > beside.left:
            break
        if last.base > beside.base + beside.size / 2 or (cell and not _goes_on([last], cell[0])):
            break
        cell.insert(0, last)
        items.pop()
    if len(cell) > MAX_CELL_LINES:  # a column of text
        items += cell
        return []
    return cell
