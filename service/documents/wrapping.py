"""Cut a translation into lines whose lengths are proportional to the lengths of the source lines."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import accumulate, count

from service.documents.inline_tags import TAG
from service.text.aligned_words import closes, opens
from service.text.scripts import is_unspaced

ATOM = re.compile(r"<[^<>]*>|&#?\w{1,32};|\s+|.")
EMPTY_ELEMENT = re.compile(r"<(\w+)(?:\s[^<>]*)?></\1>")
NOT_AT_START = "ーっゃゅょッャュョ々"
"""Japanese characters that do not begin a line."""
ENDS_PHRASE = re.compile(r"[、。！？」』].|[\u3040-\u309f][^\u3040-\u309f]")
"""The last character of a Japanese phrase, which mostly ends in hiragana, and the first character of the next."""
MAX_CANDIDATES = 6
"""The number of breaks that are considered on either side of the ideal end of a line."""
CLAUSE_TOLERANCE = 0.25
"""A break after a comma may be this share of a line farther from the ideal end."""


@dataclass(frozen=True)
class _Break:
    """A place where a line may end: before an atom, after `size` characters, and whether after a comma or the like."""

    atom: int
    size: int
    is_clause: bool


def visible_text(html: str) -> str:
    """Return the text without its tags."""
    return unescape(TAG.sub("", html))


def wrap(html: str, lengths: Sequence[int], between_phrases: bool = False) -> list[str]:
    """Cut HTML into one line for each length, in proportion. If there are too few words, the last lines are empty. With
    `between_phrases`, Japanese is cut only between phrases, if there are enough of them."""
    atoms: list[str] = ATOM.findall(html)
    breaks = [*_breaks(atoms, between_phrases)]
    if len(breaks) < len(lengths) - 1:
        breaks = [*_breaks(atoms)]
    n_characters = sum(not _is_tag(atom) for atom in atoms)
    scale = n_characters / max(1, sum(lengths))
    cuts = [0]
    first = 0
    for line, end in enumerate(length * scale for length in accumulate(lengths[:-1])):
        if first == len(breaks):
            break
        after = max(first + 1, len(breaks) - (len(lengths) - 2 - line))  # later breaks are for the other lines
        near = bisect_left(breaks, end, first, after, key=lambda candidate: candidate.size)
        tolerated = CLAUSE_TOLERANCE * lengths[line] * scale

        candidates = range(max(first, near - MAX_CANDIDATES), min(after, near + MAX_CANDIDATES))
        distances = {i: abs(breaks[i].size - end) - tolerated * breaks[i].is_clause for i in candidates}
        best = min(distances, key=distances.__getitem__)
        cuts.append(breaks[best].atom)
        first = best + 1
    pieces = ["".join(atoms[start:end]).strip() for start, end in zip(cuts, [*cuts[1:], len(atoms)], strict=True)]
    return pieces + [""] * (len(lengths) - len(pieces))


def balance_tags(pieces: Iterable[str]) -> list[str]:
    """Balance the tags of each piece: an element that spans several pieces is closed and opened again."""
    opened: dict[int, str] = {}
    numbers: defaultdict[str, list[int]] = defaultdict(list)  # of the open tags, by name: a search takes too long
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
    kept: list[str] = []
    for part in parts:
        if part.startswith("</") and kept and EMPTY_ELEMENT.fullmatch(kept[-1] + part):
            kept.pop()
        elif part:
            kept.append(part)
    return "".join(kept)


def _breaks(atoms: list[str], between_phrases: bool = False) -> Iterator[_Break]:
    following = ""  # for each atom the next character of the text
    firsts = [following := (atom[0] if not _is_tag(atom) else following) for atom in reversed(atoms)][::-1]
    size, last = 0, " "
    for i, atom in enumerate(atoms):
        before = atoms[i - 1] if i else "<>"
        is_inside = _is_tag(before) and not before.startswith("</")  # an element begins with its text
        is_outside = not is_inside and not atom.startswith("</") and firsts[i] != ""
        if is_outside and _may_part(before, last, firsts[i], between_phrases):
            yield _Break(i, size, closes(last))
        if not _is_tag(atom):
            size += 1
            last = last if atom.isspace() else atom[-1]


def _may_part(before: str, last: str, first: str, between_phrases: bool) -> bool:
    if before.isspace() or first.isspace():
        return before.isspace()
    if between_phrases and not ENDS_PHRASE.fullmatch(last + first):
        return False
    return is_unspaced(last + first) and not (closes(first) or first in NOT_AT_START or opens(last))


def _is_tag(atom: str) -> bool:
    return atom.startswith("<") and len(atom) > 1


def _name(tag: str) -> str:
    return tag.strip("</>").split(maxsplit=1)[0].lower()
