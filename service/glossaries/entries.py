"""Read the entries of a glossary from TSV, CSV (RFC 4180), TBX and TMX, and write them as TSV."""

import csv
import io
import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePath

from service.base.errors import InvalidGlossary
from service.glossaries.exchange import read_rows
from service.schemas.requests import GlossaryTerm

MAX_ENTRIES = 10_000
"""Maximum number of entries in one dictionary."""
MAX_TERM_CHARACTERS = 200
LINE = "`entries` line"
DELIMITERS = ",;\t"
"""Excel writes semicolons where a comma is the decimal point."""
_strict_reader = partial(csv.reader, strict=True)
LINE_END = re.compile(r"\r\n?|\n")
Entries = Mapping[str, str | GlossaryTerm]
"""Terms in the source language, each with its translation."""


def read_file(name: str, data: bytes, source: str, target: str) -> dict[str, str]:
    """Read the entries of a file, whose ending tells its kind. A file of several languages has entries from source to
    target. Raises InvalidGlossary: the file is of another kind or damaged, or an entry is not allowed."""
    ending = PurePath(name).suffix.lower()
    if ending in (".tbx", ".tmx"):
        return _check_rows(read_rows(data, source, target), "Line")
    if ending not in (".csv", ".tsv"):
        raise InvalidGlossary(
            f"`file` must be a glossary, not {ending or 'a file without an ending'}; available: .csv, .tbx, .tmx, .tsv"
        )
    try:
        text = data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeError as error:
        raise InvalidGlossary(f"The file must be UTF-8 or UTF-16: {error}") from None
    return (parse_csv if ending == ".csv" else parse_tsv)(text, "Line")


def parse_tsv(text: str, line: str = LINE) -> dict[str, str]:
    """Read lines with a term, a tab and a translation. Empty lines are skipped. In messages, `line` stands before the
    number of a line. Raises InvalidGlossary: a line has another form, or repeats a term."""
    lines = enumerate(LINE_END.split(text.removeprefix("\ufeff")), start=1)
    return _check_rows(((number, row.split("\t")) for number, row in lines if row.strip()), line)


def parse_csv(text: str, line: str = LINE) -> dict[str, str]:
    """Read a term and its translation from the first two columns; further columns, such as languages, are ignored.
    `line` and errors are as for `parse_tsv`."""
    return _check_rows(_csv_rows(text.removeprefix("\ufeff"), line), line)


def check_entries(entries: Entries) -> dict[str, str | GlossaryTerm]:
    """Return the entries, stripped. Raises InvalidGlossary: too many, or a term is not allowed or repeated."""
    rows = [(term, translation_of(entry)) for term, entry in entries.items()]
    checked = _check_rows(enumerate(rows, start=1), "`entries` entry")
    new: dict[str, str | GlossaryTerm] = {**checked}
    for (term, translation), entry in zip(checked.items(), entries.values(), strict=True):
        new[term] = translation if isinstance(entry, str) else entry.model_copy(update={"translation": translation})
    return new


def translation_of(entry: str | GlossaryTerm) -> str:
    return entry if isinstance(entry, str) else entry.translation


def format_tsv(entries: Entries) -> str:
    """Write one line for each entry. No term has a tab or a line end."""
    return "\n".join(f"{source}\t{translation_of(target)}" for source, target in entries.items())


def _csv_rows(text: str, line: str) -> Iterator[tuple[int, list[str]]]:
    delimiter = max(DELIMITERS, key=lambda sign: _n_entries(text, sign))
    reader = _strict_reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for row in map(_cells, reader):
            if any(row):
                yield reader.line_num, row[:2] if len(row) == 4 else row
    except csv.Error as error:
        raise InvalidGlossary(f"{line} {reader.line_num} is not CSV: {error}") from None


def _n_entries(text: str, delimiter: str) -> int:
    """Return the number of entries before a line that cannot be read with this delimiter."""
    n_entries = 0
    with suppress(csv.Error):
        for row in map(_cells, _strict_reader(io.StringIO(text, newline=""), delimiter=delimiter)):
            n_entries += len(row) in (2, 4)
    return n_entries


def _cells(row: list[str]) -> list[str]:
    """Return the cells of a line, without empty cells at its end that no entry needs."""
    cells = [cell.strip() for cell in row]
    while len(cells) > 2 and not cells[-1]:
        cells.pop()
    return cells


def _check_rows(rows: Iterable[tuple[int, Iterable[str]]], what: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for number, row in rows:
        terms = [term.strip() for term in row]
        where = f"{what} {number}"
        if len(terms) != 2:
            raise InvalidGlossary(f"{where} must have 2 columns (a term and its translation), not {len(terms)}")
        for term, side in zip(terms, ("term", "translation"), strict=True):
            _check(term, f"{where}: the {side}")
        source, target = terms
        if source in entries:
            raise InvalidGlossary(f"{where} repeats the term {source!r}")
        if len(entries) == MAX_ENTRIES:
            raise InvalidGlossary(f"A dictionary must have at most {MAX_ENTRIES} terms")
        entries[source] = target
    if not entries:
        raise InvalidGlossary("`entries` must not be empty")
    return entries


def _check(term: str, which: str) -> None:
    if not term:
        raise InvalidGlossary(f"{which} is empty")
    if len(term) > MAX_TERM_CHARACTERS:
        raise InvalidGlossary(f"{which} has {len(term)} characters; the limit is {MAX_TERM_CHARACTERS}")
    if not {"Cc", "Cs", "Zl", "Zp"}.isdisjoint(map(unicodedata.category, term)):
        raise InvalidGlossary(f"{which} has a tab, a line end or another control character")
