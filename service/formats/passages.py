"""Passages: the text between two block-level tags, and the inline elements in it.

White space in a passage is one space, and that around it is none of its text, as in a browser.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import takewhile

from service.formats.projection import Part, project
from service.formats.tags import Piece, PieceKind
from service.text.restoration import Restored
from service.text.scripts import is_unspaced
from service.text.spans import Span

OPAQUE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands in a passage's text for an element that is not translated."""


SPACE = " \t\n\r\f"
RUNS = re.compile(rf"[{SPACE}]+|[^{SPACE}]+")


@dataclass(frozen=True)
class Element:
    """An inline element, and the span of its passage's text that is inside.

    An element that is kept and has no text (an image, a comment) is a start tag alone.
    """

    span: Span
    start_tag: str
    end_tag: str
    parent: int | None
    """The number of the element that it is in."""


@dataclass(frozen=True)
class Opaque:
    """An inline element that is not translated, and its place in the passage's text."""

    span: Span
    raw: str


@dataclass(frozen=True)
class Passage:
    """Text between two block-level tags."""

    text: str
    before: str
    """What stands between the tag before it and the text, such as white space."""
    after: str
    elements: list[Element]
    """Each after its parent; those of one parent in order."""
    opaque: list[Opaque]

    @property
    def keep(self) -> list[Span]:
        """Spans of the text that a translation is to have as they are."""
        return [piece.span for piece in self.opaque]

    def render(self, translation: Restored) -> str:
        """The HTML of a translation, which has the opaque pieces among its copies."""
        characters = [escape(character, quote=False) for character in translation.text]
        for piece, span in zip(self.opaque, _places(self.keep, translation), strict=True):
            characters[span.start] = piece.raw
        parts = [Part(element.span, element.parent) for element in self.elements]
        places = project(parts, self.text, translation.text, translation.align_words(), translation.copies)
        return "".join([self.before, *self._tagged(characters, places), self.after])

    def _tagged(self, characters: list[str], places: list[Span]) -> Iterator[str]:
        children: dict[int | None, list[int]] = {}
        for i in sorted(range(len(places)), key=lambda i: places[i].pair):
            children.setdefault(self.elements[i].parent, []).append(i)
        position = 0
        open_elements: list[tuple[int | None, Iterator[int]]] = [(None, iter(children.get(None, [])))]
        while open_elements:
            parent, inside = open_elements[-1]
            child = next(inside, None)
            reached = places[child].start if child is not None else len(characters)
            if child is None and parent is not None:
                reached = places[parent].end
            yield from characters[position:reached]
            position = reached
            if child is not None:
                tag, beside = self.elements[child].start_tag, "".join(characters[max(0, position - 1) : position + 1])
                yield tag.strip(SPACE) if is_unspaced(beside) else tag
                open_elements.append((child, iter(children.get(child, []))))
            else:
                yield self.elements[parent].end_tag if parent is not None else ""
                open_elements.pop()


@dataclass(eq=False)
class _Node:
    """An element or mark: its characters of the text, and its pieces of the HTML."""

    start: int
    first: int
    start_tag: str
    parent: "_Node | None"
    name: str = ""
    end: int = 0
    last: int = 0
    end_tag: str = ""

    space: str = ""
    """White space before an empty element."""

    @property
    def is_open(self) -> bool:
        return self.last == 0

    @property
    def is_empty(self) -> bool:
        return self.start == self.end


