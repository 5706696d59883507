"""Numbers in groups of three digits, and with decimals, which each language writes in its own way: 425,000.50 is
425.000,50 or 425 000,50. Japanese also counts in ten thousands: 42万5000."""

import re
from collections.abc import Iterable
from decimal import Decimal
from unicodedata import normalize

from service.markup.edits import edited
from service.markup.scripts import LETTER
from service.sentences import Span

SEPARATORS = {"en": ",", "de": ".", "fr": "\u202f", "ru": "\u00a0", "ja": ","}
"""As written; who reads French or Russian also meets other spaces. All are one character: places in a text hold."""
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
        (?<!{LETTER})(?<![.,:/+])(?<!\d[ \u00a0])(?<!(?<!\d)-)  # the second of a range may have "-" before it
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
_KANJI_DIGITS = "〇一二三四五六七八九"
_KANJI_POWERS = {"千": 1000, "百": 100, "十": 10}
_MYRIADS = {"兆": 10**12, "億": 10**8, "万": 10**4}
_BELOW_MYRIAD = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)千?|[{_KANJI_DIGITS}{''.join(_KANJI_POWERS)}]+"
_MYRIAD = re.compile(rf"(?P<below>{_BELOW_MYRIAD})(?P<power>[{''.join(_MYRIADS)}])|(?P<rest>{_BELOW_MYRIAD})")
_IN_MYRIADS = re.compile(
    rf"(?<!{LETTER})(?<![.,])(?:(?:{_BELOW_MYRIAD})[{''.join(_MYRIADS)}])+(?:{_BELOW_MYRIAD})?(?![.,]?\d)"
)
_WIDE = re.compile(r"[０-９]{1,3}(?:，[０-９]{3})+(?:．[０-９]+)?|[０-９]{5,}")
"""Long numbers in characters as wide as kanji."""
_MEASURE = re.compile(f"[{CURRENCIES}²³]")
_FIGURES = re.compile(rf"[\d.,{CURRENCIES}\u00a0\u202f –-]+(?:{_UNIT})?")  # noqa: RUF001


def grouped_numbers(text: str, language: str) -> list[Span]:
    """Where they stand, in order; none in a language of which it is not known."""
    numbers = [Span(*match.span()) for match in _NUMBER[language].finditer(text)] if language in _NUMBER else []
    if language != "ja":
        return numbers
    japanese = (Span(*match.span()) for numbers in (_IN_MYRIADS, _WIDE) for match in numbers.finditer(text))
    return sorted({*numbers, *japanese}, key=lambda span: span.pair)


def _value(in_myriads: str) -> Decimal:
    """Of 1億2000万, or 三十万."""
    return sum(
        (
            _below_myriad(match["below"]) * _MYRIADS[match["power"]] if match["power"] else _below_myriad(match["rest"])
            for match in _MYRIAD.finditer(in_myriads)
        ),
        Decimal(),
    )


def _below_myriad(number: str) -> Decimal:
    """Of 2,500, 2.5, 2千, or 二百三十."""
    if number[0].isdecimal():
        return Decimal(number.removesuffix("千").replace(",", "")) * (1000 if number.endswith("千") else 1)
    value, digits = 0, ""
    for character in number:
        if character in _KANJI_POWERS:
            value, digits = value + int(digits or 1) * _KANJI_POWERS[character], ""
        else:
            digits += str(_KANJI_DIGITS.index(character))
    return Decimal(value + int(digits or 0))


def regrouped(text: str, copies: Iterable[tuple[Span, Span]], original: str, source: str, target: str) -> str:
    """A translation with the numbers that it has as copies of the original written in its own language."""
    if source not in _NUMBER or target not in SEPARATORS:
        return text

    def in_target_language(number: re.Match[str]) -> str:
        unit = number["unit"] or ""
        if number["groups"] is None:
            return f"{number['digits']}{DECIMAL_SIGNS[target]}{number['more']}{unit}"
        decimals = "" if number["decimals"] is None else DECIMAL_SIGNS[target] + number["decimals"]
        return re.sub(r"\D", SEPARATORS[target], number["groups"]) + decimals + unit

    written = []
    for there, here in copies:
        copy = normalize("NFKC", there.of(original)) if source == "ja" else there.of(original)
        if source == "ja" and _IN_MYRIADS.fullmatch(copy):
            copy = f"{_value(copy).normalize():,f}"
            written.append((here, copy.replace(",", SEPARATORS[target])))
        elif _FIGURES.fullmatch(copy):
            numbers = _AMOUNT if _MEASURE.search(copy) else _NUMBER
            written.append((here, numbers[source].sub(in_target_language, copy)))
    return edited(text, sorted(written, key=lambda item: item[0].pair))[0]
