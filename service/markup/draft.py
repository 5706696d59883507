"""Assemble pieces to passages. As in a browser, white space is one space, or none at the edges of a text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from service.markup.passages import HTML, SPACE, Element, Notation, Passage
from service.markup.pieces import Piece, PieceKind, ends_of_elements
from service.text.aligned_words import closes
from service.text.spans import Span

OPAQUE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""A character that stands for an untranslated element in the text of a passage."""
RUNS = re.compile(rf"[{SPACE}]+|[^{SPACE}]+")
IN_WORDS = frozenset(("", "wbr", "sub", "sup", "rp", "rt", "script", "style"))
"""Names of untranslated elements that are not words, and may stand in a word or beside it; "" for a comment."""
MAX_REFERENCE_LENGTH = 40
"""Maximum length of a character reference: &CounterClockwiseContourIntegral;"""


def assemble(pieces: Sequence[Piece], notation: Notation = HTML) -> list[str | Passage]:
    """Return the unchanged parts of a text and the passages between them, in order."""
    ends = ends_of_elements((piece.kind, piece.tag) for piece in pieces)
    starts = {end: start for start, end in ends.items()}
    breaks = [*accumulate(piece.kind is PieceKind.BREAK for piece in pieces)]
    parts: list[str | Passage] = []
    draft = Draft(notation)
    for i, piece in enumerate(pieces):
        start, end = starts.get(i, i), ends.get(i, i)
        if piece.kind is PieceKind.BREAK or breaks[start] != breaks[end]:  # also an inline element around blocks
            parts += [draft.finish(), piece.raw]
            draft = Draft(notation)
        elif piece.kind is PieceKind.END and start == i:  # an end tag without a start tag is dropped
            draft.separate()
        else:
            draft.add(piece, start)
    return [*parts, draft.finish()]


@dataclass
class _Tag:
    """A start tag, an end tag or a mark, with white space beside it, except spaces of the text."""

    raw: str
    position: int
    """The number of the next character of the text."""
    end: "_Tag | None" = None
    """The end tag that belongs to a start tag. The end tag of a mark is the mark itself."""
    raw_of_other: str = ""
    is_image: bool = False


