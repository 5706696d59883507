"""Numbers in groups of three digits, and with decimals, which each language writes in its own way: 425,000.50 is
425.000,50 or 425 000,50."""

import re

from service.text.japanese_numbers import half_width, in_digits, numbers_in_myriads
from service.text.scripts import LETTER
from service.text.spans import Span, overlapping

SEPARATORS = {"en": ",", "de": ".", "fr": "\u202f", "ru": "\u00a0", "ja": ","}
"""As written; who reads French or Russian also meets other spaces."""
DECIMAL_SIGNS = {"en": ".", "de": ",", "fr": ",", "ru": ",", "ja": "."}
_READ = {"en": ",", "de": r"\.", "fr": "[ \u00a0\u202f]", "ru": "[ \u00a0\u202f]", "ja": ","}

_UNIT = "[kcdm]?m[²³]?|km/h|[km]?g|t|ft|mi|lbs?|ha|m?l|[kMG]?Wh?|[kMGT]B|bn|mn|tn|[kKMB]"
"""What may stand after a number without a space."""

CURRENCIES = "$€£¥₹₽"
RUSSIAN_TELEPHONE = r"(?:\+7|8)[ \u00a0]\(?\d{3}\)?[ \u00a0]\d{3}-\d\d-?\d\d(?!\d)"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}(?!\w|[.,]\d)"


def _numbers(language: str, fewest_digits: int) -> re.Pattern[str]:
    """Numbers in groups, or of so many digits at least before their decimal sign."""
    sign = re.escape(DECIMAL_SIGNS[language])
    return re.compile(
        rf"""
        (?<!{LETTER})(?<![\d.,:/+])(?<!\d[ \u00a0])(?<!(?<!\d)-)  # the second of a range may have "-" before it
        (?!{_IPV4})(?!{RUSSIAN_TELEPHONE})
        (?: (?P<groups>[1-9]\d{{0,2}}(?:{_READ[language]}\d{{3}})+)(?:{sign}(?P<decimals>\d+))?
          | (?P<digits>\d{{{fewest_digits},}}){sign}(?P<more>\d+) )
        (?:(?P<unit>{_UNIT})(?!-))?
        (?!{LETTER}|/|-(?!\d)|[.,:\u00a0 ]\d)""",
        re.VERBOSE,
    )


_NUMBER = {language: _numbers(language, 4) for language in _READ}
_AMOUNT = {language: _numbers(language, 1) for language in _READ}
"""Beside the sign of a currency or a unit of area or volume, where the decimal sign can be nothing else."""
_MEASURE = re.compile(f"[{CURRENCIES}²³]")
_FIGURES = re.compile(rf"[\d.,{CURRENCIES}\u00a0\u202f –-]+(?:{_UNIT})?")  # noqa: RUF001


_NO_NUMBER = re.compile(r"://|[@`]")
"""Of addresses and code."""


def grouped_numbers(text: str, language: str) -> list[Span]:
    """Where they stand, in order; none in a language of which it is not known."""
    if language not in _NUMBER:
        return []
    shown = half_width(text) if language == "ja" else text
    numbers = [Span(*match.span()) for match in _NUMBER[language].finditer(shown)]
    if language == "ja":
        in_myriads = numbers_in_myriads(shown)
        numbers = [span for span in numbers if len(set(overlapping(in_myriads, span))) == 1] + in_myriads
    return sorted(numbers, key=lambda span: span.pair)


def as_written(number: str, source: str, target: str) -> str:
    """A number of the source language as the target language writes it; anything else as it is, but for full width."""
    if source not in _NUMBER or target not in SEPARATORS:
        return number
    if source == "ja" and not _NO_NUMBER.search(number):
        number = in_digits(half_width(number))

    def in_target_language(number: re.Match[str]) -> str:
        unit = number["unit"] or ""
        if number["groups"] is None:
            return f"{number['digits']}{DECIMAL_SIGNS[target]}{number['more']}{unit}"
        decimals = "" if number["decimals"] is None else DECIMAL_SIGNS[target] + number["decimals"]
        return re.sub(r"\D", SEPARATORS[target], number["groups"]) + decimals + unit

    if not _FIGURES.fullmatch(number):
        return number
    return (_AMOUNT if _MEASURE.search(number) else _NUMBER)[source].sub(in_target_language, number)
