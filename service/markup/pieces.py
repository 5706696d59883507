"""Pieces: what a format is read as, whichever it is: text, inline tags, and what is not to be translated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol


class PieceKind(Enum):
    TEXT = auto()
    START = auto()
    END = auto()
    OPAQUE = auto()
    """To be kept as it is, and a word of the sentence around it: <code>, translate="no"."""
    MARK = auto()
    """To be kept as it is, and no word: <img>, a comment."""
    BREAK = auto()
    """To be kept as it is, between passages: <p>, <br>, <script>."""


@dataclass(frozen=True)
class Piece:
    """A part of a text."""

    kind: PieceKind
    raw: str
    """As it is written."""
    tag: str = ""
    """Name of an element, in lower case."""
    text: str = ""
    """The characters of a text: as many as are written, or one for all that is written. Of an end tag, how it is
    written behind another text, where that is not the same."""


class Tagged(Protocol):
    @property
    def kind(self) -> PieceKind: ...

    @property
    def tag(self) -> str: ...


def ends_of_elements(pieces: Sequence[Tagged]) -> dict[int, int]:
    """The number of the end tag of each element that has one, where elements are properly nested."""
    ends = {}
    opened: list[int] = []
    names: Counter[str] = Counter()
    for i, piece in enumerate(pieces):
        if piece.kind is PieceKind.START:
            opened.append(i)
            names[piece.tag] += 1
        elif piece.kind is PieceKind.END and names[piece.tag]:
            while pieces[start := opened.pop()].tag != piece.tag:
                names[pieces[start].tag] -= 1
            names[piece.tag] -= 1
            ends[start] = i
    return ends
