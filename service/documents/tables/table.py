"""Tables in text files (.csv, .tsv): each cell with words is a text, in all columns or in named columns.

Separators, quotes, line ends and all other cells stay unchanged.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile

from service.base.errors import TooLarge
from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.tables.table_cells import MAX_CELLS, Cell, rows_of, written_cell
from service.documents.tables.table_columns import Column, find_columns
from service.text.spans import Replacement, Span, replace_spans


def _rewrite(data: bytes, options: ReadOptions, separator: str | None) -> Rewriting:
    """Rewrite a table. The content tells the separator if it is None. Raises InvalidDocument: the file is not text, or
    lacks a wanted column. TooLarge: the table has too many cells, or would have with cells for the translations."""
    text, encoding = decode(data)
    rows, separator = rows_of(text, separator)
    width = max(map(len, rows), default=0)
    columns, has_header = find_columns(rows, width, options)
    last = max((column.target for column in columns if column.target != column.source), default=-1)
    n_added = sum(max(0, last + 1 - len(row)) for row in rows)
    if n_added > MAX_CELLS:
        raise TooLarge(f"The translation would add {n_added} cells to the table; the limit is {MAX_CELLS}")
    translated = [
        [column for column in _within(columns, row) if i >= has_header and _is_translated(row, column, options)]
        for i, row in enumerate(rows)
    ]
    texts = [row[column.source].text for row, columns in zip(rows, translated, strict=True) for column in columns]
    translations = yield Contents(texts, "text")
    if translations == texts:
        return data
    remaining, edits = iter(translations), list[Replacement]()
    new = {column.target: column.name for column in columns if column.name}
    sign = separator or ("," if new else "")
    written = partial(_written, text, separator=sign)
    for i, (row, translated_columns) in enumerate(zip(rows, translated, strict=True)):
        values = _new_cells(new, row, is_header=i < has_header)
        if new and not separator:  # the only cell may have commas
            values[0] = written(row[0].text, row[0], row[0])
        for column in translated_columns:
            source = row[column.source]
            like = row[column.target] if column.target < len(row) else source
            values[column.target] = written(next(remaining), source, like)
        edits += _row_edits(row, values, sign)
    return encoding.encode(replace_spans(text, edits)[0])


rewrite_csv = partial(_rewrite, separator=None)
rewrite_tsv = partial(_rewrite, separator="\t")


def _within(columns: Sequence[Column], row: Sequence[Cell]) -> Iterator[Column]:
    return takewhile(lambda column: column.source < len(row), columns)


def _is_translated(row: Sequence[Cell], column: Column, options: ReadOptions) -> bool:
    text = row[column.source].text
    if not text.strip() or text.startswith("="):  # a formula
        return False
    if column.source == column.target:
        return any(map(str.isalpha, text))
    is_filled = column.target < len(row) and row[column.target].text.strip() != ""
    return not (options.only_missing and is_filled)


def _new_cells(new: dict[int, str], row: Sequence[Cell], is_header: bool) -> dict[int, str]:
    """Return the cells of new columns, by number, without translations. An empty line gets none."""
    if len(row) == 1 and not row[0].text:
        return {}
    return {number: name if is_header else "" for number, name in new.items()}


def _written(text: str, translation: str, source: Cell, like: Cell, separator: str) -> str:
    return written_cell(translation, source.text, text[like.start : like.end], separator)


def _row_edits(row: Sequence[Cell], values: dict[int, str], separator: str) -> Iterator[Replacement]:
    """Cells behind the end of the row are appended."""
    n_cells, appended = len(row), ""
    for number in sorted(values):
        if number < len(row):
            yield Span(row[number].start, row[number].end), values[number]
        else:
            appended += separator * (number + 1 - n_cells) + values[number]
            n_cells = number + 1
    if appended:
        yield Span(row[-1].end, row[-1].end), appended
