"""Tables in text files (.csv, .tsv): each cell with words is a text, of all columns or of those that are named.

Separators, quotes, line ends and all other cells stay unchanged.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import Contents, ReadOptions
from service.documents.encodings import decode
from service.documents.table_cells import MAX_CELLS, Cell, rows_of, written_cell
from service.text.languages import are_same, english_name
from service.text.spans import Span, replace_spans

MAX_NAME_LENGTH = 40
SENTENCE_END = re.compile(r"[.!?…。！？]\s*$")
MAX_LANGUAGES = 1_000
"""The number of columns that are looked at for names of languages."""
MAX_LISTED_CHARACTERS = 500

Edit = tuple[Span, str]
"""A span of the file, and what is written in its place."""


@dataclass(frozen=True)
class _Column:
    """A column that is translated.

    Args:
        source: the number of the column.
        target: the number of the column for its translation, which may be the same.
        name: the name of a column for translations that the file does not have yet.
    """

    source: int
    target: int
    name: str | None = None


def read_file(data: bytes, options: ReadOptions, separator: str | None) -> Contents:
    """Read a table.

    Args:
        separator: what stands between two cells; None: found by the content.

    Raises:
        InvalidDocument: the file is not text, or lacks a column that is asked for.
        TooLarge: the table has too many cells, or would have with another column.
    """
    text, encoding = decode(data)
    rows, separator = rows_of(text, separator)
    width = max(map(len, rows), default=0)
    columns, has_header = _columns(rows, width, options)
    if width * len(rows) > MAX_CELLS and any(column.name for column in columns):
        raise TooLarge(f"The table would have {len(rows)} rows of {width} cells; the limit is {MAX_CELLS} cells")
    translated = [
        [one for one in _within(columns, row) if i >= has_header and _is_translated(row, one, options.only_missing)]
        for i, row in enumerate(rows)
    ]
    texts = [row[one.source].text for row, columns in zip(rows, translated, strict=True) for one in columns]

    def write(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        remaining, edits = iter(translations), list[Edit]()
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

    return Contents(texts, "text", write)


read_csv = partial(read_file, separator=None)
read_tsv = partial(read_file, separator="\t")


def _columns(rows: Sequence[Sequence[Cell]], width: int, options: ReadOptions) -> tuple[list[_Column], bool]:
    """Return the columns that are translated, and whether the first row has their names.

    Raises:
        InvalidDocument: the table lacks a column that is asked for.
    """
    names = [cell.text.strip() for cell in rows[0]] if rows else []
    if options.columns:
        pairs = [_named_columns(wanted, names) for wanted in options.columns]
        return _numbered(pairs, names, width), True
    first_names = names[:MAX_LANGUAGES]
    if languages := _language_columns(first_names, options):
        return _numbered([languages], names, width), True
    targets = {i for i, name in enumerate(first_names) if options.target and _is_language(name, options.target)}
    return [_Column(i, i) for i in range(width) if i not in targets], len(rows) > 1 and _is_header(names)


def _named_columns(wanted: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the source and the target column of "text", which is both, or of "en=fr"."""
    source, _, target = (wanted, "", "") if wanted.strip() in names else map(str.strip, wanted.partition("="))
    if source.strip() not in names:
        listed = ", ".join(names)
        listed = listed if len(listed) <= MAX_LISTED_CHARACTERS else f"{listed[:MAX_LISTED_CHARACTERS]}..."
        raise InvalidDocument(f"The table has no column {source.strip()}; available: {listed}")
    return source.strip(), target or source.strip()


def _language_columns(names: Sequence[str], options: ReadOptions) -> tuple[str, str] | None:
    """Return the columns named as source and target language (en and fr, English and French), if the first exists."""
    if not options.source or not options.target:
        return None
    source, target = (
        next((name for name in names if _is_language(name, code)), None) for code in (options.source, options.target)
    )
    if source is None:
        return None
    is_code = source.casefold() != english_name(options.source).casefold()
    return source, target or (options.target if is_code else english_name(options.target))


def _is_language(name: str, code: str) -> bool:
    return are_same(name, code) or name.casefold() == english_name(code).casefold()


def _numbered(pairs: Sequence[tuple[str, str]], names: Sequence[str], width: int) -> list[_Column]:
    new = dict.fromkeys(target for _, target in pairs if target not in names)
    numbers = {name: i for i, name in reversed([*enumerate([*names, *[""] * (width - len(names)), *new])])}
    columns = [_Column(numbers[source], numbers[target], target if target in new else None) for source, target in pairs]
    return sorted(columns, key=lambda column: column.source)


def _is_header(names: Sequence[str]) -> bool:
    """Return whether cells look like the names of columns: all of them differ, and none is a number or a sentence."""
    are_names = (
        any(map(str.isalpha, name)) and len(name) <= MAX_NAME_LENGTH and not SENTENCE_END.search(name)
        for name in names
        if name
    )
    return len({*names}) == len(names) and all(are_names)


def _within(columns: Sequence[_Column], row: Sequence[Cell]) -> Iterator[_Column]:
    """Yield the columns that a row has."""
    return takewhile(lambda column: column.source < len(row), columns)


def _is_translated(row: Sequence[Cell], column: _Column, only_missing: bool) -> bool:
    text = row[column.source].text
    if not text.strip() or text.startswith("="):  # a formula
        return False
    if column.source == column.target:
        return any(map(str.isalpha, text))
    is_filled = column.target < len(row) and row[column.target].text.strip() != ""
    return not (only_missing and is_filled)


def _new_cells(new: dict[int, str], row: Sequence[Cell], is_header: bool) -> dict[int, str]:
    """Return the cells of new columns, by number, without translations. An empty line gets none."""
    if len(row) == 1 and not row[0].text:
        return {}
    return {number: name if is_header else "" for number, name in new.items()}


def _written(text: str, translation: str, source: Cell, like: Cell, separator: str) -> str:
    return written_cell(translation, source.text, text[like.start : like.end], separator)


def _row_edits(row: Sequence[Cell], values: dict[int, str], separator: str) -> Iterator[Edit]:
    """Yield what changes in a row. Cells behind its end are appended."""
    n_cells, appended = len(row), ""
    for number in sorted(values):
        if number < len(row):
            yield Span(row[number].start, row[number].end), values[number]
        else:
            appended += separator * (number + 1 - n_cells) + values[number]
            n_cells = number + 1
    if appended:
        yield Span(row[-1].end, row[-1].end), appended
