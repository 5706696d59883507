"""The pieces of a text in any format: text, inline tags and untranslated elements.

Two inline elements that touch may hold parts of one word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

APART = frozenset(("a", "label"))
"""Inline elements that are often boxes of their own, such as links of a menu. Two of them that touch share no word."""
WORD_END = re.compile(r"(?:[^\W\d_]{2}|\d)\Z")
"""The end of a text's last word, unless the word is a single letter, as in i<b>Phone</b>."""
LABEL = re.compile(r"[^\W\d_]{2,}|\d+")


class PieceKind(Enum):
    TEXT = auto()
    START = auto()
    END = auto()
    OPAQUE = auto()
    """An unchanged element that is a word of its sentence: <code>, translate="no"."""
    MARK = auto()
    """An unchanged element that is not a word: <img>, a comment."""
    BREAK = auto()
    """An unchanged element between passages: <p>, <br>, <script>."""


@dataclass(frozen=True)
class Piece:
    """A part of a text."""

    kind: PieceKind
    raw: str
    tag: str = ""
    """The name of an element, in lower case."""
    text: str = ""
    """The characters that a reader sees: as many as in the source, or one for the whole source. For an end tag, its
    source after another text, where that differs."""


def ends_of_elements(tags: Iterable[tuple[PieceKind, str]]) -> dict[int, int]:
    """Map the number of each start tag to the number of its end tag, so that elements are properly nested. Tags without
    the other tag of their pair are left out. `tags` are the kinds and names of all pieces of a text."""
    ends = {}
    opened: list[tuple[int, str]] = []
    names: Counter[str] = Counter()
    for i, (kind, name) in enumerate(tags):
        if kind is PieceKind.START:
            opened.append((i, name))
            names[name] += 1
        elif kind is PieceKind.END and names[name]:
            while (start := opened.pop())[1] != name:
                names[start[1]] -= 1
            names[name] -= 1
            ends[start[0]] = i
    return ends


def split_neighbours(pieces: list[Piece]) -> list[Piece]:
    """Put a break between texts that share no word, though only inline tags stand between them."""
    split, start, labels = list[Piece](), 0, _labels(pieces)
    texts = [i for i, piece in enumerate(pieces) if piece.kind is PieceKind.TEXT]
    for left, right in pairwise(texts):
        if right - left > 1 and _are_apart(pieces, left, right, labels):
            at = next((i for i in range(left + 1, right) if pieces[i].kind is not PieceKind.END), right)
            split += [*pieces[start:at], Piece(PieceKind.BREAK, "")]
            start = at
    return split + pieces[start:]


def is_letter(piece: Piece, i: int) -> bool:
    """Return whether the first or last character of a text is a letter of a script that puts spaces between words."""
    return piece.kind is PieceKind.TEXT and piece.text[i:][:1].isalnum() and piece.text[i] < "֐"


def _are_apart(pieces: Sequence[Piece], left: int, right: int, labels: set[int]) -> bool:
    """Return whether two texts share no word: <a>Home</a><a>News</a> is not "HomeNews". A capital letter after a small
    one begins a word if one of the two elements has several words, or if both are labels: <em>Name</em><em>Age</em>.
    Otherwise both may hold parts of one word: <span>Wel</span><span>come</span>, Java<b>Script</b>."""
    before, tags, after = pieces[left].text, pieces[left + 1 : right], pieces[right].text
    closes, opens = tags[0].kind is PieceKind.END, tags[-1].kind is PieceKind.START
    if not (is_letter(pieces[left], -1) and is_letter(pieces[right], 0)) or any(not _is_tag(tag) for tag in tags):
        return False
    if len(tags) == 2 and closes and opens and tags[0].tag == tags[1].tag and tags[0].tag in APART:
        return True
    if before[-1].isupper() or not WORD_END.search(before):
        return False
    has_words = (closes and len(before.split()) > 1) or (opens and len(after.split()) > 1)
    return (has_words and after[0].isupper()) or {left, right} <= labels


def _labels(pieces: Sequence[Piece]) -> set[int]:
    """Return the numbers of labels: texts of one capitalized word or number, alone in an element outside a sentence."""
    behind = _begin_apart([*enumerate(pieces)], PieceKind.START)
    before = _begin_apart([*enumerate(pieces)][::-1], PieceKind.END)
    texts = ((i, pieces[i].text) for i in behind & before)
    return {i for i, text in texts if LABEL.fullmatch(text) and not text[0].islower()}


def _begin_apart(pieces: Sequence[tuple[int, Piece]], opening: PieceKind) -> set[int]:
    """Return the numbers of texts that begin an element, and do not continue a sentence of an earlier text. Reversed
    pieces, with end tags as `opening`, give the texts that end an element."""
    texts = set()
    is_apart, begins, has_text = True, False, False
    for i, piece in pieces:
        if piece.kind is PieceKind.BREAK:
            is_apart, has_text = True, False
        elif piece.kind is PieceKind.TEXT and piece.text.isspace():
            is_apart = is_apart and not has_text
        elif piece.kind is PieceKind.TEXT:
            if begins and is_apart:
                texts.add(i)
            is_apart = begins and (is_apart or len(piece.text.split()) > 1)
            has_text = True
        begins = piece.kind is opening
    return texts


def _is_tag(piece: Piece) -> bool:
    return piece.kind in (PieceKind.START, PieceKind.END)
