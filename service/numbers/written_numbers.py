"""Write numbers of a translation with the separators of its language, and no-break spaces where the source has them.
English ordinal numbers get their endings: models write 3th, as they write 4th."""

import re
from collections.abc import Iterable, Sequence

from service.numbers.number_forms import SIGNS, SPACES, NumberForms, forms_of
from service.text.spans import Span, overlapping

NO_BREAK = re.compile(r"[\u00a0\u202f]")
HINT = re.compile(rf"{NO_BREAK.pattern}|\d[.,]\d|(?:\d[.-]?[ ]?|[IVX](?=e|ème))[^\W\d_]")
"""Every source whose translation may change has this."""
_NUMBER = re.compile(r"(?<![\d.,:/-])\d{1,3}(?:(?P<mark>[.,])\d{3})+(?:[.,]\d+)?(?![\d:/-]|[.,]\d)")
_GROUPS = rf"(?:\d{{1,3}}(?:[{SPACES}]\d{{3}}){{1,6}}|\d+)"
_AMOUNT = re.compile(
    rf"(?:(?<=[{SIGNS}])|(?<=[{SIGNS}][{SPACES}])){_GROUPS}[.,]\d\d(?![\d:/-]|[.,]\d)"
    rf"|(?<![\d.,:/])(?<![^\W\d][-\u2013]){_GROUPS}(?:[.,]\d\d(?=[{SPACES}]?[{SIGNS}])"
    rf"|[.,]\d+(?=(?:[-\u2013]\d+[.,]\d+)?[{SPACES}]?[%°]))"
)
"""An amount of money with cents, or a percentage or degrees with decimals."""
FIXED = re.compile(r"(?<!°)[^\W\d_]")
"""Every span with a number that is no amount, such as a code, has this."""
_ORDINAL = re.compile(r"(?<![\w.,])(\d+)(st|nd|rd|th)(?!\w)")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_BOUND = re.compile(r"([^\W_]+)?([\u00a0\u202f])([^\W_]+)?")


def write_numbers(source: str, target: str, languages: tuple[str, str], kept: Sequence[Span]) -> str:
    """Return a translation of the same length. `languages` are those of the source and of the translation, and `kept`
    are spans of the translation that stay as they are, in order."""
    before, after = map(forms_of, languages)
    numbers = (match.group() for pattern in (_NUMBER, _AMOUNT) for match in pattern.finditer(source))
    known = {"".join(filter(str.isdigit, number)): number for number in numbers if before.parts_of(number) is not None}
    characters = [*target]

    def write(span: Span, written: str) -> None:
        if len(written) == span.end - span.start and len(set(overlapping(kept, span))) == 1:
            characters[span.start : span.end] = written

    for match in [*_NUMBER.finditer(target), *_AMOUNT.finditer(target)] if known else []:
        number = known.get("".join(filter(str.isdigit, match.group())))
        if number is not None and not _is_written(match.group(), after):
            write(Span(*match.span()), after.write_number(number, before))
    for match in _ORDINAL.finditer(target) if languages[1] == "en" else ():
        write(Span(*match.span(2)), _ending_of(int(match[1][-2:])))
    for match in _BOUND.finditer(source) if NO_BREAK.search(source) else ():
        for place in _plain(match, target):
            write(Span(place, place + 1), match[2])
    return "".join(characters)


def _ending_of(number: int) -> str:
    return "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, "th")


def _is_written(number: str, forms: NumberForms) -> bool:
    """Return whether a language writes a number so, and its mark cannot be one between thousands."""
    parts = forms.parts_of(number)
    return parts is not None and (len(parts[0]) > 1 or len(parts[1]) != 3)


def _plain(bound: re.Match[str], target: str) -> Iterable[int]:
    """Yield the places of ordinary spaces in a translation where the source has a no-break space: on the same side of
    the same number, or else between the same word and another word."""
    left, right = bound[1] or "", bound[3] or ""
    if left and (left.isdecimal() or not right.isdecimal()):
        yield from (match.end() for match in re.finditer(rf"(?<![^\W_]){re.escape(left)}(?= [^\W\d_])", target))
    elif right:
        yield from (match.start() for match in re.finditer(rf"(?<=[^\W\d_]) (?={re.escape(right)}(?![^\W_]))", target))
