"""Carry verified spans through a translation in slots, and write them in the target language."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from service.kept.kept_spans import KeptSpan
from service.kept.slots import MAX_SLOTS
from service.kept.unwritable import CanWrite
from service.numbers.comparison import Comparison
from service.numbers.number_forms import SIGNS, NumberForms, forms_of
from service.numbers.reworded import O_CLOCK
from service.numbers.verified_spans import DASHES, VerifiedSpan, narrow, verified_spans
from service.text.scripts import LETTER
from service.text.spans import Span

_SIGN = re.compile(f"[{SIGNS}￡￥]")
_JOINT = re.compile(f"[{DASHES}-]")
_CODE = re.compile(r"[A-Z]*\d+[A-Z][\dA-Z]*|[A-Z]+\d+")
"""A word of capitals and digits."""
_ENDING = re.compile(rf"[a-zß-öø-ÿа-яё]{{1,3}}(?!{LETTER})")
"""The ending of an ordinal number, right behind it."""


def carried_spans(text: str, compared: Comparison, source_language: str, target_language: str) -> Iterator[KeptSpan]:
    """Yield kept spans for the verified spans of a text, in order; a range is one. If there are more spans than slots,
    only lost spans are kept. A unit is carried if the first translation (`compared`) lacks it."""
    source, target = forms_of(source_language), forms_of(target_language)
    text = narrow(text)
    last: KeptSpan | None = None
    spans = compared.wanted
    if len(spans) > MAX_SLOTS:
        spans = sorted(compared.lost, key=lambda span: span.span.pair) or spans
    for span in spans:
        kept = _carried(text, span, source, target, span in compared.without_unit)
        if last is not None and _JOINT.fullmatch(text, last.span.end, kept.span.start):
            whole = Span(last.span.start, kept.span.end)
            kept = KeptSpan(whole, last.role, whole.of(text))
        elif last is not None:
            yield last
        last = kept
    if last is not None:
        yield last


def unwritable_amounts(
    text: str, can_write: CanWrite, source_language: str, target_language: str
) -> Iterator[KeptSpan]:
    """Yield kept spans for amounts of money with a word such as million, if a model cannot write their sign: a sign is
    kept with its number, and models write the word alone as another one."""
    if _SIGN.search(text) is None:
        return
    source, target, text = forms_of(source_language), forms_of(target_language), narrow(text)
    for span in verified_spans(text, source):
        if span.sign and span.times is not None and not can_write(span.sign):
            yield _carried(text, span, source, target, with_unit=False)


def _carried(text: str, span: VerifiedSpan, source: NumberForms, target: NumberForms, with_unit: bool) -> KeptSpan:
    if span.kind in ("name", "letter", "roman", "code"):
        return KeptSpan(span.span, "word", span.text)
    if span.kind in ("time", "date"):
        return KeptSpan(span.span, "number", _write_time(span, target))
    start = span.span.start
    while start and "A" <= text[start - 1] <= "Z":
        start -= 1
    code = _CODE.match(text, start)
    if code is not None and code.span() != span.span.pair:
        return KeptSpan(Span(*code.span()), "word", code.group())
    number = span.text if span.kind == "number" else f"{Decimal(min(span.parts[0])):,f}".replace(",", source.group)
    written, whole = target.write_number(number, source), span.whole or span.span
    names = sorted(source.units.get(span.unit, ())) if with_unit else []
    measure = target.write_with_unit(written, names[0]) if names else None
    if span.unit == "%":
        written = target.write_percentage(written)
    elif measure is not None:
        written = measure
    elif span.sign:
        compact = _write_compact(span, source, target)
        written = compact or target.write_amount(written, span.sign)
        whole = whole if compact or span.times is None else Span(whole.start, span.span.end)
    elif text.startswith(O_CLOCK, span.span.end):
        return KeptSpan(Span(span.span.start, span.span.end + len(O_CLOCK)), "number", f"{written}:00")
    else:
        ending = _ENDING.match(text, span.span.end) if not span.unit else None
        whole = Span(whole.start, ending.end() if ending else span.span.end)
    return KeptSpan(whole, "number", span.minus + written)


def _write_compact(span: VerifiedSpan, source: NumberForms, target: NumberForms) -> str | None:
    """Return an amount of millions and the like in the target language; None if it is no such amount."""
    parts = source.parts_of(span.text)
    if span.times is None or parts is None:
        return None
    groups, decimals = parts
    return target.write_compact_amount(Decimal(f"{''.join(groups)}.{decimals}") * span.times, span.sign)


def _write_time(span: VerifiedSpan, target: NumberForms) -> str:
    from babel.dates import format_date, format_skeleton

    if span.named is not None:
        return span.named.write(target.language) or span.text
    is_with_h = "h" in span.text and not target.has_hours_with_h
    if span.kind == "time" and (is_with_h or span.text[-1] in "時分秒"):
        hour, *rest = span.chunks
        return ":".join([hour, *(part.zfill(2) for part in rest or ["0"])])
    if span.text[-1] not in "月日":
        return span.text
    numbers = [*map(int, span.chunks)]
    try:
        if len(span.chunks) == 3:
            return format_date(date(*numbers), "long", target.locale)
        if "年" in span.text:
            return format_skeleton("yMMMM", date(numbers[0], numbers[1], 1), locale=target.locale)
        if "日" in span.text:
            return format_skeleton("MMMMd", date(2000, *numbers), locale=target.locale)
        return str(target.locale.months["stand-alone"]["wide"][numbers[0]]) if target.locale else span.text
    except (ValueError, KeyError):
        return span.text
