"""Replace kept spans by stand-ins for the model: words that it is known to copy. restoration.py puts the spans back."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import unescape
from itertools import pairwise

from service.kept.kept_kinds import FLAGS, Role
from service.kept.kept_spans import KeptSpan
from service.text.scripts import LETTER, is_unspaced
from service.text.spans import Edits, Span, overlapping, replace_spans

_YEAR = re.compile(r"\d{4}|\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{2}|\d{4})")
"""A year or a date, which is not a quantity."""
_NUMBER = re.compile(
    rf"%(?:\(.*\)|<.*>|\d+\$|\[\d+\])?{FLAGS}[hlz]*(?:[diufgx]|[en](?!\w))"
    r"|[$%#]?\{+\s*(?:\d*|n|\w*(?:count|num|total|amount)\w*)\s*[,}]",
    re.IGNORECASE,
)
_LETTER_BEFORE = re.compile(LETTER)


@dataclass(frozen=True)
class Placeholder:
    """A span of the original text, its stand-in ("" for none), and the place of the stand-in in the protected text."""

    span: Span
    stand_in: str
    place: Span
    taken_out: Span
    """The part of the original that the stand-in replaces: a symbol may include the space beside it."""
    written: str
    """The text in the translation: the span itself, or a glossary's term for it."""
    role: Role
    at_start: str | None = None
    """The text at the beginning of a sentence of the translation, as long as `written`; None: the same."""

    @property
    def has_slot(self) -> bool:
        return self.stand_in != "" and self.role != "sign"


@dataclass(frozen=True)
class Protected:
    """A text with stand-ins in place of its placeholders."""

    original: str
    text: str
    placeholders: tuple[Placeholder, ...]
    edits: Edits
    """The edits from the original to the protected text."""

    def between_breaks(self) -> Iterator[Span]:
        """Yield the pieces of the protected text. Escapes such as \\n, and the syntax of ICU messages, end a piece."""
        start = 0
        for placeholder in self.placeholders:
            if placeholder.role == "break":
                yield Span(start, placeholder.place.start)
                start = placeholder.place.end
        yield Span(start, len(self.text))

    def cut_after_placeholders(self, sentences: Iterable[Span], ends: Collection[int]) -> Iterator[Span]:
        """Yield sentences of the protected text, cut after a placeholder that ends a sentence of the original.
        Sentences of the original, or marks before them, end at the positions `ends`."""
        spaced = (p for p in self.placeholders if self.original[p.span.end : p.span.end + 1].isspace())
        behind = [placeholder.place.end for placeholder in spaced if placeholder.span.end in ends]
        for span in sentences:
            inside = behind[bisect_right(behind, span.start) : bisect_left(behind, span.end)]
            yield from (Span(*pair) for pair in pairwise([span.start, *inside, span.end]))

    def has_words(self, span: Span) -> bool:
        """Return whether a part of the protected text has a letter outside stand-ins."""
        start = span.start
        for place in (self.places[number] for number in self.numbers_in(span)):
            if any(map(str.isalpha, self.text[start : place.start])):
                return True
            start = place.end
        return any(map(str.isalpha, self.text[start : span.end]))

    def numbers_in(self, span: Span) -> range:
        """Return the numbers of the placeholders in a part of the protected text."""
        return range(*overlapping(self.places, span))

    def original_position(self, position: int) -> int:
        """Map a position between sentences of the protected text to the original, before spans that were left out."""
        old, new = self.edits.old, self.edits.new
        n = bisect_left(new, position, key=lambda span: span.start)
        if n < len(new) and new[n].start == position:
            return old[n].start
        return position + (old[n - 1].end - new[n - 1].end if n else 0)

    def part(self, start: int, end: int) -> tuple["Protected", int]:
        """Return the part between two such positions, or up to the end, and the number of placeholders before it."""
        is_last = end == len(self.text)
        begin = self.original_position(start) if start else 0
        original = Span(begin, len(self.original) if is_last else self.original_position(end))

        def inside(spans: Sequence[Span]) -> slice:
            first, last = (bisect_left(spans, position, key=lambda span: span.start) for position in (start, end))
            return slice(first if start else 0, len(spans) if is_last else last)

        edits, numbers = inside(self.edits.new), inside(self.places)
        placeholders = tuple(
            replace(p, span=p.span.moved(-begin), place=p.place.moved(-start), taken_out=p.taken_out.moved(-begin))
            for p in self.placeholders[numbers]
        )
        old = tuple(span.moved(-begin) for span in self.edits.old[edits])
        new = tuple(span.moved(-start) for span in self.edits.new[edits])
        return Protected(original.of(self.original), self.text[start:end], placeholders, Edits(old, new)), numbers.start

    def set_apart_in(self, span: Span) -> list[str]:
        """Return the signs in a part of the protected text that touch words in the original, with their blanks."""
        first, last = overlapping(self._set_apart, span)
        return [sign.of(self.text) for sign in self._set_apart[first:last]]

    @cached_property
    def added_blanks(self) -> list[int]:
        """The positions, in order, of blanks in the protected text between which signs touch words in the original."""
        return [at for span in self._set_apart for at in range(*span.pair) if self.text[at] == " "]

    @cached_property
    def _set_apart(self) -> list[Span]:
        pairs = zip(self.edits.old, self.edits.new, strict=True)
        return [
            new
            for old, new in pairs
            if new.of(self.text) != old.of(self.original) == new.of(self.text).strip(" ") != ""
            and len({*overlapping(self.places, new)}) == 1
        ]

    @cached_property
    def places(self) -> list[Span]:
        return [placeholder.place for placeholder in self.placeholders]


