"""Aligned words: the attention of each word of a translation on each source word, and the punctuation around words.

Legend: T words of a sentence's translation, S words of the sentence.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from service.text.spans import Span, overlapping

Mass = NDArray[np.floating]
Trim = Callable[[Span], Span | None]
NOT_PUNCTUATION = frozenset("'’%‰&@#*/\\_§")  # noqa: RUF001
"""Characters that Unicode calls punctuation, but that may be part of a word."""


@dataclass(frozen=True)
class AlignedWords:
    """Words of a sentence and of its translation, in order, as spans of the whole texts."""

    source: Sequence[Span]
    target: Sequence[Span]
    mass: Mass
    """(T, S): the attention of each word of the translation on each word of the sentence. A row sums to 1 at most."""

    def on(self, span: Span) -> Mass:
        """Return the attention (T,) on a part of the source. A word half inside the part counts half."""
        first, last = overlapping(self.source, span)
        words = self.source[first:last]
        if len(words) == len(self.source) and all(span.start <= w.start and w.end <= span.end for w in words):
            return self._on_all
        shares = [(min(w.end, span.end) - max(w.start, span.start)) / max(1, w.end - w.start) for w in words]
        return self.mass[:, first:last] @ np.array(shares, self.mass.dtype)

    @cached_property
    def _on_all(self) -> Mass:
        on_all: Mass = self.mass.sum(axis=1)
        return on_all

    def trim(self, source: Trim, target: Trim) -> "AlignedWords":
        """Return the trimmed words. Words of which nothing is left are removed."""
        columns = {i: shorter for i, word in enumerate(self.source) if (shorter := source(word)) is not None}
        rows = {i: shorter for i, word in enumerate(self.target) if (shorter := target(word)) is not None}
        return AlignedWords([*columns.values()], [*rows.values()], self.mass[np.ix_([*rows], [*columns])])


def core(text: str, word: Span) -> Span | None:
    """Return a word without the white space and punctuation around it; None if nothing else is left."""
    start, end = word.start, word.end
    while start < end and _is_punctuation(text[start]):
        start += 1
    while start < end and _is_punctuation(text[end - 1]):
        end -= 1
    return Span(start, end) if any(character not in NOT_PUNCTUATION for character in text[start:end]) else None


def reach(gap: str, marks: int, stops: Callable[[str], bool]) -> int:
    """Return how far a number of marks reaches into the gap beside a run of words, without marks of the other side. A
    mark that touches only the run belongs to it, such as the dot of .NET."""
    touching = next((i for i, character in enumerate(gap) if character.isspace()), 0)
    end, previous = 0, ""
    for i, character in enumerate(gap):
        if character.isspace():
            previous = character
            continue
        is_quote = character in "\"'" and previous.isspace()
        marks -= character != previous
        if character.isalnum() or (i >= touching and stops(character)) or is_quote or marks < 0:
            break
        end, previous = i + 1, character
    return end


def marks_in(text: str) -> int:
    """Return the number of punctuation marks; "..." counts as one."""
    return sum(1 for character, _ in groupby(text) if not character.isspace())


def _is_punctuation(character: str) -> bool:
    is_mark = unicodedata.category(character).startswith("P") and character not in NOT_PUNCTUATION
    return is_mark or character.isspace()


def opens(character: str) -> bool:
    return unicodedata.category(character) in ("Ps", "Pi") or character in "¿¡"


def closes(character: str) -> bool:
    return unicodedata.category(character) in ("Pe", "Pf") or character in ".,;:!?…。、！？"
