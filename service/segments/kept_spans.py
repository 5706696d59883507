"""Which spans of a text must come out of its translation byte for byte: URLs, {name}, %s, signs that cannot be written.

Slots carry what is found here through the model (placeholders.py), and restoration.py puts it back.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.segments.icu_messages import icu_messages
from service.segments.kept_kinds import KINDS, OPEN, Reads
from service.segments.shortcuts import shortcuts
from service.segments.unwritable import Writes, unwritable
from service.text.scripts import LETTER, foreign_words
from service.text.sentences import cells
from service.text.spans import Span, edited, overlapping

WORDS_ALONE = re.compile(
    r"(?:[A-Za-zÀ-ÖØ-öø-ÿ ,;?'’\"\n\t]|[.:](?!\S)|!(?!\w)|\((?=[A-Za-z])|(?<=[A-Za-z])\)"
    r"|(?<![\w:])[0-9]{1,3}(?![\w:]|\W*\d))*"
)
"""A text whose letters tell nothing to keep, in any language, and that need not be searched. It may have small
numbers."""
_UNIT = re.compile(
    rf"(?:[bcdfghjklmnpqrstvwxz]{{1,3}}|em|rem|min|sec|[kKMGT]i?B|\d{{1,4}})(?!{LETTER}|['’]{LETTER})",
)
"""Small letters and digits that make no word, right behind a span: {n}px, {n}th, %dMB."""
_JOINT = re.compile(r"[!-/:-@\[-`{-~–—−‐‑×·…→]{1,2}")
"""What makes one of two spans: {a}/{b}, {host}:{port}; "{a} {b}" is two."""
_SIGNS = re.compile(rf"{OPEN}[-+<>~±−$€£#@≤≥]{{1,2}}$")
"""Right before a span, signs that it is read with: -5 °C, +{n}, $%d; 5-10 °C is a range."""
_DIALOGUE = re.compile(r"(?<![^\n])-")
"""What begins a line before a name; before a number it is a minus."""
_AMOUNT = re.compile(r"(?<![\w$])\$(\d\w*(?:[.,]\d\w*)*)")
_CLOSING = re.compile(r"[<{\[]/|\{\\")
"""The end of a tag, or a tag of subtitles: no word of a sentence."""
_TAGS_AT_END = re.compile(rf"\s*+(?:{LETTER}++#\s*+)+")
"""Read from the end of a line to its beginning: forwards each tag might be the first of them."""

_ESCAPED_APOSTROPHE = re.compile(r"(?<=\w)\\'(?=\w)")


@dataclass(frozen=True)
class Kept:
    """A span, and what it is in its sentence."""

    span: Span
    reads: Reads = "word"
    written: str | None = None
    """What comes out in its place, if not the span itself: a glossary's term."""


def everything(_: str) -> bool:
    """Tell that a vocabulary has the characters of any text."""
    return True


def kept_spans(
    text: str,
    keep: Sequence[Span] = (),
    language: str = "",
    writes: Writes = everything,
    terms: Sequence[Kept] = (),
) -> list[Kept]:
    """Return the spans of a text, in order; none touches another.

    Args:
        keep: what is kept in any case.
        terms: what the request names; of two that overlap the first. One that is a part of a longer span yields to it.
        language: of the text; words in letters of other scripts are kept, if its script is known.
        writes: whether the vocabulary has the characters of a text.
    """
    if text.isascii() and not keep and not terms and WORDS_ALONE.fullmatch(text):
        return []
    taken = _with_free([], [Kept(span) for span in keep])
    found = _found(text, taken)
    if named := _with_free([], terms):
        found = _found(text, _with_free(_with_free(taken, _around(named, found)), named))
    taken = _with_free(found, (Kept(span, "shortcut") for span in shortcuts(text)))
    lines = _lines(text, found)
    strange = [Kept(span) for span in foreign_words(text, language)]
    strange += (Kept(*one) for one in unwritable(_without(lines, _marks(lines)), writes))
    written = [kept.span for kept in found if kept.written is not None]
    taken += (kept for kept in strange if len(set(overlapping(written, kept.span))) == 1)
    joined = _joined(text, sorted(taken, key=lambda kept: kept.span.pair))
    tags = _tags_at_end(text) if "#" in text else ()
    return [replace(kept, reads=_reads(text, kept, kept.span.start in tags)) for kept in joined]


def _found(text: str, taken: list[Kept]) -> list[Kept]:
    """Add what the letters of a text tell to keep to what is taken."""
    taken = _with_free(taken, (Kept(*one) for one in icu_messages(text)))
    found = _with_free(taken, _of_kinds(_lines(text, taken)))
    if len(breaks := _breaks(found)) > len(_breaks(taken)):  # lines begin behind them
        found = _with_free(taken, breaks)
        found = _with_free(found, _of_kinds(_lines(text, found)))
    return found


def _around(terms: list[Kept], found: Iterable[Kept]) -> Iterator[Kept]:
    """Yield spans that have terms inside and are longer than these: a name in an address is no name."""
    spans = [term.span for term in terms]
    for kept in found:
        inside = spans[slice(*overlapping(spans, kept.span))]
        if (
            inside
            and kept.span.start <= inside[0].start
            and inside[-1].end <= kept.span.end
            and kept.span not in inside
        ):
            yield kept


