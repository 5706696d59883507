"""Write numbers of a translation with the separators of its language, and spaces that do not break as the source has
them. The length of the translation stays the same."""

import re
from collections.abc import Iterable, Sequence

from service.numbers.number_forms import SIGNS, SPACES, NumberForms, forms_of
from service.text.spans import Span, overlapping

HINT = re.compile(r"[\u00a0\u202f]|\d[.,]\d")
"""Every source whose translation may change has this."""
_NUMBER = re.compile(r"(?<![\d.,:/-])\d{1,3}(?:(?P<mark>[.,])\d{3})+(?:[.,]\d+)?(?![\d:/-]|[.,]\d)")
_AMOUNT = re.compile(
    rf"(?:(?<=[{SIGNS}])|(?<=[{SIGNS}][{SPACES}]))\d+[.,]\d\d(?![\d:/-]|[.,]\d)"
    rf"|(?<![\d.,:/-])\d+[.,]\d\d(?=[{SPACES}]?[{SIGNS}])"
)
_BOUND = re.compile(r"([^\W_]+)?([\u00a0\u202f])([^\W_]+)?")


def write_numbers(source: str, target: str, languages: tuple[str, str], own: Sequence[Span]) -> str:
    """Return a translation of the same length.

    Args:
        languages: of the source and of the translation.
        own: spans of the translation that stay as they are, in order.
    """
    before, after = map(forms_of, languages)
    known = {"".join(filter(str.isdigit, one)): one for one in _numbers(source) if before.parts_of(one) is not None}
    characters = [*target]

    def write(span: Span, written: str) -> None:
        if len(written) == span.end - span.start and len(set(overlapping(own, span))) == 1:
            characters[span.start : span.end] = written

    for match in [*_NUMBER.finditer(target), *_AMOUNT.finditer(target)] if known else []:
        number = known.get("".join(filter(str.isdigit, match.group())))
        if number is not None and not _is_written(match.group(), after):
            write(Span(*match.span()), after.write_number(number, before))
    for match in _BOUND.finditer(source):
        for found in _plain(match, target):
            write(Span(found, found + 1), match[2])
    return "".join(characters)


def _numbers(text: str) -> Iterable[str]:
    return (match.group() for pattern in (_NUMBER, _AMOUNT) for match in pattern.finditer(text))


def _is_written(number: str, forms: NumberForms) -> bool:
    """Return whether a language writes a number so. A mark between thousands is none before decimals."""
    parts = forms.parts_of(number)
    return parts is not None and (len(parts[0]) > 1 or len(parts[1]) != 3)


def _plain(bound: re.Match[str], target: str) -> Iterable[int]:
    """Yield the places of ordinary spaces in a translation that stand where the source has one that does not break: on
    the same side of the same number, or else between the same word and another one."""
    left, right = bound[1] or "", bound[3] or ""
    if left and (left.isdecimal() or not right.isdecimal()):
        found = re.finditer(rf"(?<![^\W_]){re.escape(left)}(?= [^\W\d_])", target)
        yield from (match.end() for match in found)
    elif right:
        yield from (match.start() for match in re.finditer(rf"(?<=[^\W\d_]) (?={re.escape(right)}(?![^\W_]))", target))
