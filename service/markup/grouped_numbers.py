"""Numbers in groups of three digits, and with decimals, which each language writes in its own way: 425,000.50 is
425.000,50 or 425 000,50."""

import re
from collections.abc import Iterable

from service.markup.edits import edited
from service.sentences import Span

SEPARATORS = {"en": ",", "de": ".", "fr": "\u202f"}
"""As written; a reader of French also meets other spaces. All are one character, so that places in a text hold."""
DECIMAL_SIGNS = {"en": ".", "de": ",", "fr": ","}
_READ = {"en": ",", "de": r"\.", "fr": "[ \u00a0\u202f]"}
_NUMBER = {
    language: re.compile(
        rf"""
        (?<![\w.,:/])(?<!\d[ \u00a0])(?<!(?<!\d)-)  # the second of a range may have "-" before it
        (?: (?P<groups>\d{{1,3}}(?:{one}\d{{3}})+)(?:{re.escape(DECIMAL_SIGNS[language])}(?P<decimals>\d+))?
          | (?P<digits>\d{{4,}}){re.escape(DECIMAL_SIGNS[language])}(?P<more>\d+) )
        (?![\w/]|-(?!\d)|[.,:\u00a0 ]\d)""",
        re.VERBOSE,
    )
    for language, one in _READ.items()
}
_FIGURES = re.compile(r"[\d.,€£¥₹\u00a0\u202f –-]+")  # noqa: RUF001


def grouped_numbers(text: str, language: str) -> list[Span]:
    """Where they stand, in order; none in a language of which it is not known."""
    return [Span(*match.span()) for match in _NUMBER[language].finditer(text)] if language in _NUMBER else []


def regrouped(text: str, copies: Iterable[tuple[Span, Span]], original: str, source: str, target: str) -> str:
    """A translation with the numbers that it has as copies of the original written in its own language."""
    if source not in _NUMBER or target not in SEPARATORS:
        return text

    def in_target_language(number: re.Match[str]) -> str:
        if number["groups"] is None:
            return f"{number['digits']}{DECIMAL_SIGNS[target]}{number['more']}"
        decimals = "" if number["decimals"] is None else DECIMAL_SIGNS[target] + number["decimals"]
        return re.sub(r"\D", SEPARATORS[target], number["groups"]) + decimals

    places = [here for there, here in copies if _FIGURES.fullmatch(there.of(original))]
    written = [(place, _NUMBER[source].sub(in_target_language, place.of(text))) for place in places]
    return edited(text, sorted(written, key=lambda item: item[0].pair))[0]
