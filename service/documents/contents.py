"""Reading and rewriting of documents: the interface of every kind of file."""

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from service.schemas.requests import Format
from service.text.language_marks import MarkedLanguages
from service.text.languages import subtag


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file. A file is read with the same options when its translation is written.

    Args:
        max_bytes: the size limit of the unpacked file.
        source: the language of the texts, as the request names it; None: not known yet.
        target: the language of the translation, as the request names it; None: not known yet.
        only_missing: leave out texts with a translation in the file. Only kinds that hold both obey it.
        columns: the columns of a table to translate; kinds without columns ignore it.
        fuzzy_below: the confidence below which a translation is marked as unsure; None: every translation is.
        unsure: the texts whose translations have less confidence.
    """

    max_bytes: int = sys.maxsize
    source: str | None = None
    target: str | None = None
    only_missing: bool = False
    columns: Sequence[str] = ()
    fuzzy_below: float | None = None
    unsure: Sequence[str] = ()

    def is_unsure(self, texts: Iterable[str]) -> bool:
        """Return whether the translation of one of these texts is to be marked as unsure."""
        return self.fuzzy_below is None or not self._unsure.isdisjoint(texts)

    @cached_property
    def _unsure(self) -> frozenset[str]:
        return frozenset(self.unsure)

    @property
    def languages(self) -> MarkedLanguages | None:
        """The languages for marks of languages in the file; None if one of them is not known yet."""
        return MarkedLanguages(self.source, self.target) if self.source and self.target else None

    def is_source(self, mark: str) -> bool:
        """Return whether a mark names the source language, in any region."""
        return self.source is not None and subtag(mark) == subtag(self.source)

    def translated_mark(self, mark: str) -> str:
        """Return a mark of a language for the translation. A mark of another language stays as it is."""
        return self.languages.translated(mark) if self.languages else mark


DEFAULT_OPTIONS = ReadOptions()


@dataclass(frozen=True)
class Contents:
    """The texts of a document, in order."""

    texts: list[str]
    """Each text has a character at least, and no half of a surrogate pair."""
    format: Format
    """The format of every text, as in `TranslateRequest`."""
    source: str | None = None
    """The language of the texts, if the file tells. It counts if the request names no language."""


Rewriting = Generator[Contents, list[str], bytes]
"""Yields the texts of a file, is sent their translations, and returns the file with them. Same texts change nothing."""
Rewrite = Callable[[bytes, ReadOptions], Rewriting]
"""Begins to rewrite a file of one kind. It raises InvalidDocument for a damaged file, and TooLarge, until it yields."""


def write(rewriting: Rewriting, translations: Sequence[str]) -> bytes:
    """Return the file of a rewriting that has not begun, with one translation for each text."""
    next(rewriting)
    try:
        rewriting.send([*translations])
    except StopIteration as end:
        written: bytes = end.value
        return written
    raise AssertionError("a rewriting yields once")
