"""Numbers in Japanese text, which counts in ten thousands and has digits as wide as kanji: 1億2000万 is 120,000,000."""

import re
from collections.abc import Iterator
from decimal import Decimal

from service.markup.scripts import LETTER
from service.sentences import Span

_WIDE = {
    **{code: code - 0xFEE0 for first, last in ("０９", "ＡＺ", "ａｚ") for code in range(ord(first), ord(last) + 1)},
    **str.maketrans("￥％", "¥%"),
}
_WIDE_SIGN = re.compile(r"(?<=\d)[，．／：－‐ー―（）](?=\d)|（(?=\d{2,5}）\d)|(?<=[０-９])−(?=[０-９])")
_SIGNS = str.maketrans("，．／：－‐ー―（）−", ",./:----()-")

_KANJI_DIGITS = "〇一二三四五六七八九"
_TENS = {"千": Decimal(1000), "百": Decimal(100), "十": Decimal(10)}
_MYRIADS = {"兆": Decimal(10**12), "億": Decimal(10**8), "万": Decimal(10**4)}
_IN_DIGITS = r"(?>\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
_BELOW = rf"(?>(?:{_IN_DIGITS}[千百十])+\d*|{_IN_DIGITS}|[{_KANJI_DIGITS}千百十]+)"
"""A number below ten thousand: 2500, 2千5百, 二千五百."""
_RANGE = rf"(?:(?P<least>{_BELOW})(?P<to>[〜～~、–-])(?={_BELOW}[兆億万](?!{_BELOW})))?"
"""The first of "5〜10万", which is in ten thousands too."""
_NUMBER = re.compile(
    rf"""
    (?<!{LETTER})
    (?<![\d.,数何幾憾惑止念{_KANJI_DIGITS}千百十兆億万])  # 数百万 is millions
    (?!〇|四万(?:十|温泉)|五万と|八百万の神|百万(?:遍|長者))
    {_RANGE}(?P<number>(?>(?:{_BELOW}[兆億万])+(?:{_BELOW})?))(?![千百十兆億万]|[.,]?\d)""",
    re.VERBOSE,
)
_SHARED = re.compile(rf"(?<=[\d{_KANJI_DIGITS}])[千百十]*[兆億万]$")
"""Of 二、三千万, which is twenty to thirty million."""
_PIECE = re.compile(rf"(?P<below>{_BELOW})(?P<myriad>[兆億万]?)")
_TERM = re.compile(rf"(?P<digits>{_IN_DIGITS}|[{_KANJI_DIGITS}]*)(?P<tens>[千百十]?)")


def half_width(text: str) -> str:
    """The text, as long as before, with its wide digits, letters and signs in numbers as other languages have them."""
    if text.isascii():
        return text
    return _WIDE_SIGN.sub(lambda sign: sign.group().translate(_SIGNS), text).translate(_WIDE)


def numbers_in_myriads(text: str) -> Iterator[Span]:
    """Those with 万, 億 or 兆, in order."""
    return (Span(*match.span()) for match in _NUMBER.finditer(half_width(text)))


def in_digits(text: str) -> str:
    """The text, in half width, with numbers in ten thousands written in digits, in groups of three as in English."""
    return _NUMBER.sub(_written, half_width(text))


def _written(number: re.Match[str]) -> str:
    value = _value(number["number"])
    if number["least"] is None:
        return value
    shared = _SHARED.search(number["number"])
    least = number["least"] + (shared.group() if shared and number["least"][-1] not in _TENS else number["number"][-1])
    alone, in_myriads = _value(number["least"]), _value(least)
    return f"{in_myriads if _as_number(in_myriads) < _as_number(value) else alone}–{value}"  # 8000〜1万


def _as_number(value: str) -> Decimal:
    return Decimal(value.replace(",", ""))


def _value(number: str) -> str:
    pieces = _PIECE.finditer(number)
    value = sum((_below(piece["below"]) * _MYRIADS.get(piece["myriad"], Decimal(1)) for piece in pieces), Decimal())
    return f"{value.normalize():,f}"


def _below(number: str) -> Decimal:
    terms = (term for term in _TERM.finditer(number) if term.group())
    return sum(
        (_digits(term["digits"], term["tens"]) * _TENS.get(term["tens"], Decimal(1)) for term in terms), Decimal()
    )


def _digits(digits: str, tens: str) -> Decimal:
    if not digits:
        return Decimal(1 if tens else 0)
    return Decimal("".join(str(_KANJI_DIGITS.find(d)) if d in _KANJI_DIGITS else d for d in digits.replace(",", "")))
