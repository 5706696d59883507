"""Read numbers in digits and in kanji."""

import re
import unicodedata
from decimal import Decimal

from service.numbers.number_forms import SPACES

Values = frozenset[str]
"""Possible meanings of digits, in plain digits: 1.500 is 1.500 or 1500."""
KANJI = "〇一二三四五六七八九十百千万億兆"
_PART = re.compile(r"\d[\d,]*(?:\.\d+)?|.")
_MYRIAD = 10_000


def plain(value: Decimal) -> str:
    """Return a number in digits, without zeros behind its decimals."""
    return format(value.normalize(), "f")


def readings(written: str) -> list[Values]:
    """Return the number that digits with separators mean, or several numbers if it is none, as in 8.8.1995."""
    groups, separators = re.split(r"\D", written), re.findall(r"\D", written)
    if not separators:
        return [frozenset({str(Decimal(written))})]  # of any length
    *first, last = separators
    values = set()
    are_groups = len(groups[0]) <= 3 and all(len(group) in (2, 3) for group in groups[1:-1])
    if are_groups and len(groups[-1]) == 3 and len({*separators}) == 1 and groups[0] != "0":
        values.add("".join(groups))
    if last not in SPACES and (not first or (are_groups and {*first} == {first[0]} != {last})):
        values.add(f"{int(''.join(groups[:-1]))}.{groups[-1]}")
    return [frozenset(values)] if values else [frozenset({str(int(group))}) for group in groups]


def numeral_value(numeral: str) -> Decimal:
    """Return the number that kanji mean, with digits among them: 三百, 125万, 1億2,000万."""
    total = section = Decimal(0)
    digits: Decimal | None = None
    for part in _PART.findall(numeral):
        if part[0].isdecimal():
            digits = Decimal(part.replace(",", ""))
        elif (value := int(unicodedata.numeric(part, 0))) < 10:
            digits = (digits or Decimal(0)) * 10 + value
        elif value < _MYRIAD:
            section, digits = section + (1 if digits is None else digits) * value, None
        else:
            total, section, digits = total + (section + (digits or 0) or 1) * value, Decimal(0), None
    return total + section + (digits or 0)
