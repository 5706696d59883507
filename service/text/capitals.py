"""Capitals that hide words from a model: it reads small letters, and the translation gets the capitals back."""

import re
from collections.abc import Callable, Iterator, Sequence

from service.text.sentences import cells
from service.text.spans import Span, overlapping

HINT = re.compile("[A-ZÀ-ÖØ-ÞА-ЯЁ]{2}")
"""Two capitals side by side, which every text with a line in capitals has."""
_WORD = re.compile(r"[^\W\d_]++(?:['\u2019][^\W\d_]++)*+")
LONE_WORD = re.compile(r"\W*([^\W\d_]{2,})\W*")
FEW_WORDS = re.compile(rf"[\W\d]*+{_WORD.pattern}(?:[\W\d]++{_WORD.pattern}){{0,2}}+[\W\d]*+")
"""A text of one to three words, perhaps with numbers."""
_BEGINS = re.compile(r"(?:^|[.!?:…]\W*)$")
"""The end of a text after which a sentence begins."""


def small_words(text: str, kept: Sequence[Span], n_tokens: Callable[[str], int]) -> Iterator[tuple[Span, str]]:
    """Yield the words of lines in capitals with the form that a model reads instead. It is the form with the fewest
    tokens, so an abbreviation stays as it is, and a name keeps its capital. A single word of several tokens stays too,
    and so do the mark before an entry of a list, and the spans in `kept`, which are in order."""
    position, marks = 0, [Span(cell.start, cell.begins) for cell in cells(text)]
    for line in text.splitlines(keepends=True):
        words = [Span(*match.span()).moved(position) for match in _WORD.finditer(line)]
        words = [word for word in words if all(len({*overlapping(spans, word)}) == 1 for spans in (kept, marks))]
        if words and all(word.of(text).isupper() for word in words) and any(len(word.of(text)) > 1 for word in words):
            for word in words:
                written = word.of(text)
                small, large = written.lower(), written[0] + written[1:].lower()
                best = min(written, small, large, key=n_tokens) if len(small) == len(written) else written
                if len(words) == 1 and n_tokens(best) > 1:  # an abbreviation
                    best = written
                if best == small and _BEGINS.search(text[position : word.start]):
                    best = large
                if best != written:
                    yield word, best
        position += len(line)


def in_capitals(text: str) -> str:
    """Return a text in capitals. Its length stays the same: ß becomes ẞ."""
    return "".join("ẞ" if letter == "ß" else letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def words_of_label(text: str) -> list[Span]:
    """Return the words of a text of one to three words whose first one `has_capital`; none if it is another text."""
    words = [Span(*match.span()) for match in _WORD.finditer(text)] if FEW_WORDS.fullmatch(text) else []
    return words if words and has_capital(words[0].of(text)) else []


def has_capital(word: str) -> bool:
    """Return whether a word begins with a capital and goes on in small letters."""
    return word[:1].isupper() and word[1:].islower()


def with_capital(text: str) -> str:
    return text[:1].upper() + text[1:]
