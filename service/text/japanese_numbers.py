"""Numbers in Japanese text, which counts in ten thousands and has digits as wide as kanji: 1億2000万 is 120,000,000."""

import re
from decimal import Decimal

from service.text.scripts import LETTER
from service.text.spans import Span

_WIDE = {
    **{code: code - 0xFEE0 for first, last in ("０９", "ＡＺ", "ａｚ") for code in range(ord(first), ord(last) + 1)},
    **str.maketrans("￥％", "¥%"),
}
_TO_WIDE = {narrow: wide for wide, narrow in _WIDE.items() if isinstance(narrow, int)}
_MAYBE_WIDE = re.compile(r"[‐―−ー\uff00-\uffef]")
"""What has none of them is not searched further."""
_WIDE_SIGN = re.compile(r"(?<=\d)[，．／：－‐ー―（）](?=\d)|（(?=\d{2,5}）\d)|(?<=[０-９])−(?=[０-９])")
_SIGNS = str.maketrans("，．／：－‐ー―（）−", ",./:----()-")

KANJI_DIGITS = "〇一二三四五六七八九"
_TENS = {"千": Decimal(1000), "百": Decimal(100), "十": Decimal(10)}
_MYRIADS = {"兆": Decimal(10**12), "億": Decimal(10**8), "万": Decimal(10**4)}
_IN_DIGITS = r"(?>\d{1,3}(?:,\d{3}){1,3}(?![,\d])|\d{1,12}(?!\d))(?:\.\d{1,8})?"
"""So few that Decimal is exact."""
_BELOW = rf"(?>(?:{_IN_DIGITS}[千百十])+\d*|{_IN_DIGITS}|[{KANJI_DIGITS}千百十]+)"
"""A number below ten thousand: 2500, 2千5百, 二千五百."""
_RANGE = rf"(?:(?P<least>{_BELOW})[〜～~、–-](?={_BELOW}[兆億万](?!{_BELOW})))?"
"""The first of "5〜10万", which is in ten thousands too."""
_NUMBER = re.compile(
    rf"""
    (?<!{LETTER})
    (?<![\d.,数何幾憾惑止念{KANJI_DIGITS}千百十兆億万])  # 数百万 is millions
    (?!〇|四万(?:十|温泉)|五万と|八百万の神|百万(?:遍|長者))
    {_RANGE}(?P<number>(?>(?:{_BELOW}[兆億万])+(?:{_BELOW})?))(?![千百十兆億万]|[.,]?\d)""",
    re.VERBOSE,
)
_SHARED = re.compile(rf"(?<=[\d{KANJI_DIGITS}])[千百十]*[兆億万]$")
"""Of 二、三千万, which is twenty to thirty million."""
_PIECE = re.compile(rf"(?P<below>{_BELOW})(?P<myriad>[兆億万]?)")
_TERM = re.compile(rf"(?P<digits>{_IN_DIGITS}|[{KANJI_DIGITS}]*)(?P<tens>[千百十]?)")


def half_width(text: str) -> str:
    """The text, as long as before, with its wide digits, letters and signs in numbers as other languages have them."""
    if not _MAYBE_WIDE.search(text):
        return text
    return _WIDE_SIGN.sub(lambda sign: sign.group().translate(_SIGNS), text).translate(_WIDE)


def numbers_in_myriads(text: str) -> list[Span]:
    """Those with 万, 億 or 兆 in a text in half width, in order."""
    return [Span(*match.span()) for match in _NUMBER.finditer(text)]


def in_digits(text: str) -> str:
    """A text in half width with its numbers in ten thousands written in digits, in groups of three as in English."""
    return _NUMBER.sub(_written, text)


def in_kanji(number: str) -> tuple[str, str, str]:
    """A number below ten thousand in wide digits and in kanji: 48 as ４８, 四八 and 四十八."""
    digits = [KANJI_DIGITS[int(digit)] for digit in number]
    places = zip(digits, ("千", "百", "十", "")[-len(digits) :], strict=True)
    counted = [f"{digit}{place}" for digit, place in places if digit != KANJI_DIGITS[0]]
    return number.translate(_TO_WIDE), "".join(digits), re.sub("一(?=[十百千])", "", "".join(counted))


def _written(number: re.Match[str]) -> str:
    value, least = _value(number["number"]), number["least"]
    if least is None:
        return f"{value:,f}"
    shared = _SHARED.search(number["number"])
    power = shared.group() if shared and least[-1] not in _TENS else number["number"][-1]
    alone, in_myriads = _value(least), _value(least + power)
    return f"{in_myriads if in_myriads < value else alone:,f}–{value:,f}"  # 8000〜1万 is of 8000


def _value(number: str) -> Decimal:
    pieces = _PIECE.finditer(number)
    value = sum((_below(piece["below"]) * _MYRIADS.get(piece["myriad"], Decimal(1)) for piece in pieces), Decimal())
    return value.normalize()


def _below(number: str) -> Decimal:
    """Of a number below ten thousand."""
    value = Decimal()
    for term in _TERM.finditer(number):
        if term.group():
            value += _digits(term["digits"]) * _TENS.get(term["tens"], Decimal(1))
    return value


def _digits(digits: str) -> Decimal:
    """Of none, as before 十, one."""
    plain = (str(KANJI_DIGITS.find(digit)) if digit in KANJI_DIGITS else digit for digit in digits.replace(",", ""))
    return Decimal("".join(plain) or 1)
