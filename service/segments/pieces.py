"""Pieces: what a format is read as, whichever it is: text, inline tags, and what is not to be translated."""

from dataclasses import dataclass
from enum import Enum, auto


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
