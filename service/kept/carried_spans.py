"""Carry verified spans through a translation: what a slot stands for, and how it is written in the target language."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from service.kept.kept_spans import KeptSpan
from service.kept.slots import MAX_SLOTS
from service.numbers.comparison import Comparison
from service.numbers.number_forms import NumberForms, forms_of
from service.numbers.verified_spans import DASHES, VerifiedSpan, narrow
from service.text.scripts import LETTER
from service.text.spans import Span

_JOINT = re.compile(f"[{DASHES}-]")
_CODE = re.compile(r"[A-Z]*\d+[A-Z][\dA-Z]*|[A-Z]+\d+")
"""A word of capitals and digits."""
_ENDING = re.compile(rf"[a-zß-öø-ÿа-яё]{{1,3}}(?!{LETTER})")
"""The ending of an ordinal number, right behind it."""


def carried_spans(text: str, compared: Comparison, source_language: str, target_language: str) -> Iterator[KeptSpan]:
    """Yield kept spans for the verified spans of a text, in order; a range is one. If there are more spans than
    slots, only those that were lost are kept.

    Args:
        compared: the text compared with its first translation. A unit is carried if that lacks it.
    """
    source, target = forms_of(source_language), forms_of(target_language)
    text = narrow(text)
    last: KeptSpan | None = None
    spans = compared.wanted
    if len(spans) > MAX_SLOTS:
        spans = sorted(compared.lost, key=lambda one: one.span.pair) or spans
    for one in spans:
        kept = _carried(text, one, source, target, one in compared.without_unit)
        if last is not None and _JOINT.fullmatch(text, last.span.end, kept.span.start):
            whole = Span(last.span.start, kept.span.end)
            kept = KeptSpan(whole, last.role, whole.of(text))
        elif last is not None:
            yield last
        last = kept
    if last is not None:
        yield last


def _carried(text: str, one: VerifiedSpan, source: NumberForms, target: NumberForms, with_unit: bool) -> KeptSpan:
    if one.kind in ("name", "letter", "roman", "code"):
        return KeptSpan(one.span, "word", one.text)
    if one.kind in ("time", "date"):
        return KeptSpan(one.span, "number", _write_time(one, target))
    start = one.span.start
    while start and "A" <= text[start - 1] <= "Z":
        start -= 1
    code = _CODE.match(text, start)
    if code is not None and code.span() != one.span.pair:
        return KeptSpan(Span(*code.span()), "word", code.group())
    number = one.text if one.kind == "number" else f"{Decimal(min(one.parts[0])):,f}".replace(",", source.group)
    written, whole = target.write_number(number, source), one.whole or one.span
    names = sorted(source.units.get(one.unit, ())) if with_unit else []
    measure = target.write_with_unit(written, names[0]) if names else None
    if one.unit == "%":
        written = target.write_percentage(written)
    elif measure is not None:
        written = measure
    elif one.sign:
        compact = _write_compact(one, source, target)
        written = compact or target.write_amount(written, one.sign)
        whole = whole if compact or one.times is None else Span(whole.start, one.span.end)
    else:
        ending = _ENDING.match(text, one.span.end) if not one.unit else None
        whole = Span(whole.start, ending.end() if ending else one.span.end)
    return KeptSpan(whole, "number", one.minus + written)


def _write_compact(one: VerifiedSpan, source: NumberForms, target: NumberForms) -> str | None:
    """Return an amount of millions and the like in the target language; None if it is no such amount."""
    parts = source.parts_of(one.text)
    if one.times is None or parts is None:
        return None
    groups, decimals = parts
    return target.write_compact_amount(Decimal(f"{''.join(groups)}.{decimals}") * one.times, one.sign)


def _write_time(one: VerifiedSpan, target: NumberForms) -> str:
    """Return a Japanese date or time in the target language."""
    from babel.dates import format_date, format_skeleton

    if one.kind == "time" and one.text[-1] in "時分秒":
        hour, *rest = one.chunks
        return ":".join([hour, *(part.zfill(2) for part in rest or ["0"])])
    if one.text[-1] not in "月日":
        return one.text
    numbers = [*map(int, one.chunks)]
    try:
        if len(one.chunks) == 3:
            return format_date(date(*numbers), "long", target.locale)
        if "年" in one.text:
            return format_skeleton("yMMMM", date(numbers[0], numbers[1], 1), locale=target.locale)
        if "日" in one.text:
            return format_skeleton("MMMMd", date(2000, *numbers), locale=target.locale)
        return str(target.locale.months["stand-alone"]["wide"][numbers[0]]) if target.locale else one.text
    except (ValueError, KeyError):
        return one.text
