"""Convert a paragraph of an Office file to HTML, and translated HTML back to the paragraph.

Text in the most frequent style has no tag. Text in other styles, links and inline objects have numbered tags, which
alignment moves to the translations of their words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from html import escape, unescape
from itertools import groupby

from lxml import etree

from service.documents.contents import DEFAULT_OPTIONS, ReadOptions
from service.documents.line_breaks import join_lines, part_lines
from service.documents.office_nodes import (
    LAST,
    NO_BREAK_HYPHEN,
    PROPERTIES,
    Element,
    Group,
    Node,
    NonText,
    RunChild,
    Text,
    attribute,
    attribute_name,
    content_of,
    is_drawing,
    local_name,
    nodes_of,
    text_element,
)
from service.documents.office_styles import properties_of, styles_of, typical, vertical_tag

TAG = re.compile(r"(<[^<>]*>)")
NUMBER = re.compile(r"\bid=\"(\d+)\"")
INVALID_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

HYPHENATED = re.compile(rf"(?<!\w)\w++(?:[-{NO_BREAK_HYPHEN}]\w++)+")
PARAGRAPH = -1
"""The number of the paragraph itself, where others have the number of a group."""


class OfficeParagraph:
    """A paragraph of Word or of DrawingML, read once and changed only when a translation is written.

    Args:
        options: tell the source language. Text that is marked as another language is kept apart.
    """

    def __init__(self, element: Element, options: ReadOptions = DEFAULT_OPTIONS) -> None:
        self._element = element
        self._options = options
        self._numbered: list[Node] = []
        """The nodes with tags, by number. A text node stands for all text in its style."""
        self._plain: dict[int, Text] = {}
        """The style of text without a tag, by the number of its group."""
        nodes = nodes_of(element)
        self.has_words = any(map(str.isalnum, _text(nodes)))
        words = HYPHENATED.findall(_text(nodes))
        self._unbroken = {_with_hyphens(word).lower() for word in words if NO_BREAK_HYPHEN in word}
        """The words with hyphens that must not break, which are read as plain hyphens."""
        html = _with_hyphens("".join(self._html(nodes, PARAGRAPH))) if self.has_words else ""
        self.html, self._lines = join_lines(html, self._is_layout, options.source)

    def write(self, translation: str) -> None:
        """Replace the text by a translation. Inline objects that the translation lost go to the end."""
        _unbind_controls(self._element)
        _empty(self._element)
        missing = {number for number, node in enumerate(self._numbered) if isinstance(node, NonText)}
        inside: list[tuple[Element, Text | None, Sequence[RunChild]]]
        inside = [(self._element, self._plain.get(PARAGRAPH), ())]
        for i, part in enumerate(TAG.split(part_lines(translation, self._lines))):
            into, style, _ = inside[-1]
            number = NUMBER.search(part) if i % 2 else None
            if i % 2 == 0:
                self._put_text(self._with_unbroken(unescape(part)), style, into)
            elif part.startswith("</") and len(inside) > 1:
                self._put(inside.pop()[2], into)
            elif number is not None:
                node = self._numbered[int(number[1])]
                if isinstance(node, NonText):
                    self._put(node.children, into)
                    missing.discard(int(number[1]))
                elif isinstance(node, Text):
                    inside.append((into, node, ()))
                else:
                    inside.append((self._begin(node, into), self._plain.get(int(number[1]), style), node.end))
        for number_left in sorted(missing):
            node = self._numbered[number_left]
            assert isinstance(node, NonText)
            self._put(node.children, self._element)
        for last in self._element.findall(f"{{*}}{LAST}"):
            self._element.append(last)

    def _html(self, nodes: Sequence[Node], group: int) -> Iterator[str]:
        styles = styles_of(nodes, self._options)
        sizes: Counter[bytes] = Counter()
        for node, style in zip(nodes, styles, strict=True):
            if isinstance(node, Text) and style is not None:
                sizes[style] += len(node.text)
        most = max(sizes, key=lambda style: sizes[style], default=None)
        if most is not None:
            self._plain[group] = typical([node for node, style in zip(nodes, styles, strict=True) if style == most])
        for style, run in groupby(zip(nodes, styles, strict=True), key=lambda pair: pair[1]):
            alike = [node for node, _ in run]
            if style is None:
                for node in alike:
                    yield from self._tag_node(node)
            elif text := escape(_text(alike), quote=False):
                if style == most:
                    yield text
                else:
                    text_node = typical(alike)
                    number = self._number(text_node)
                    name = vertical_tag(text_node) or f"g{number}"
                    yield f'<{name} id="{number}">{text}</{name}>'

    def _is_layout(self, number: int) -> bool:
        """Return whether a break is of a line, and not of a column or a page, or a tab."""
        node = self._numbered[number]
        assert isinstance(node, NonText)
        element = node.children[0].element
        return local_name(element) in ("br", "cr") and attribute(element, "type") in ("", "textWrapping")

    def _tag_node(self, node: Node) -> Iterator[str]:
        number = self._number(node)
        if isinstance(node, Group):
            yield f'<{node.tag} id="{number}">'
            yield from self._html(node.nodes, number)
            yield f"</{node.tag}>"
        elif isinstance(node, NonText):
            yield f'<{node.tag} id="{number}"{"/" * (node.tag == "x")}>'

    def _number(self, node: Node) -> int:
        self._numbered.append(node)
        return len(self._numbered) - 1

    def _begin(self, group: Group, into: Element) -> Element:
        """Begin a group, and return the element that takes its content."""
        self._put(group.begin, into)
        if group.element is None:
            return into
        content = content_of(group.element)
        _empty(content)
        into.append(group.element)
        return content

    def _put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            (into if child.run is None else self._run(child.run, into)).append(child.element)

    def _with_unbroken(self, text: str) -> str:
        """Return a text in which the hyphens of these words do not break."""

        def unbroken(word: re.Match[str]) -> str:
            return word[0].replace("-", NO_BREAK_HYPHEN) if word[0].lower() in self._unbroken else word[0]

        return HYPHENATED.sub(unbroken, text) if self._unbroken else text

    def _put_text(self, text: str, style: Text | None, into: Element) -> None:
        text = INVALID_XML.sub("", text)
        for i, part in enumerate([text] if is_drawing(self._element) else text.split(NO_BREAK_HYPHEN)):
            if i > 0:
                self._new("noBreakHyphen", self._run(style and style.child.run, into))
            if part:
                self._run(style and style.child.run, into).append(text_element(self._name("t"), part))

    def _run(self, like: Element | None, into: Element) -> Element:
        """Append a run with the style of another run."""
        run = self._new("r", into)
        properties = None if like is None else properties_of(like)
        if properties is not None:
            run.append(deepcopy(properties))
        return run

    def _new(self, name: str, into: Element) -> Element:
        return etree.SubElement(into, self._name(name))

    def _name(self, name: str) -> str:
        """Return a name in the paragraph's namespace."""
        return attribute_name(self._element, name)


def _with_hyphens(text: str) -> str:
    return text.replace(NO_BREAK_HYPHEN, "-")


def _text(nodes: Sequence[Node]) -> str:
    parts = (
        _text(node.nodes) if isinstance(node, Group) else node.text for node in nodes if not isinstance(node, NonText)
    )
    return "".join(parts)


def _unbind_controls(paragraph: Element) -> None:
    """Let content controls in and around a paragraph show its text, and not the data that they are bound to."""
    for control in [*paragraph.iter("{*}sdt"), *paragraph.iterancestors("{*}sdt")]:
        for binding in control.findall("{*}sdtPr/{*}dataBinding"):
            binding.getparent().remove(binding)


def _empty(element: Element) -> None:
    for child in [*element]:
        if local_name(child) not in PROPERTIES:
            element.remove(child)
