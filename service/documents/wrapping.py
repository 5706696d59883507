"""A translation cut into lines that take as much of it as the lines before did of their text."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import accumulate, count

from service.text.aligned_words import closes, opens
from service.text.scripts import is_unspaced

TAG = re.compile(r"(<[^<>]*>)")
ATOM = re.compile(r"<[^<>]*>|&#?\w{1,32};|\s+|.")
NOTHING = re.compile(r"<(\w+)(?:\s[^<>]*)?></\1>")
GOES_ON = "ーっゃゅょッャュョ々"
"""Japanese signs that do not begin a line."""

LOOK = 6
"""Places for a cut that are looked at on either side of where a line would end."""
TOLERATED = 0.25
"""A cut may be off by so much of a line if it is behind a comma."""


@dataclass(frozen=True)
class _Break:
    """Where a line may end: before which atom, behind how many characters, and whether behind a comma or the like."""

    atom: int
    size: int
    is_clause: bool


def visible(html: str) -> str:
    """The text without its tags."""
    return unescape(TAG.sub("", html))


def wrapped(html: str, lengths: Sequence[int]) -> list[str]:
    """Cut HTML into so many lines, of proportional lengths; the last ones are empty where there are too few words."""
    atoms: list[str] = ATOM.findall(html)
    breaks = [*_breaks(atoms)]
    n_characters = sum(not _is_tag(atom) for atom in atoms)
    scale = n_characters / max(1, sum(lengths))
    cuts = [0]
    first = 0
    for line, end in enumerate(length * scale for length in accumulate(lengths[:-1])):
        if first == len(breaks):
            break
        after = max(first + 1, len(breaks) - (len(lengths) - 2 - line))  # those behind are for the other lines
        near = bisect_left(breaks, end, first, after, key=lambda one: one.size)
        tolerated = TOLERATED * lengths[line] * scale

        def distance(i: int, end: float = end, tolerated: float = tolerated) -> float:
            return abs(breaks[i].size - end) - tolerated * breaks[i].is_clause

        best = min(range(max(first, near - LOOK), min(after, near + LOOK)), key=distance)
        cuts.append(breaks[best].atom)
        first = best + 1
    pieces = ["".join(atoms[start:end]).strip() for start, end in zip(cuts, [*cuts[1:], len(atoms)], strict=True)]
    return pieces + [""] * (len(lengths) - len(pieces))


def balanced(pieces: Iterable[str]) -> list[str]:
    """Give each piece tags of its own, where an element goes on from one piece to the next."""
    opened: dict[int, str] = {}
    numbers: defaultdict[str, list[int]] = defaultdict(list)  # of the open tags of each name: a search takes too long
    numbering = count()
    closed = []
    for piece in pieces:
        before = [*opened.values()]
        for tag in TAG.findall(piece):
            alike = numbers[_name(tag)]
            if not tag.startswith("</"):
                alike.append(number := next(numbering))
                opened[number] = tag
            elif alike:
                del opened[alike.pop()]
        after = [f"</{_name(tag)}>" for tag in reversed(opened.values())]
        closed.append(_without_empty([*before, *TAG.split(piece), *after]))
    return closed


def _without_empty(parts: Iterable[str]) -> str:
    """Join text and tags, without elements that have nothing in them."""
    kept: list[str] = []
    for part in parts:
        if part.startswith("</") and kept and NOTHING.fullmatch(kept[-1] + part):
            kept.pop()
        elif part:
            kept.append(part)
    return "".join(kept)


def _breaks(atoms: list[str]) -> Iterator[_Break]:
    """Behind white space and end tags, and in Japanese between any two letters."""
    following = ""  # the next character of the text, for each atom
    firsts = [following := (atom[0] if not _is_tag(atom) else following) for atom in reversed(atoms)][::-1]
    size, last = 0, " "
    for i, atom in enumerate(atoms):
        before = atoms[i - 1] if i else "<>"
        is_inside = _is_tag(before) and not before.startswith("</")  # an element begins with its text
        if not is_inside and not atom.startswith("</") and firsts[i] and _may_part(before, last, firsts[i]):
            yield _Break(i, size, closes(last))
        if not _is_tag(atom):
            size += 1
            last = last if atom.isspace() else atom[-1]


def _may_part(before: str, last: str, first: str) -> bool:
    if before.isspace() or first.isspace():
        return before.isspace()
    return is_unspaced(last + first) and not (closes(first) or first in GOES_ON or opens(last))


def _is_tag(atom: str) -> bool:
    return atom.startswith("<") and len(atom) > 1


def _name(tag: str) -> str:
    return tag.strip("</>").split(maxsplit=1)[0].lower()
