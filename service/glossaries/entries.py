"""Entries of a glossary as files have them: TSV, and CSV as RFC 4180 has it."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from service.base.errors import InvalidGlossary

MAX_ENTRIES = 10_000
"""Of one dictionary."""
MAX_TERM_CHARACTERS = 200
"""Of one term."""
LINE_END = re.compile(r"\r\n?|\n")

Entries = Mapping[str, str]
"""By term of the source, that of the target."""


def of_tsv(text: str) -> dict[str, str]:
    """A term, a tab and its translation on each line; empty lines count for nothing.

    Raises:
        UnprocessableRequest: a line is something else, or a term is there twice.
    """
    lines = enumerate(LINE_END.split(text.removeprefix("\ufeff")), start=1)
    return _of_rows((number, line.split("\t")) for number, line in lines if line.strip())


def of_csv(text: str) -> dict[str, str]:
    """A term and its translation on each line; what is in further columns, such as the languages, is not read.

    Raises:
        UnprocessableRequest: a line is something else, or a term is there twice.
    """
    return _of_rows(_of_csv(text.removeprefix("\ufeff")))


def checked(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Entries without the white space around their terms.

    Raises:
        UnprocessableRequest: a term is none, or is there twice, or there are too many.
    """
    return _of_rows(enumerate(entries, start=1), what="entry")


def as_tsv(entries: Entries) -> str:
    """One line for each; no term has a tab or a line end."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def _of_csv(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row[:2] if len(row) in (2, 4) else row
    except csv.Error as error:
        raise InvalidGlossary(f"`entries` line {reader.line_num} is not CSV: {error}") from None


def _of_rows(rows: Iterable[tuple[int, Iterable[str]]], what: str = "line") -> dict[str, str]:
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