@dataclass
class Draft:
    """A passage under construction."""

    notation: Notation = HTML
    _text: list[str] = field(default_factory=list)
    _written: list[str] = field(default_factory=list)
    _keep: list[Span] = field(default_factory=list)
    _before: str = ""
    _tags: list[_Tag] = field(default_factory=list)
    _open: dict[int, tuple[_Tag, str]] = field(default_factory=dict)
    _n_before_space: int = 0
    """The number of tags before the last space of the text."""
    _after_empty: bool = False
    """Whether the text is followed by a mark or an empty element."""
    _after_image: bool = False
    _after_end: bool = False
    """Whether the text is followed by the end tag of an element with text."""

    def add(self, piece: Piece, element: int) -> None:
        """Add a piece. A start tag and its end tag have the same number as `element`."""
        if piece.kind is PieceKind.TEXT:
            for run in RUNS.findall(piece.text):
                written = [*run] if piece.text == piece.raw else [piece.raw]
                self._add_space("".join(written)) if run[0] in SPACE else self._add_visible([*run], written)
        elif piece.kind is PieceKind.OPAQUE:
            self._add_visible([OPAQUE], [piece.raw])
            self._keep.append(Span(len(self._text) - 1, len(self._text)))
        elif piece.kind is PieceKind.MARK:
            mark = self._add_tag(piece.raw)
            mark.end = mark
            self._after_empty = True
            mark.is_image = self._after_image = piece.tag not in IN_WORDS
        elif piece.kind is PieceKind.START:
            self._open[element] = self._add_tag(piece.raw), piece.tag
        else:
            while element in self._open:
                inner, (start, name) = self._open.popitem()
                self._close(start, piece.raw if inner == element else f"</{name}>")
                self._tags[-1].raw_of_other = piece.text

    def separate(self) -> None:
        """Keep the text and the next piece from forming a tag or a reference, as "&" and "lt;" would."""
        for i in range(len(self._written) - 1, max(0, len(self._written) - MAX_REFERENCE_LENGTH) - 1, -1):
            if self._written[i] in ("&", "<"):
                self._written[i] = self.notation.escapes[self._written[i]]
            if not self._written[i].isalnum() and self._written[i] != "#":
                break

    def finish(self) -> str | Passage:
        """Return the passage, or its tags and white space if it has no text."""
        while self._open:
            _, (start, name) = self._open.popitem()
            self._close(start, f"</{name}>")
        if not self._text:
            return "".join([self._before, *(tag.raw for tag in self._tags)])
        after = ""
        if self._text[-1] == " " and not self._give_space_away():
            self._text.pop()
            after = self._written.pop()
        elements = self._elements()
        first, last = 0, len(elements)
        while first < last and _is_at(elements[first], 0):
            first += 1
        while first < last and _is_at(elements[last - 1], len(self._text)):
            last -= 1
        before = self._before + "".join(element.start_tag for element in elements[:first])
        after = "".join(element.start_tag for element in elements[last:]) + after
        inside = [element.moved(0, -first) for element in elements[first:last]]
        return Passage("".join(self._text), self._written, before, after, inside, self._keep, self.notation)

    def _add_space(self, space: str) -> None:
        if self._after_end and self._text[-1] == " ":
            self._give_space_away()  # keeps the space between two words outside the element
        if self._text and self._text[-1] != " ":
            self._n_before_space = len(self._tags)
            self._put([" "], [space])
        elif self._text and self._n_before_space == len(self._tags):
            self._written[-1] += space
        elif self._tags:
            self._tags[-1].raw += space
        else:
            self._before += space

    def _add_visible(self, text: list[str], written: list[str]) -> None:
        if self._after_image and self._text and self._text[-1].isalnum() and text[0].isalnum():
            self._n_before_space = len(self._tags)
            self._put([" "], [""])  # an image stands between words, not in a word
        if self._after_empty and self._text[-1:] == [" "] and self._tags[-1].raw[-1] not in SPACE and closes(text[0]):
            self._give_space_away()
        self._put(text, written)

    def _put(self, text: list[str], written: list[str]) -> None:
        self._text += text
        self._written += written
        self._after_empty = self._after_image = self._after_end = False

    def _add_tag(self, raw: str) -> _Tag:
        self._tags.append(_Tag(raw, len(self._text)))
        return self._tags[-1]

    def _close(self, start: _Tag, end_tag: str) -> None:
        start.end = self._add_tag(end_tag)
        is_empty = start.position == start.end.position
        self._after_empty, self._after_end = self._after_empty or is_empty, self._after_end or not is_empty

    def _give_space_away(self) -> bool:
        """Move the last space of the text to the first tag after it. Return whether there is such a tag."""
        behind = self._tags[self._n_before_space :]
        if not behind:
            return False
        self._text.pop()
        behind[0].raw = self._written.pop() + behind[0].raw
        for tag in behind:
            tag.position -= 1
        return True

    def _elements(self) -> list[Element]:
        elements: list[Element] = []
        inside: list[tuple[int, _Tag]] = []
        empty: list[str] = []
        end: _Tag | None = None
        for tag in self._tags:
            parent = inside[-1][0] if inside else None
            if end is None and inside and tag is inside[-1][1]:
                inside.pop()
                continue
            if end is None and tag.end is not None and tag.position < tag.end.position:
                inside.append((len(elements), tag.end))
                span, other = Span(tag.position, tag.end.position), tag.end.raw_of_other
                elements.append(Element(span, tag.raw, tag.end.raw, parent, end_tag_of_other=other))
                continue
            end = end or tag.end
            empty.append(tag.raw)
            if tag is end:
                elements.append(Element(Span(tag.position, tag.position), "".join(empty), "", parent, tag.is_image))
                empty, end = [], None
        return elements


def _is_at(element: Element, position: int) -> bool:
    return element.parent is None and element.span.start == element.span.end == position
