"""Numbers in groups of three digits, which each language parts in its own way: 425,000 is 425.000 or 425 000."""

import re
from collections.abc import Iterable

from service.markup.edits import edited
from service.sentences import Span

SEPARATORS = {"en": ",", "de": ".", "fr": "\u202f"}
"""As written; a reader of French also meets other spaces. All are one character, so that places in a text hold."""
_READ = {"en": ",", "de": r"\.", "fr": "[ \u00a0\u202f]"}
_GROUPED = {
    language: re.compile(rf"(?<![\w.,:/-])(?<!\d[ \u00a0])\d{{1,3}}(?:{one}\d{{3}})+(?![\w/-]|[.,:\u00a0 ]\d)")
    for language, one in _READ.items()
}


def grouped_numbers(text: str, language: str) -> list[Span]:
    """Where they stand, in order; none in a language of which it is not known."""
    return [Span(*match.span()) for match in _GROUPED[language].finditer(text)] if language in _GROUPED else []


def regrouped(text: str, copies: Iterable[tuple[Span, Span]], original: str, source: str, target: str) -> str:
    """A translation with the numbers that it has as copies of the original written in its own language."""
    if source not in _GROUPED or target not in SEPARATORS:
        return text
    places = [here for there, here in copies if _GROUPED[source].fullmatch(there.of(original))]
    written = [(place, re.sub(r"\D", SEPARATORS[target], place.of(text))) for place in places]
    return edited(text, sorted(written, key=lambda item: item[0].pair))[0]