def _tags_at_end(text: str) -> set[int]:
    """Return the positions of tags (#tag) that no word of their line follows."""
    places, end = set[int](), -1
    for line in text.split("\n"):
        end += 1 + len(line)
        tags = _TAGS_AT_END.match(line[::-1])
        places.update(range(end - tags.end(), end) if tags else ())
    return places


def apostrophes(text: str) -> Iterator[tuple[Span, str]]:
    """Yield apostrophes that are written as in program text, Don\\'t, and what they are read as."""
    return ((Span(*match.span()), "'") for match in _ESCAPED_APOSTROPHE.finditer(text))


def _breaks(taken: list[Kept]) -> list[Kept]:
    return [kept for kept in taken if kept.reads == "break"]


def _lines(text: str, taken: list[Kept]) -> str:
    """Return the text with ends of lines in the place of breaks: what is found reaches from no line into the next."""
    return _without(text, [kept.span for kept in _breaks(taken)])


def _without(text: str, spans: Sequence[Span]) -> str:
    """Return the text, as long as before, with the ends of lines in the place of spans."""
    return edited(text, [(span, "\n" * (span.end - span.start)) for span in spans])[0] if spans else text


def _of_kinds(text: str) -> Iterator[Kept]:
    if WORDS_ALONE.fullmatch(text):
        return
    marks = _marks(text)
    found = [
        (match.start(), order, Kept(Span(*match.span()), kind.reads))
        for order, kind in enumerate(KINDS)
        if any(hint in text for hint in kind.hint)
        for match in kind.pattern.finditer(text)
        if not _is_inside(Span(*match.span()), marks)
    ]
    yield from (kept for _, _, kept in sorted(found, key=lambda item: item[:2]))
    yield from _parameters(text)


def _parameters(text: str) -> Iterator[Kept]:
    """Yield $1 and $2, if the numbers behind such signs count from 1 on: else they are prices."""
    found = [*_AMOUNT.finditer(text)] if "$1" in text else []
    numbers = {match[1] for match in found}
    if len(numbers) > 1 and numbers == {str(number + 1) for number in range(len(numbers))}:
        yield from (Kept(Span(*match.span())) for match in found)


def _marks(text: str) -> list[Span]:
    """Return what stands before an entry of a list, "1.2.3 Overview", or of a column: it is outside the sentence."""
    return [Span(cell.start, cell.begins) for cell in cells(text) if cell.start < cell.begins]


def _is_inside(span: Span, marks: Sequence[Span]) -> bool:
    n = bisect_right(marks, span.start, key=lambda mark: mark.start) - 1
    return n >= 0 and span.end <= marks[n].end


def _with_free(taken: list[Kept], found: Iterable[Kept]) -> list[Kept]:
    """Add what is found to what is taken, unless they overlap; of two found spans that overlap, the first."""
    spans = [kept.span for kept in taken]
    added, end = [], 0
    for kept in sorted(found, key=lambda kept: kept.span.start):
        first, last = overlapping(spans, kept.span)
        if kept.span.start >= end and first == last:
            added.append(kept)
            end = kept.span.end
    return sorted([*taken, *added], key=lambda kept: kept.span.pair) if added else taken


def _joined(text: str, spans: Iterable[Kept]) -> list[Kept]:
    """Extend spans by the signs before them and the unit behind them, and join those that touch."""
    joined: list[Kept] = []
    for kept in spans:
        span, last = kept.span, joined[-1] if joined else None
        if last is not None and span.end <= last.span.end:
            continue
        if _is_extended(kept):
            kept = replace(kept, span=_extended(text, kept, last.span.end if last else 0))
        if last is None or not _touch(text, last, kept):
            joined.append(kept)
        else:
            reads = last.reads if last.reads != "mark" else kept.reads
            joined[-1] = Kept(Span(last.span.start, kept.span.end), reads)
    return joined


def _is_extended(kept: Kept) -> bool:
    return kept.reads in ("word", "number") and kept.written is None


def _extended(text: str, kept: Kept, after: int) -> Span:
    start, end = kept.span.pair
    signs = _SIGNS.search(text, max(after, start - 3), start)
    unit = _UNIT.match(text, end)
    is_dialogue = kept.reads == "word" and signs is not None and _DIALOGUE.match(text, signs.start())
    return Span(signs.start() if signs and not is_dialogue else start, unit.end() if unit else end)


def _touch(text: str, left: Kept, right: Kept) -> bool:
    if right.span.start < left.span.end:
        return True
    reads = {left.reads, right.reads}
    if left.written is not None or right.written is not None or "shortcut" in reads:
        return False
    if right.span.start == left.span.end:
        return "break" not in reads
    return not reads & {"mark", "break"} and _JOINT.fullmatch(text, left.span.end, right.span.start) is not None


def _reads(text: str, kept: Kept, is_tag_at_end: bool) -> Reads:
    """A span that touches a word is no word of the sentence: {0}Files, {i}Je, {/i}, [^1]. Nor is a tag at its end."""
    if kept.reads not in ("word", "number"):
        return kept.reads
    start, end = kept.span.pair
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    touches_word = re.search(LETTER, around) is not None
    return "mark" if touches_word or is_tag_at_end or _CLOSING.match(text, start) else kept.reads
