"""Read and write the entries of a glossary as TSV and as CSV (RFC 4180)."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from service.base.errors import InvalidGlossary

MAX_ENTRIES = 10_000
"""Maximum number of entries in one dictionary."""
MAX_TERM_CHARACTERS = 200
"""Maximum length of one term."""
LINE_END = re.compile(r"\r\n?|\n")

Entries = Mapping[str, str]
"""Terms in the source language, each with its translation."""


def parse_tsv(text: str) -> dict[str, str]:
    """Read lines with a term, a tab and a translation. Empty lines are skipped.

    Raises:
        InvalidGlossary: a line has another form, or repeats a term.
    """
    lines = enumerate(LINE_END.split(text.removeprefix("\ufeff")), start=1)
    return _check_rows((number, line.split("\t")) for number, line in lines if line.strip())


def parse_csv(text: str) -> dict[str, str]:
    """Read a term and its translation from the first two columns. Further columns, such as languages, are ignored.

    Raises:
        InvalidGlossary: a line has another form, or repeats a term.
    """
    return _check_rows(_csv_rows(text.removeprefix("\ufeff")))


def check_entries(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the entries without white space around terms.

    Raises:
        InvalidGlossary: a term is not allowed or repeated, or there are too many.
    """
    return _check_rows(enumerate(entries, start=1), what="entry")


def format_tsv(entries: Entries) -> str:
    """Write one line for each entry. No term has a tab or a line end."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row[:2] if len(row) in (2, 4) else row
    except csv.Error as error:
        raise InvalidGlossary(f"`entries` line {reader.line_num} is not CSV: {error}") from None


def _check_rows(rows: Iterable[tuple[int, Iterable[str]]], what: str = "line") -> dict[str, str]:
    entries: dict[str, str] = {}
    for number, row in rows:
        terms = [term.strip() for term in row]
        where = f"`entries` {what} {number}"
        if len(terms) != 2:
            raise InvalidGlossary(f"{where} must have 2 columns (a term and its translation), not {len(terms)}")
        for term, side in zip(terms, ("term", "translation"), strict=True):
            _check(term, f"{where}: the {side}")
        source, target = terms
        if source in entries:
            raise InvalidGlossary(f"{where} repeats the term {source!r}")
        if len(entries) == MAX_ENTRIES:
            raise InvalidGlossary(f"`entries` must have at most {MAX_ENTRIES} terms")
        entries[source] = target
    if not entries:
        raise InvalidGlossary("`entries` must not be empty")
    return entries


def _check(term: str, which: str) -> None:
    if not term:
        raise InvalidGlossary(f"{which} is empty")
    if len(term) > MAX_TERM_CHARACTERS:
        raise InvalidGlossary(f"{which} has {len(term)} characters; the limit is {MAX_TERM_CHARACTERS}")
    category = next((found for found in map(unicodedata.category, term) if found in ("Cc", "Cs", "Zl", "Zp")), None)
    if category is not None:
        raise InvalidGlossary(f"{which} has a tab, a line end or another control character")
