"""Source and target columns of a table: columns that a request names, or columns with names of languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.tables.table_cells import Cell
from service.text.languages import are_same, english_name

MAX_NAME_LENGTH = 40
SENTENCE_END = re.compile(r"[.!?…。！？]\s*$")
MAX_LANGUAGES = 1_000
"""The number of columns that are searched for names of languages."""
MAX_LISTED_CHARACTERS = 500


@dataclass(frozen=True)
class Column:
    """The numbers of a translated column and of the column for its translation, and the name of a new column."""

    source: int
    target: int
    name: str | None = None


def find_columns(rows: Sequence[Sequence[Cell]], width: int, options: ReadOptions) -> tuple[list[Column], bool]:
    """Return the translated columns, and whether the first row has names. Raises InvalidDocument: one is missing."""
    names = [cell.text.strip() for cell in rows[0]] if rows else []
    if options.columns:
        pairs = [_named_columns(wanted, names) for wanted in options.columns]
        return _numbered(pairs, names, width), True
    first_names = names[:MAX_LANGUAGES]
    if languages := _language_columns(first_names, options):
        return _numbered([languages], names, width), True
    targets = {i for i, name in enumerate(first_names) if options.target and _is_language(name, options.target)}
    return [Column(i, i) for i in range(width) if i not in targets], len(rows) > 1 and _is_header(names)


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
    codes = options.source, options.target
    source, target = (next((name for name in names if _is_language(name, code)), None) for code in codes)
    if source is None:
        return None
    is_code = source.casefold() != english_name(options.source).casefold()
    return source, target or (options.target if is_code else english_name(options.target))


def _is_language(name: str, code: str) -> bool:
    return are_same(name, code) or name.casefold() == english_name(code).casefold()


def _numbered(pairs: Sequence[tuple[str, str]], names: Sequence[str], width: int) -> list[Column]:
    new = dict.fromkeys(target for _, target in pairs if target not in names)
    numbers = {name: i for i, name in reversed([*enumerate([*names, *[""] * (width - len(names)), *new])])}
    columns = [Column(numbers[source], numbers[target], target if target in new else None) for source, target in pairs]
    return sorted(columns, key=lambda column: column.source)


def _is_header(names: Sequence[str]) -> bool:
    """Names of columns differ from each other, and none is a number or a sentence."""
    filled = [name for name in names if name]
    are_words = (any(map(str.isalpha, name)) and not SENTENCE_END.search(name) for name in filled)
    return len({*names}) == len(names) and all(len(name) <= MAX_NAME_LENGTH for name in filled) and all(are_words)
