"""Capitals that hide words from a model: it reads small letters, and the translation gets the capitals back."""

import re
from collections.abc import Callable, Iterator, Sequence

from service.text.sentences import cells
from service.text.spans import Span, overlapping

HINT = re.compile("[A-ZÀ-ÖØ-ÞА-ЯЁ]{2}")
"""Two capitals side by side, which every text with a line in capitals has."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
LONE_WORD = re.compile(r"\W*([^\W\d_]{2,})\W*")
_WITH_NUMBER = re.compile(r"[\W\d]*([^\W\d_]{2,})[\W\d]*")
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


def lone_word(text: str) -> Span | None:
    """Return the only word of a text, beside numbers, if it begins with a capital and goes on in small letters."""
    match = _WITH_NUMBER.fullmatch(text)
    return Span(*match.span(1)) if match is not None and match[1].istitle() else None


def with_capital(text: str) -> str:
    return text[:1].upper() + text[1:]
