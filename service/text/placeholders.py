"""Kept spans on their way through a model: each is replaced by a word that models copy, and put back afterwards."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from service.text.kept_kinds import Reads
from service.text.kept_spans import Kept
from service.text.scripts import LETTER
from service.text.spans import Edits, Span, edited, overlapping
from service.text.stand_ins import STAND_INS, StandInKind, named_in_other_letters, written

_NEVER = "(?!)"
"""A pattern that matches nothing."""
_YEAR = re.compile(r"\d{4}|\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2(?:\d{2}|\d{4})")
"""Or a date: both stand after the same words."""
_FLAGS = r"[-+0#]{0,4}\d{0,4}(?:\.\d{1,4})?"
_NUMBER = re.compile(
    rf"%(?:\(.*\)|\d+\$)?{_FLAGS}[hlz]*[diufgxX]|[$%#]?\{{+\s*(?:\d*|n|\w*(?:count|num|total|amount)\w*)\s*[,}}]",
    re.IGNORECASE,
)
_PERSON = re.compile(
    rf"<?(?:mailto:)?[A-Za-z0-9._%+-]+@|%(?:\(.*\)|\d+\$)?{_FLAGS}[sc@]|[$%#]?\{{|[$:!@][A-Za-z_]|%\w+%|__"
)
_LETTER_BEFORE = re.compile(LETTER)
_WORD = re.compile(rf"{LETTER}+")


@dataclass(frozen=True)
class Placeholder:
    """A span of the original text, and its stand-in with its place in the protected text; "" for a symbol."""

    span: Span
    stand_in: str
    place: Span
    taken_out: Span
    """All of the original that the stand-in is in place of: of a symbol, the space beside it too."""
    written: str
    """What comes out: the span itself, or a glossary's term for it."""
    reads: Reads


@dataclass(frozen=True)
class Protected:
    """A text with stand-ins in place of its placeholders."""

    original: str
    text: str
    placeholders: tuple[Placeholder, ...]
    edits: Edits
    """From the original to the protected text."""

    def between_breaks(self) -> Iterator[Span]:
        """The protected text in pieces: an escape such as \\n, or the syntax of an ICU message, ends each."""
        start = 0
        for placeholder in self.placeholders:
            if placeholder.reads == "break":
                yield Span(start, placeholder.place.start)
                start = placeholder.place.end
        yield Span(start, len(self.text))

    def has_words(self, span: Span) -> bool:
        """Whether a part of the protected text has a letter that is in no stand-in."""
        places = [placeholder.place for placeholder in self.placeholders]
        inside = places[slice(*overlapping(places, span))]
        rest, _ = edited(self.text, [(place, "") for place in inside])
        return any(map(str.isalpha, rest[span.start : span.end - sum(place.end - place.start for place in inside)]))


def protect(text: str, kept: Sequence[Kept] = (), read_as: Iterable[tuple[Span, str]] = ()) -> Protected:
    """Replace what is kept by stand-ins, and spans that are only read in another way by what they are read as.

    What is no word of its sentence is shown as nothing, the end of a line as one.
    """
    stand_ins = _stand_ins(text) if kept else {}
    replaced: list[tuple[Kept, Span, str]] = []
    shown: list[tuple[Span, str]] = []
    for one in kept:
        if one.reads in ("mark", "break", "shortcut"):
            taken_out = _with_space(text, one.span) if one.reads == "mark" else one.span
            is_between_words = one.reads == "mark" and _is_between_words(text, taken_out)
            shown.append((taken_out, "\n" if one.reads == "break" else " " * is_between_words))
            replaced.append((one, taken_out, ""))
        else:
            stand_in = next(stand_ins[_kind(one, text)])
            shown.append((one.span, stand_in))
            replaced.append((one, one.span, stand_in))
    taken = [span for span, _ in shown]
    shown += [item for item in read_as if len(set(overlapping(taken, item[0]))) == 1]
    protected, edits = edited(text, sorted(shown, key=lambda item: item[0].pair))
    places = dict(zip(edits.old, edits.new, strict=True))
    placeholders = tuple(
        Placeholder(
            one.span,
            stand_in,
            places[taken_out],
            taken_out,
            one.span.of(text) if one.written is None else one.written,
            one.reads,
        )
        for one, taken_out, stand_in in replaced
    )
    return Protected(text, protected, placeholders, edits)


def _with_space(text: str, span: Span) -> Span:
    """What is shown as nothing, with the space before it, or after it at the start of a line.

    The space before it stays where it is the only one between two words.
    """
    start, end = span.pair
    if text[start - 1 : start] == " " and not text[end : end + 1].isalnum():
        return Span(start - 1, end)
    return Span(start, end + (starts_line(text, start) and text[end : end + 1] == " "))


def _is_between_words(text: str, span: Span) -> bool:
    return text[max(0, span.start - 1) : span.start].isalnum() and text[span.end : span.end + 1].isalnum()


def starts_line(text: str, position: int) -> bool:
    """Whether there is nothing but spaces before a position in its line."""
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" ")


def is_letter(character: str) -> bool:
    """Or a digit, of a script that puts spaces between words."""
    return _LETTER_BEFORE.match(character) is not None


def _kind(kept: Kept, text: str) -> StandInKind:
    written = kept.span.of(text)
    if _YEAR.fullmatch(written):
        return "year"
    if kept.reads == "number" or _NUMBER.match(written):
        return "number"
    return "person" if _PERSON.match(written) else "place"


def _stand_ins(text: str) -> dict[StandInKind, Iterator[str]]:
    """Those that are no words of the text, over and over: where one comes again, it is in another sentence."""
    lowered = text.casefold()
    words = {*_WORD.findall(lowered), *re.findall(r"\d+", lowered)}
    words |= {word.casefold() for word in named_in_other_letters(text)}
    unheard_of = "X" + "x" * max(map(len, re.findall("x+", lowered)), default=0)
    return {
        kind: cycle([word for word in stand_ins if word.casefold() not in words] or [unheard_of])
        for kind, stand_ins in STAND_INS.items()
    }


def stand_ins_in(translated: str, protected: Protected) -> list[tuple[Span, str]]:
    """Where the stand-ins of a text are in its translation, in order, however its language writes them."""
    stand_ins = sorted({one.stand_in for one in protected.placeholders} - {""})
    pattern = re.compile("|".join(f"({written(stand_in)})" for stand_in in stand_ins) or _NEVER)
    return [(Span(*match.span()), stand_ins[(match.lastindex or 1) - 1]) for match in pattern.finditer(translated)]
