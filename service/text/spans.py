"""Spans of a text, and their places after some of its parts are replaced."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """text[start:end]."""

    start: int
    end: int

    @property
    def pair(self) -> tuple[int, int]:
        return self.start, self.end

    def moved(self, by: int) -> "Span":
        return Span(self.start + by, self.end + by)

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def overlapping(spans: Sequence[Span], span: Span) -> tuple[int, int]:
    """Return the numbers of the first span that overlaps another one, and of the first after it; spans are in order."""
    first = bisect_right(spans, span.start, key=lambda other: other.end)
    return first, max(first, bisect_left(spans, span.end, key=lambda other: other.start))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that overlap. The spans are in order."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


@dataclass(frozen=True)
class Edits:
    """The spans of a text that were replaced, in order, and the spans of their replacements in the new text."""

    old: tuple[Span, ...]
    new: tuple[Span, ...]

    def after(self, span: Span) -> Span:
        """Return the place of an old span in the new text. Part of a replaced span becomes all of its replacement."""
        return _map_span(span, self.old, self.new)

    def before(self, span: Span) -> Span:
        """Return the place of a new span in the old text."""
        return _map_span(span, self.new, self.old)


NO_EDITS = Edits((), ())


def chain_edits(parts: Iterable[tuple[Edits, int, int]]) -> Edits:
    """Chain the edits of parts, each with its length before and after them, to edits of the whole text."""
    old: list[Span] = []
    new: list[Span] = []
    n_before = n_after = 0
    for edits, length_before, length_after in parts:
        old += [span.moved(n_before) for span in edits.old]
        new += [span.moved(n_after) for span in edits.new]
        n_before, n_after = n_before + length_before, n_after + length_after
    return Edits(tuple(old), tuple(new))


Replacement = tuple[Span, str]
"""A span of a text, and what is written in its place."""


def replace_spans(text: str, replacements: Iterable[Replacement]) -> tuple[str, Edits]:
    """Return a text with some spans replaced, and the edits. The spans are in order and do not overlap."""
    pieces, old, new, position, length = [], [], [], 0, 0
    for span, replacement in replacements:
        length += span.start - position
        old.append(span)
        new.append(Span(length, length + len(replacement)))
        pieces += [text[position : span.start], replacement]
        position, length = span.end, new[-1].end
    return "".join([*pieces, text[position:]]), Edits(tuple(old), tuple(new))


def _map_span(span: Span, old: Sequence[Span], new: Sequence[Span]) -> Span:
    before = bisect_right(old, span.start, key=lambda edit: edit.end)
    if before < len(old) and old[before].start <= span.start:
        start = new[before].start
    else:
        start = span.start + (new[before - 1].end - old[before - 1].end if before else 0)
    last = bisect_left(old, span.end, key=lambda edit: edit.start) - 1
    end = span.end if last < 0 else new[last].end + max(0, span.end - old[last].end)
    return Span(start, max(start, end))
