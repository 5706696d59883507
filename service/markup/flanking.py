"""Place marks of emphasis so that CommonMark reads them as marks.

A mark must touch the text inside it. If that is punctuation, the mark must not touch a letter outside; `_` never may.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from service.kept.placeholders import is_letter
from service.kept.projection import Region
from service.text.spans import Span

SIGNS = r"""!"#%'+,\-./:;=?@\^|¦§°¶·"""
"""Signs that are marks if they are doubled at both ends (==word==), as a class of characters."""
EMPHASIS = re.compile(rf"([*_~])\1*|([{SIGNS}])\2+")
Tags = list[tuple[str, str]]


def make_flanking(
    text: str, regions: Sequence[Region], tags: Sequence[tuple[str, str]], places: Iterable[Span]
) -> tuple[Tags, list[Span]]:
    """Return places without punctuation at an edge, or tags with a space, where a mark would not be read otherwise."""
    placed: list[Span] = []
    for region, (start_tag, _), place in zip(regions, tags, places, strict=True):
        around = Span(0, len(text)) if region.parent is None else placed[region.parent]
        start, end = max(place.start, around.start), min(place.end, around.end)
        is_emphasis = start < end and EMPHASIS.fullmatch(start_tag)
        placed.append(_trim(text, start, end) if is_emphasis else Span(start, max(start, end)))
    beside = _Neighbours(text, regions, tags, placed)
    fitted = [(beside.space(i, START) + start, end + beside.space(i, END)) for i, (start, end) in enumerate(tags)]
    return fitted, placed


START, END = 0, 1


class _Neighbours:
    def __init__(
        self, text: str, regions: Sequence[Region], tags: Sequence[tuple[str, str]], places: list[Span]
    ) -> None:
        self._text, self._parts, self._tags, self._places = text, regions, tags, places
        at = [(region.parent, place.pair) for region, place in zip(regions, places, strict=True)]
        self._at = [{(parent, pair[side]): i for i, (parent, pair) in enumerate(at)} for side in (START, END)]
        """For each side, the element of a parent that starts or ends at a position."""

    def space(self, i: int, side: int) -> str:
        """Return a space if the mark would not be read without a space."""
        mark, outside = self._tags[i][side], self._outside(i, side)
        if mark == "[":
            return " " if outside == "!" else ""  # otherwise it would be an image
        if not EMPHASIS.fullmatch(mark) or self._places[i].start == self._places[i].end:
            return ""
        if mark[0] in "*_~":
            touches = outside.isalnum() and (mark[0] == "_" or not self._inside(i, side).isalnum())
        else:
            touches = is_letter(outside)
        return " " if touches or (side == START and outside == mark[0]) else ""

    def _outside(self, i: int, side: int) -> str:
        parent, position = self._parts[i].parent, self._places[i].pair[side]
        if parent is not None and position == self._places[parent].pair[side]:
            return ""  # another mark, which this mark may join or touch
        neighbour = self._at[1 - side].get((parent, position))
        if neighbour is not None and neighbour != i:
            return self._tags[neighbour][1 - side][-1:] if side == START else self._tags[neighbour][1 - side][:1]
        return self._text[position - 1 : position] if side == START else self._text[position : position + 1]

    def _inside(self, i: int, side: int) -> str:
        position = self._places[i].pair[side]
        child = self._at[side].get((i, position))
        if child is None:
            return self._text[position] if side == START else self._text[position - 1]
        mark = self._tags[child][side].strip()[:1]
        return self._inside(child, side) if mark == self._tags[i][side][0] else mark


def _trim(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    first, last = start, end
    if text[start - 1 : start].isalnum():
        while first < last and _is_punctuation_or_space(text[first]):
            first += 1
    if text[end : end + 1].isalnum():
        while first < last and _is_punctuation_or_space(text[last - 1]):
            last -= 1
    return Span(start, end) if first == last else Span(first, last)


def _is_punctuation_or_space(character: str) -> bool:
    """Return whether CommonMark counts a character as punctuation, which includes symbols, or it is white space."""
    return character.isspace() or unicodedata.category(character).startswith(("P", "S"))