StandIn = Callable[[int, bool], str]
"""Returns the stand-in for a placeholder by its number and whether it is a quantity; "" for none."""


def protect(
    text: str,
    kept: Sequence[KeptSpan] = (),
    read_as: Iterable[tuple[Span, str]] = (),
    stand_in: StandIn = lambda _number, _is_number: "",
) -> Protected:
    """Replace kept spans by stand-ins, and spans with another plain form by that form. The model sees nothing in place
    of a mark or a shortcut, and a line end in place of a break."""
    replaced: list[tuple[KeptSpan, Span, str]] = []
    shown: list[tuple[Span, str]] = []
    line_start = 0
    for number, item in enumerate(kept):
        is_word = item.role in ("word", "number")
        word = stand_in(number, _is_number(item, text)) if is_word else ""
        if item.role == "sign":
            word = unescape(item.span.of(text))
        if word:
            taken_out, in_its_place = item.span, _set_apart(text, item.span, word, item.span.start == line_start)
        elif item.role == "break":
            taken_out, in_its_place = item.span, "\n"
            line_start = item.span.end
        elif item.role == "shortcut":
            taken_out, in_its_place = item.span, ""
        else:
            taken_out = _with_space(text, item.span)
            if shown and taken_out.start < shown[-1][0].end:  # the first of two symbols takes the space between them
                taken_out = Span(shown[-1][0].end, taken_out.end)
            beside = text[max(0, taken_out.start - 1) : taken_out.start], text[taken_out.end : taken_out.end + 1]
            in_its_place = " " * all(map(str.isalnum, beside))
        shown.append((taken_out, in_its_place))
        replaced.append((item, taken_out, word))
    taken = [span for span, _ in shown]
    shown += [item for item in read_as if len(set(overlapping(taken, item[0]))) == 1]
    protected, edits = replace_spans(text, sorted(shown, key=lambda item: item[0].pair))
    places = dict(zip(edits.old, edits.new, strict=True))
    placeholders = tuple(
        Placeholder(
            item.span,
            word,
            _trim(protected, places[taken_out]) if word else places[taken_out],
            taken_out,
            item.span.of(text) if item.written is None else item.written,
            item.role,
            item.at_start,
        )
        for item, taken_out, word in replaced
    )
    return Protected(text, protected, placeholders, edits)


def _set_apart(text: str, span: Span, word: str, starts_line: bool) -> str:
    """Put spaces around a stand-in beside characters that a tokenizer would join with it."""
    before, after = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    space_before = not (starts_line or before.isspace() or is_unspaced(before))
    return f"{' ' * bool(space_before)}{word}{' ' * (after.isalnum() and not is_unspaced(after))}"


def _trim(text: str, span: Span) -> Span:
    whole = span.of(text)
    return Span(span.start + len(whole) - len(whole.lstrip()), span.end - len(whole) + len(whole.rstrip()))


def _with_space(text: str, span: Span) -> Span:
    """Extend a span without a stand-in by the space before it, or by the space after it at the start of a line. The
    space before it stays if it is the only space between two words."""
    start, end = span.pair
    if text[start - 1 : start] == " " and not text[end : end + 1].isalnum():
        return Span(start - 1, end)
    return Span(start, end + (starts_line(text, start) and text[end : end + 1] == " "))


def starts_line(text: str, position: int) -> bool:
    """Return whether only spaces stand before a position in its line."""
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" ")


def is_letter(character: str) -> bool:
    """Return whether a character is a letter or digit of a script that puts spaces between words."""
    return _LETTER_BEFORE.match(character) is not None


def _is_number(kept: KeptSpan, text: str) -> bool:
    written = kept.span.of(text)
    return not _YEAR.fullmatch(written) and (kept.role == "number" or _NUMBER.match(written) is not None)