class Draft:
    """A passage while it is read."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._length = 0
        self._html: list[str] = []
        self._nodes: list[_Node] = []
        self._open: dict[int, _Node] = {}
        self._opaque: list[Opaque] = []
        self._leading: list[int] = []
        self._space = 0
        """The piece of the HTML that the text's last space is."""
        self._around_space: _Node | None = None
        """The element that this space is in."""
        self._tag: _Node | None = None
        """The mark or empty element, or a start tag behind one, that was read last: more white space than the text
        needs goes to it."""
        self._after_image = False

    def add(self, piece: Piece, element: int) -> None:
        """Read on.

        Args:
            element: the same number for a start tag and its end tag.
        """
        if piece.kind is PieceKind.TEXT:
            for run in RUNS.findall(piece.raw):
                self._add_space(run) if run[0] in SPACE else self._add_visible(run, run)
        elif piece.kind is PieceKind.OPAQUE:
            self._add_visible(OPAQUE, piece.raw)
            self._opaque.append(Opaque(Span(self._length - 1, self._length), piece.raw))
        elif piece.kind is PieceKind.MARK:
            self._close(self._node(piece), "")
            self._after_image = piece.tag not in ("", "wbr")
        elif piece.kind is PieceKind.START:
            self._open[element] = self._node(piece)
            self._tag = self._open[element] if self._tag else None
        else:
            while element in self._open:
                inner, node = self._open.popitem()
                self._close(node, piece.raw if inner == element else f"</{node.name}>")

    def finished(self) -> str | Passage:
        """The passage; its HTML if it has no text."""
        while self._open:
            _, node = self._open.popitem()
            self._close(node, f"</{node.name}>")
        text = "".join(self._text).rstrip(SPACE)
        if not text:
            return "".join(self._html)
        is_last = len(text) < self._length and not self._gives_space_away()
        nodes, inside_empty = self._folded(len(text))
        before = {i for i in self._leading if i not in inside_empty}
        after = {self._space} - inside_empty if is_last else set()
        first, last = 0, len(nodes)
        while first < last and _is_at(nodes[first], 0):
            before.update(range(nodes[first].first, nodes[first].last))
            first += 1
        while first < last and _is_at(nodes[last - 1], len(text)):
            last -= 1
            after.update(range(nodes[last].first, nodes[last].last))
        numbers = {node: i for i, node in enumerate(nodes[first:last])}
        elements = [
            Element(
                Span(node.start, node.end), node.start_tag, node.end_tag, numbers[node.parent] if node.parent else None
            )
            for node in nodes[first:last]
        ]
        return Passage(text, self._joined(before), self._joined(after), elements, self._opaque)

    def _add_space(self, space: str) -> None:
        self._html.append(space)
        if self._text and self._text[-1] != " ":
            self._put(" ")
            self._space, self._around_space = len(self._html) - 1, self._innermost()
        elif self._tag is not None and self._tag.is_open:
            self._tag.start_tag += space
        elif self._tag is not None:
            self._tag.last = len(self._html)
        elif not self._text:
            self._leading.append(len(self._html) - 1)
        elif self._gives_space_away():
            self._space, self._around_space = len(self._html) - 1, self._innermost()

    def _add_visible(self, text: str, html: str) -> None:
        if self._after_image and self._text and self._text[-1] != " ":
            self._put(" ")  # an image is between words, not in one
        self._put(text)
        self._html.append(html)

    def _put(self, text: str) -> None:
        self._text.append(text)
        self._length += len(text)
        self._tag, self._after_image = None, False

    def _node(self, piece: Piece) -> _Node:
        node = _Node(self._length, len(self._html), piece.raw, self._innermost(), piece.tag)
        self._nodes.append(node)
        self._html.append(piece.raw)
        return node

    def _innermost(self) -> _Node | None:
        return next(reversed(self._open.values()), None)

    def _close(self, node: _Node, end_tag: str) -> None:
        self._html.append(end_tag)
        node.end, node.last, node.end_tag = self._length, len(self._html), end_tag
        self._tag = node if node.is_empty else None

    def _gives_space_away(self) -> bool:
        """Give the text's last space to the marks behind it in the same element, if there are any, since more white
        space or the end of the text follows the element; whether that was done."""
        behind = [*takewhile(lambda node: node.first > self._space, reversed(self._nodes))]
        if not behind or behind[-1].parent is None:
            return False
        behind[-1].space = self._html[self._space]
        around = self._around_space
        while around is not None and not around.is_open:
            around.end = self._length - 1
            around = around.parent
        for node in behind:
            node.start = node.end = self._length - 1
        return True

    def _joined(self, pieces: set[int]) -> str:
        return "".join(self._html[i] for i in sorted(pieces))

    def _folded(self, length: int) -> tuple[list[_Node], set[int]]:
        """The nodes, where an empty one is a start tag with all that is in it; and the pieces of HTML inside empty
        nodes."""
        nodes: list[_Node] = []
        inside: set[int] = set()
        for node in self._nodes:
            node.start, node.end = min(node.start, length), min(node.end, length)
            if not node.is_empty:
                nodes.append(node)
            elif node.first not in inside:
                inside.update(range(node.first, node.last))
                node.start_tag, node.end_tag = node.space + "".join(self._html[node.first : node.last]), ""
                nodes.append(node)
        return nodes, inside


def _is_at(node: _Node, position: int) -> bool:
    """Whether a node is empty, at this edge of the passage, and in no element."""
    return node.parent is None and node.start == node.end == position


def _places(spans: Iterable[Span], translation: Restored) -> Iterator[Span]:
    """Where the translation has copies of spans, which are in order."""
    copies = iter(translation.copies)
    source, target = Span(0, 0), Span(0, 0)
    for span in spans:
        while source.end < span.end:
            source, target = next(copies)
        yield Span(span.start - source.start + target.start, span.end - source.start + target.start)
