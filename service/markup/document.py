"""Documents as passages to translate, and back with their tags around the words that they were around.

Block elements separate passages; they are kept as they are, and so is what must not be translated. Every start tag
comes out once and unchanged, and inline tags come out balanced.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from service.markup.draft import Draft
from service.markup.passages import HTML, Notation, Passage, joined
from service.markup.tags import read
from service.schemas.requests import NO_RULES, TagRules
from service.segments.pieces import Piece, PieceKind
from service.segments.restoration import Restored


@dataclass(frozen=True)
class Document:
    """A text, in order: what is kept as it is, and passages."""

    parts: list[str | Passage]
    is_plain: bool = False
    """Whether it is plain text, of which all parts are passages."""

    @property
    def passages(self) -> list[Passage]:
        """All that there is to translate: none is without text."""
        return [part for part in self.parts if isinstance(part, Passage)]

    def render(self, translations: Iterable[Restored]) -> str:
        """The text with each passage translated."""
        remaining = iter(translations)
        return "".join(
            part
            if isinstance(part, str)
            else part.shown(next(remaining))[0]
            if self.is_plain
            else part.render(next(remaining))
            for part in self.parts
        )

    def translated(self, passages: Iterable[Passage]) -> "Document":
        """The text with translated passages for its own, to be translated again."""
        if self.is_plain:
            return Document([joined([*passages])], is_plain=True)
        remaining = iter(passages)
        return Document([part if isinstance(part, str) else next(remaining) for part in self.parts])


def parse(html: str, rules: TagRules = NO_RULES) -> Document:
    """Read a document, a fragment, or what is neither: nothing is refused."""
    return Document(assembled(read(html, rules)))


def assembled(pieces: Sequence[Piece], notation: Notation = HTML) -> list[str | Passage]:
    """What is kept as it is, and passages."""
    ends = _ends(pieces)
    starts = {end: start for start, end in ends.items()}
    breaks = [*accumulate(piece.kind is PieceKind.BREAK for piece in pieces)]
    parts: list[str | Passage] = []
    draft = Draft(notation)
    for i, piece in enumerate(pieces):
        start, end = starts.get(i, i), ends.get(i, i)
        if piece.kind is PieceKind.BREAK or breaks[start] != breaks[end]:  # an inline element around blocks is none
            parts += [draft.finished(), piece.raw]
            draft = Draft(notation)
        elif piece.kind is PieceKind.END and start == i:  # an end tag that ends nothing is dropped
            draft.part()
        else:
            draft.add(piece, start)
    return [*parts, draft.finished()]


def _ends(pieces: Sequence[Piece]) -> dict[int, int]:
    """The end tag of each element that has one, where those are properly nested."""
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
