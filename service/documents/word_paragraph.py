"""A paragraph of Word as HTML, and the paragraph again of translated HTML.

What most of the text looks like needs no tag. Runs that look otherwise, links, and what is no text have tags with
numbers, which go where the words went that they were around.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from html import escape, unescape
from itertools import groupby

from lxml import etree

from service.documents.word_nodes import (
    NO_BREAK_HYPHEN,
    PROPERTIES,
    SPACE,
    Element,
    Group,
    Kept,
    Node,
    Piece,
    Text,
    attribute,
    content_of,
    local_name,
    nodes_of,
)

TAG = re.compile(r"(<[^<>]*>)")
NUMBER = re.compile(r"\bid=\"(\d+)\"")
NO_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

NO_LOOK = {"lang", "noProof", "rPrChange", "ins", "del", "moveFrom", "moveTo"}
"""Properties of a run that nobody sees."""
RAISED = {"superscript": "sup", "subscript": "sub"}

PARAGRAPH = -1
"""In place of a group's number."""


class Paragraph:
    """Reads a paragraph, which changes only when a translation is written."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._numbered: list[Node] = []
        """What has a tag, by its number. A text stands for all that looks like it."""
        self._plain: dict[int, Text] = {}
        """What text without a tag looks like, by the number of its group."""
        nodes = nodes_of(element)
        self.has_words = any(map(str.isalnum, _text(nodes)))
        self.html = "".join(self._html(nodes, PARAGRAPH)) if self.has_words else ""

    def write(self, translation: str) -> None:
        """Put this in place of the text. What is lost of all that is no text goes to the end."""
        _empty(self._element)
        missing = {number for number, node in enumerate(self._numbered) if isinstance(node, Kept)}
        inside: list[tuple[Element, Text | None, Sequence[Piece]]] = [(self._element, self._plain.get(PARAGRAPH), ())]
        for i, part in enumerate(TAG.split(translation)):
            into, look, _ = inside[-1]
            number = NUMBER.search(part) if i % 2 else None
            if i % 2 == 0:
                self._put_text(unescape(part), look, into)
            elif part.startswith("</") and len(inside) > 1:
                self._put(inside.pop()[2], into)
            elif number is not None:
                node = self._numbered[int(number[1])]
                if isinstance(node, Kept):
                    self._put(node.pieces, into)
                    missing.discard(int(number[1]))
                elif isinstance(node, Text):
                    inside.append((into, node, ()))
                else:
                    inside.append((self._begin(node, into), self._plain.get(int(number[1]), look), node.end))
        for number_left in sorted(missing):
            node = self._numbered[number_left]
            assert isinstance(node, Kept)
            self._put(node.pieces, self._element)

    def _html(self, nodes: Sequence[Node], group: int) -> Iterator[str]:
        looks = _looks(nodes)
        sizes: Counter[bytes] = Counter()
        for node, look in zip(nodes, looks, strict=True):
            if isinstance(node, Text) and look is not None:
                sizes[look] += len(node.text)
        most = max(sizes, key=lambda look: sizes[look], default=None)
        for look, run in groupby(zip(nodes, looks, strict=True), key=lambda pair: pair[1]):
            alike = [node for node, _ in run]
            if look is None:
                for node in alike:
                    yield from self._tagged(node)
            elif text := escape(_text(alike), quote=False):
                first = alike[0]
                assert isinstance(first, Text)
                if look == most:
                    self._plain.setdefault(group, first)
                    yield text
                else:
                    number = self._number(first)
                    name = _raised(first) or f"g{number}"
                    yield f'<{name} id="{number}">{text}</{name}>'

    def _tagged(self, node: Node) -> Iterator[str]:
        number = self._number(node)
        if isinstance(node, Group):
            yield f'<{node.tag} id="{number}">'
            yield from self._html(node.nodes, number)
            yield f"</{node.tag}>"
        elif isinstance(node, Kept):
            yield f'<{node.tag} id="{number}"{"/" * (node.tag == "x")}>'

    def _number(self, node: Node) -> int:
        self._numbered.append(node)
        return len(self._numbered) - 1

    def _begin(self, group: Group, into: Element) -> Element:
        """Begin a group; what is in it goes into the element returned."""
        self._put(group.begin, into)
        if group.element is None:
            return into
        content = content_of(group.element)
        _empty(content)
        into.append(group.element)
        return content

    def _put(self, pieces: Sequence[Piece], into: Element) -> None:
        for piece in pieces:
            (into if piece.run is None else self._run(piece.run, into)).append(piece.element)

    def _put_text(self, text: str, look: Text | None, into: Element) -> None:
        for i, part in enumerate(NO_XML.sub("", text).split(NO_BREAK_HYPHEN)):
            if i > 0:
                self._new("noBreakHyphen", self._run(look and look.piece.run, into))
            if part:
                element = self._new("t", self._run(look and look.piece.run, into))
                element.text = part
                element.set(SPACE, "preserve")

    def _run(self, like: Element | None, into: Element) -> Element:
        """A new run that looks like another one."""
        run = self._new("r", into)
        properties = None if like is None else _properties(like)
        if properties is not None:
            run.append(deepcopy(properties))
        return run

    def _new(self, name: str, into: Element) -> Element:
        return etree.SubElement(into, etree.QName(etree.QName(self._element).namespace, name))


def _text(nodes: Sequence[Node]) -> str:
    parts = (
        _text(node.nodes) if isinstance(node, Group) else node.text for node in nodes if not isinstance(node, Kept)
    )
    return "".join(parts)


def _looks(nodes: Sequence[Node]) -> list[bytes | None]:
    """What each text looks like; a space between two that look alike as they do. None for what is no text."""
    looks = [_look(node.piece.run) if isinstance(node, Text) else None for node in nodes]
    for i in range(1, len(nodes) - 1):
        node = nodes[i]
        if isinstance(node, Text) and node.text.isspace() and looks[i - 1] == looks[i + 1] is not None:
            looks[i] = looks[i - 1]
    return looks


def _look(run: Element) -> bytes:
    properties = _properties(run)
    seen = () if properties is None else (one for one in properties if local_name(one) not in NO_LOOK)
    return b"".join(etree.tostring(one, with_tail=False) for one in seen)


def _properties(run: Element) -> Element | None:
    return next((child for child in run if local_name(child) == "rPr"), None)


def _raised(text: Text) -> str:
    properties = _properties(text.piece.run)
    raised = (one for one in (() if properties is None else properties) if local_name(one) == "vertAlign")
    return next((RAISED.get(attribute(one, "val"), "") for one in raised), "")


def _empty(element: Element) -> None:
    for child in [*element]:
        if local_name(child) not in PROPERTIES:
            element.remove(child)
