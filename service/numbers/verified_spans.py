"""Find spans that a translation must have in some form, numbers above all.

A number may be written in any form of its language: with other separators, as 125万 or 1.25 million, with the name of a
month. comparison.py compares two texts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from service.numbers.named_dates import NamedDate, named_dates
from service.numbers.number_forms import APOSTROPHES, SIGNS, SPACES, NumberForms, currencies
from service.numbers.numerals import KANJI, Values, numeral_value, plain, readings
from service.text.spans import Span, overlapping

Kind = Literal["name", "letter", "roman", "code", "time", "date", "numeral", "number"]
DASHES = "\u2010\u2011\u2012\u2013"
_DASH = re.compile(f"[{DASHES}]")
_LETTER_ALONE = (
    r"(?<=[^\W\d_][ ])(?:[B-HJ-Z]|(?<=[a-zß-öø-ÿ][ ])A(?![ ][A-Z]))"
    rf"(?![\w'’&{DASHES}-]|\.\w|\.[ ][A-Z]|[ ][A-Z](?![\w'’]))"
)
"""A capital alone behind a word, as in "room D", but neither an article nor "I", nor an initial."""
ROMAN = "X{0,3}(?:IX|IV|V?I{0,3})"
"""A Roman number up to 39, or nothing."""
_ROMAN = rf"(?<![\w'’.-])(?:(?=[IVX]{{2}}){ROMAN}(?:e|er|ème)?|(?=[ivx]{{2}}){ROMAN.lower()})(?![\w'’-])"
HINT = re.compile(rf"(?=[\dA-Zivx]|[a-z][A-Z])(?:\d|[a-z][A-Z]|{_LETTER_ALONE}|{_ROMAN})")
"""Every text with a verified span has this. The first group rules out most characters at once."""
_LATIN = r"A-Za-zÀ-ɏ0-9_"
_NO_LETTER_BEFORE, _NO_LETTER_BEHIND = f"(?<![{_LATIN}])", f"(?![{_LATIN}])"
_TOKEN = re.compile(
    rf"""
    (?P<name>{_NO_LETTER_BEFORE}[A-Za-z]*[a-z][A-Z](?!nnen\b)[A-Za-z0-9]*{_NO_LETTER_BEHIND})
    | (?P<roman>{_ROMAN}) | (?P<letter>{_LETTER_ALONE})
    | (?P<code>{_NO_LETTER_BEFORE}(?<!-)[A-Z]{{1,4}}[-{DASHES}]?\d+{_NO_LETTER_BEHIND}
        | {_NO_LETTER_BEFORE}(?:\d{{1,2}}[AC-FHIJLN-SU-Zabdf]|[abdf]\d{{1,2}}){_NO_LETTER_BEHIND}
        | (?<![\d.,/-])\d{{1,3}}[ ]\d/\d{{1,2}}(?![\d/]))
    | (?P<time>(?<![\d:])\d{{1,2}}(?::\d\d){{1,2}}(?![\d:]) | (?<!\d)\d{{1,2}}[ ]?h[ ]?\d\d\b
        | (?<!\d)\d{{1,2}}時(?!間)(?:\d{{1,2}}分)?(?:\d{{1,2}}秒)?)
    | (?P<date>(?<!\d)(?:\d{{2,4}}年)?\d{{1,2}}月(?:\d{{1,2}}日)?
        | (?<![\d./-])\d{{1,4}}(?P<mark>[./-])\d{{1,2}}(?P=mark)\d{{2,4}}(?![\d/-]|\.\d))
    | (?P<numeral>(?:\d[\d,]{{0,20}}(?:\.\d{{1,9}})?)?[{KANJI}](?:[\d,]{{0,20}}[{KANJI}])*
        (?:(?<=[万億兆])\d(?:[\d,]{{0,20}}\d)?(?![\d.]))?)
    | (?P<number>\d+(?:[.,{APOSTROPHES}\u066b\u066c]\d+
        |[{SPACES}](?:\d{{3}}(?!\d)|\d{{2}}(?:\d\d)?(?!\d|[.,:/{DASHES}-]\d)))*)""",
    re.VERBOSE,
)
_FULL_WIDTH = {0xFF01 + i: 0x21 + i for i in range(94)} | {0xFFE1: "£", 0xFFE5: "¥"}
_WORD_BEHIND = re.compile(rf"[{SPACES}-]?([^\W\d_]+)")
_UNIT_BEHIND = re.compile(rf"[{SPACES}]?((?:[^\W\d_]+/)?[^\W\d_]+(?:[²³]|[23](?!\w))?|[%°′″])")
EXPONENTS = str.maketrans("23", "²³")
_SIGN_BEFORE, _SIGN_BEHIND = re.compile(rf"([{SIGNS}])[{SPACES}]?$"), re.compile(rf"\.?[{SPACES}]?([{SIGNS}])")
_YEAR = re.compile(r"\d{4}")
_MINUS = re.compile(rf"(?<![{_LATIN}а-яё.,)%°/:-])[-−–](?=[{SIGNS}]?\d)")
_JOINED, _JOINS = re.compile(rf"\d[:/{DASHES}-]$"), re.compile(rf"[:/{DASHES}-]\d")
_AMOUNT = re.compile(
    rf"\W{{0,3}}(?P<before>[A-Z]{{3}})?[{SPACES}{SIGNS}+-]{{0,4}}\d[\d.,{APOSTROPHES}{SPACES}]{{0,30}}"
    rf"[{SIGNS}]?[{SPACES}]?(?P<behind>[A-Z]{{3}})?\W{{0,3}}"
)
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}
MAX_WORD = 12
"""Largest number that translations often write as a word."""


@dataclass(frozen=True)
class VerifiedSpan:
    """A span of a text, and what it means.

    Attributes:
        parts: its numbers, in order.
        sign: its sign of money.
        unit: the sign of its unit, such as km or %.
        whole: the span with its sign of money and a word such as million before that, or with its unit.
        times: the factor of a word such as million.
        is_joined: whether a sign joins it to another number, as in 3:1.
        minus: the sign before a negative number.
        named: the day that it is, with the name of its month.
    """

    span: Span
    kind: Kind
    text: str
    parts: tuple[Values, ...] = ()
    sign: str = ""
    unit: str = ""
    whole: Span | None = None
    times: Decimal | None = None
    is_joined: bool = False
    minus: str = ""
    named: NamedDate | None = None

    @property
    def is_word(self) -> bool:
        """Whether it is a number in kanji alone, which may be a part of a word."""
        return self.kind == "numeral" and not self.text[0].isdecimal()

    @property
    def may_be_word(self) -> bool:
        """Whether a translation may write it as a word, as it does with small numbers."""
        is_small = self.kind == "number" and self.text.isdecimal() and int(self.text) <= MAX_WORD
        return is_small and not (self.sign or self.unit or self.is_joined or self.minus)

    @cached_property
    def chunks(self) -> list[str]:
        """The digits between its separators."""
        return re.findall(r"\d+", self.text)

    @property
    def padded(self) -> list[str]:
        """Its numbers that begin with a zero, as in room 007, but not the number of a day or an hour."""
        are_parts = len(self.parts) == len(self.chunks)
        shortest = 2 if len(self.parts) > 1 or self.is_joined else 3
        return [chunk for chunk in self.chunks if len(chunk) >= shortest and chunk[0] == "0"] if are_parts else []


def is_amount(text: str) -> bool:
    """Return whether a text is an amount of money with the code of a currency, as in $304.75 USD, and nothing else."""
    match = _AMOUNT.fullmatch(text)
    return match is not None and {*filter(None, match.group("before", "behind"))} <= currencies()


def with_hyphens(text: str) -> str:
    """Return a text with a hyphen in place of each dash."""
    return _DASH.sub("-", text)


def narrow(text: str) -> str:
    """Return a text with usual characters in place of full-width ones. Its length stays the same."""
    return text.translate(_FULL_WIDTH)


def verified_spans(text: str, forms: NumberForms) -> Iterator[VerifiedSpan]:
    """Yield the verified spans of a narrow text in order."""
    if HINT.search(text) is None and not forms.is_unspaced:
        return
    end = 0
    for match in _TOKEN.finditer(text):
        if match.start() < end:  # the 3 of 30 m3
            continue
        kind: Kind = match.lastgroup if match.lastgroup != "mark" else "date"  # type: ignore[assignment]
        span, written = Span(*match.span()), match.group()
        if kind in ("number", "numeral"):
            number = _with_minus(text, _number(text, span, kind, forms))
            end = number.whole.end if number.unit and number.whole else 0
            yield number
        elif kind == "roman":
            yield VerifiedSpan(span, kind, written, (Values({str(roman_value(written))}),))
        else:
            first, *rest = re.findall(r"\d+", written) or [""]
            padded = [Values({digits.zfill(2)}) if kind == "time" else readings(digits)[0] for digits in rest]
            yield VerifiedSpan(span, kind, written, (*readings(first), *padded) if first else ())


def with_days(spans: Iterable[VerifiedSpan], text: str, forms: NumberForms) -> list[VerifiedSpan]:
    """Return verified spans of a text with its days that have the name of their month, in place of their numbers."""
    all_spans = [*spans]
    for date in named_dates(text, forms.language) if all_spans else ():
        first, last = overlapping([span.span for span in all_spans], date.span)
        if date.span.start <= all_spans[first].span.start and all_spans[last - 1].span.end <= date.span.end:
            parts = tuple(Values({str(number)}) for number in (date.month, date.day, date.year) if number is not None)
            all_spans[first:last] = [VerifiedSpan(date.span, "date", date.span.of(text), parts, named=date)]
    return all_spans


def roman_value(numeral: str) -> int:
    values = [_ROMAN_DIGITS[digit] for digit in numeral.rstrip("eèmr").upper()]
    return sum(-value if value < max(values[i:]) else value for i, value in enumerate(values))


def _with_minus(text: str, number: VerifiedSpan) -> VerifiedSpan:
    whole = number.whole or number.span
    minus = _MINUS.match(text, whole.start - 1) if whole.start else None
    return replace(number, minus=minus.group(), whole=Span(minus.start(), whole.end)) if minus else number


def _number(text: str, span: Span, kind: Kind, forms: NumberForms) -> VerifiedSpan:
    written = span.of(text)
    parts = [frozenset({plain(numeral_value(written))})] if kind == "numeral" else readings(written)
    word, unit = _WORD_BEHIND.match(text, span.end), _UNIT_BEHIND.match(text, span.end)
    times = forms.times(word[1]) if word else None
    if times is not None:
        parts[-1] |= {plain(Decimal(value) * times) for value in parts[-1]}
    before = _SIGN_BEFORE.search(text, max(0, span.start - 2), span.start)
    end = word.end() if word and times is not None else span.end
    behind = _SIGN_BEHIND.match(text, end) if not before else None
    if (sign := before or behind) is not None:
        whole = Span(before.start() if before else span.start, behind.end() if behind else end)
        return VerifiedSpan(span, kind, written, tuple(parts), sign[1], "", whole, times)
    sign_of_unit = unit[1].translate(EXPONENTS) if unit else ""
    has_unit = times is None and (sign_of_unit in forms.units or sign_of_unit == "%")
    if unit is None or not has_unit or (len(unit[1]) == 1 and _YEAR.fullmatch(written)):  # a year in Russian
        is_joined = _JOINED.search(text, max(0, span.start - 2), span.start) or _JOINS.match(text, span.end)
        return VerifiedSpan(span, kind, written, tuple(parts), times=times, is_joined=is_joined is not None)
    return VerifiedSpan(span, kind, written, tuple(parts), "", sign_of_unit, Span(span.start, unit.end()))
