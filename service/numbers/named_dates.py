"""Find days with the name of their month, such as March 3rd, 2024, and write them in another language.

The forms are CLDR's: the names of months, and the order and the words around them (3 de marzo de 2024).
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, date
from functools import lru_cache
from typing import TYPE_CHECKING

from service.numbers.number_forms import forms_of
from service.text.spans import Span

if TYPE_CHECKING:
    from babel import Locale

ENDING = "(?i:st|nd|rd|th)"
"""The ending of an English ordinal number."""
_LEAP_YEAR = 2000
_FIELD = re.compile(r"d+|[ML]+|y+|'([^']*)'|[^dMLy']")
_AFTER_YEAR = re.compile(r"(?<=y)[^dMLy]+$")
_BEHIND = r"(?![\d%/–-]|[.,:]\d|[ \u00a0\u202f]\d{3}(?!\d))"  # noqa: RUF001
_FUNCTION_WORDS = (
    "at|in|on|to|and|or|but|by|for|from|of|until|till|through|with|as|if|is|was|will|the|a|I|we|you|he|she|it|they"
)
_NO_NOUN_BEHIND = rf"(?:(?<=\d{ENDING})|(?![ ](?!(?:{_FUNCTION_WORDS})\b)[^\W\d_]))"
"""Behind a day without a year, in English: "In May 12 dogs came" has no day, nor has "Step 2 May take a while"."""


@dataclass(frozen=True)
class NamedDate:
    """A day, and the number of its month from 1 on; the year is None if it is not named."""

    span: Span
    year: int | None
    month: int
    day: int

    def write(self, language: str) -> str | None:
        """Return the day as a language writes it; None if CLDR does not know the language."""
        from babel.dates import format_date

        locale = forms_of(language).locale
        if locale is None:
            return None
        long, short = _patterns(locale)
        day = date(_LEAP_YEAR if self.year is None else self.year, self.month, self.day)
        return format_date(day, short if self.year is None else _AFTER_YEAR.sub("", long), locale)

    @property
    def exists(self) -> bool:
        """Whether the month has such a day; without a year, in any year."""
        year = _LEAP_YEAR if self.year is None else self.year
        return 1 <= year <= MAXYEAR and 1 <= self.day <= monthrange(year, self.month)[1]


def named_dates(text: str, language: str) -> Iterator[NamedDate]:
    """Yield the days with the name of a month, in order."""
    pattern = _pattern(language)
    for match in pattern.finditer(text) if pattern is not None else ():
        found = {name[0]: value for name, value in match.groupdict().items() if value is not None}
        year = int(found["y"]) if "y" in found else None
        named = NamedDate(Span(*match.span()), year, month_names(language)[found["m"]], int(found["d"]))
        if named.exists:
            yield named


@lru_cache(maxsize=100)
def month_names(language: str) -> dict[str, int]:
    """Return the numbers of months by their names and by the short ones. Beside English, which has Sept too, short
    names have a full stop: sept is seven in French."""
    uses = [locale.months[use] for locale in _locales(language) for use in ("format", "stand-alone")]
    short = {name: number for use in uses for number, name in use["abbreviated"].items()}
    whole = {name: number for use in uses for number, name in use["wide"].items()}
    without_stop = short if language == "en" else {}
    return (
        {f"{name.rstrip('.')}.": number for name, number in short.items() if name not in whole} | without_stop | whole
    )


@lru_cache(maxsize=100)
def _pattern(language: str) -> re.Pattern[str] | None:
    """Return a pattern of each form in which a language writes a day; those with a year are tried first."""
    names = sorted(month_names(language), key=len, reverse=True)
    if not names or forms_of(language).is_unspaced:
        return None
    forms = sorted((form for locale in _locales(language) for form in _patterns(locale)), key=len, reverse=True)
    month = "|".join(map(re.escape, names))
    behind = _BEHIND + (_NO_NOUN_BEHIND if language == "en" else "")
    regexes = (_regex(form, month, i) + (_BEHIND if "y" in form else behind) for i, form in enumerate(forms))
    return re.compile("|".join(regexes))


def _regex(form: str, month: str, number: int) -> str:
    """Return a regular expression of a pattern of CLDR."""
    fields = {
        "d": rf"(?P<d{number}>\d{{1,2}})(?:{ENDING}|er)?",
        "M": (name := rf"(?P<m{number}>{month})(?![^\W\d_])"),
        "L": name,
        "y": rf"(?P<y{number}>\d{{4}})",
        " ": "[ \u00a0\u202f](?:of[ ])?",
        ",": ",?",
    }
    pieces = _FIELD.finditer(_AFTER_YEAR.sub("", form))
    parts = (fields.get(piece.group()[0]) or re.escape(piece[1] or piece.group()) for piece in pieces)
    return rf"(?<![\w.,:/–-]){''.join(parts)}"  # noqa: RUF001


def _patterns(locale: "Locale") -> tuple[str, str]:
    """Return the patterns of a day with its year and without."""
    return locale.date_formats["long"].pattern, locale.datetime_skeletons["MMMMd"].pattern


def _locales(language: str) -> "list[Locale]":
    from babel import Locale

    locale = forms_of(language).locale
    return [] if locale is None else [locale, Locale("en", "GB")] if language == "en" else [locale]
