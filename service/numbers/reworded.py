"""Numbers of a source in forms that models know: 3rd as third, 3:30pm as 15:30, Mar 3 as March 3, 9h as 9 heures."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from service.numbers.named_dates import ENDING, month_names
from service.numbers.number_forms import HALF_DAY, SPACES, forms_of
from service.numbers.verified_spans import DASHES, ROMAN, roman_value
from service.text.spans import Replacement, Span, overlapping

HINT = re.compile(rf"\d[{SPACES}.]?[^\W\d_]|[^\W\d_]\.?[{SPACES}]\d|[IVX](?:e|er|ème)\b")
"""Every text in which something is reworded has this."""
O_CLOCK = " o'clock"
_WORDS = {
    "en": "first second third fourth fifth sixth seventh eighth ninth tenth",
    "fr": "première deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième",
}
_ORDINALS = {language: words.split() for language, words in _WORDS.items()}
"""From 11th on models know digits better."""
_ORDINAL = {
    "en": re.compile(rf"(?<![\w.,:/-])(\d{{1,2}}){ENDING}(?!\w|[ ]of[ ][A-Z])"),  # "the 4th of July" is known
    "fr": re.compile(
        rf"(?<![\w.,:/-])(\d{{1,2}}|[VX](?=e[ ](?:siècle|République))|(?=[IVX]{{2}}){ROMAN})"
        r"(?:re|ère|e|[eè]me)(?![\w/-])"
    ),
}
_HOUR = r"(?<![\w.,:/$€£])(0?\d|1[0-2])(?::([0-5]\d))?"
_STOP = r"""(?:\.(?![ ]*$|\s*[\r\n]|\s+["'“(]?[A-Z])|\.(?=\s+(?:[A-Z]{2,5}|[A-Z][a-z]+day)\b))?"""
"""A full stop that ends no sentence: one before a small letter, a zone (EST) or the name of a day."""
_HALF = rf"(?:[{SPACES}]?(?i:([ap])(?:m|\.[ ]?m))(?!\w|[ ]I\b){_STOP})"
_SHORT_HOUR = re.compile(rf"(?<![\w.,:/])(?<!\d-)(\d{{1,2}})[{SPACES}]?h(?![{SPACES}]?\d|[\w/])")
_JOINT = rf"([ ]?[{DASHES}-][ ]?|[ ](?:to|and|or|until|till)[ ])"
_TIMES = re.compile(rf"(?:{_HOUR}{_HALF}?{_JOINT})?{_HOUR}{_HALF}")
"""A time with the half of the day, or two: the first may lack its half."""
_BEFORE_TWO_TIMES = re.compile(r"\b(?:at|between|from)[ ]$")


def reworded(text: str, languages: tuple[str, str]) -> list[Replacement]:
    """Return spans of a text, in order, each with what models read in its place. `languages` are those of the source
    and of the translation."""
    source = languages[0]
    names, pattern = _months(source)
    dates = [*pattern.finditer(text)] if names else []
    replacements = [*_dates(dates, names), *_times(text, *languages, [Span(*match.span()) for match in dates])]
    replacements += (*_ordinals(text, source), *_hours(text, source))
    first, spans = list[Replacement](), list[Span]()
    for replacement in sorted(replacements, key=lambda item: item[0].pair):
        if not spans or spans[-1].end <= replacement[0].start:
            first.append(replacement)
            spans.append(replacement[0])
    return first


def _dates(dates: Iterable[re.Match[str]], names: Mapping[str, str]) -> Iterator[Replacement]:
    """Yield the endings of days, which are digits then, and short names of months."""
    for match in dates:
        for day, ending in (("day", "ending"), ("day_before", "ending_before")):
            if match[ending]:
                yield Span(match.start(day), match.end(ending)), match[day]
        for month in ("month", "month_behind"):
            if match[month] and names[match[month]] != match[month]:
                stop = match.end(month) < len(match.string) and match.string[match.end(month)] == "."
                yield Span(match.start(month), match.end(month) + stop), names[match[month]]


@lru_cache(maxsize=100)
def _months(language: str) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the names of months by themselves and by their abbreviations, and a pattern: a month before its day or its
    year, or between them, or behind an English ordinal number."""
    months = locale.months if (locale := forms_of(language).locale) else {}
    whole = {name for use in months.values() for name in use["wide"].values()}
    numbers = month_names(language)
    names = {name: name if name in whole else months["format"]["wide"][numbers[name]] for name in numbers}
    name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    day, end = rf"(?P<day>\d{{1,2}})(?P<ending>{ENDING})?", rf"(?![\w:%/{DASHES}-]|[.,]\d)"
    day_before = rf"(?P<day_before>\d{{1,2}})(?:(?P<ending_before>{ENDING})|\.)?"
    return names, re.compile(
        rf"(?<![\w.-])(?P<month>{name})\.?[ ](?:\d{{4}}|{day}){end}"
        rf"|(?<![\w.-]){day_before}[ ](?P<month_behind>{name})(?(ending_before)\b|(?=\.?[ ]\d{{4}}(?!\w)))"
    )


def _ordinals(text: str, language: str) -> Iterator[Replacement]:
    for match in _ORDINAL[language].finditer(text) if language in _ORDINAL else ():
        is_roman = not match[1].isdecimal()
        number = roman_value(match[1]) if is_roman else int(match[1])
        if 0 < number <= len(_ORDINALS[language]):
            yield Span(*match.span()), _ORDINALS[language][number - 1]
        elif is_roman:
            yield Span(*match.span()), f"{number}e"


def _times(text: str, source: str, target: str, dates: Sequence[Span]) -> Iterator[Replacement]:
    """Yield the times of an English text with the half of the day, if the translation's language counts 24 hours. The
    day of a date is no hour."""
    if source != "en" or not forms_of(target).has_24_hours:
        return
    for match in _TIMES.finditer(text):
        first, minutes, first_half, _, last, last_minutes, half = match.groups()
        if _meets(dates, Span(*match.span(5))):
            continue
        end, are_two = _hour(last, half), _are_two(match, dates)
        if are_two:
            begin = _hour(first, first_half or half)
            if not first_half and begin > end:  # 9 to 5 pm
                begin = (begin - HALF_DAY) % 24
            yield Span(match.start(1), match.start(4)), f"{begin}:{minutes or '00'}"
        is_full_hour = last_minutes is None and not are_two and end > 0
        written = f"{end}{O_CLOCK}" if is_full_hour else f"{end}:{last_minutes or '00'}"
        yield Span(match.start(5), match.end()), written


def _are_two(match: re.Match[str], dates: Sequence[Span]) -> bool:
    """Return whether the first number is a time too, but not in "June 12 - 7 pm" and "pages 3 and 5 pm"."""
    first, _, half, joint, *_ = match.groups()
    if first is None or _meets(dates, Span(*match.span(1))):
        return False
    may_be_other = half is None and joint in (" and ", " or ")
    return not may_be_other or _BEFORE_TWO_TIMES.search(match.string, 0, match.start()) is not None


def _meets(spans: Sequence[Span], span: Span) -> bool:
    return len({*overlapping(spans, span)}) == 2


def _hours(text: str, language: str) -> Iterator[Replacement]:
    """Yield full hours with the short sign, 9h, each with the word."""
    forms = forms_of(language)
    for match in _SHORT_HOUR.finditer(text) if forms.locale and forms.has_hours_with_h else ():
        yield Span(*match.span()), forms.write_hours(int(match[1])).replace("\u00a0", " ")


def _hour(hour: str, half: str) -> int:
    return int(hour) % HALF_DAY + HALF_DAY * (half in "pP")
