"""Convert a paragraph of a document to HTML, and translated HTML back to the paragraph.

Text in the most frequent style has no tag. Text in other styles, links and inline objects have numbered tags, which
alignment moves to the translations of their words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

from service.documents.archive import INVALID_XML
from service.documents.contents import ReadOptions
from service.documents.inline_tags import escaped, texts_and_tags
from service.documents.office.line_breaks import join_lines, part_lines
from service.documents.office.nodes import NO_BREAK_HYPHEN, Element, Group, Node, NonText, RunChild, Text

HYPHENATED = re.compile(rf"(?<!\w)\w++(?:[-{NO_BREAK_HYPHEN}]\w++)+")
PARAGRAPH = -1
"""The number of the paragraph itself, where others have the number of a group."""


class InlineXml(Protocol):
    """How a kind of document writes text and its styles in XML. A run gives a text its style. The methods with a body
    are for text without styles and groups."""

    def nodes(self, paragraph: Element) -> Sequence[Node]:
        """Return the nodes of a paragraph."""

    def style(self, run: Any) -> bytes:  # noqa: ARG002
        """Return the visible style of a run. Equal styles have equal bytes."""
        return b""

    def exact_style(self, run: Any) -> bytes:  # noqa: ARG002
        """Return all properties of a run, also those that no reader sees."""
        return b""

    def raised(self, run: Any) -> str:  # noqa: ARG002
        """Return the element of HTML for raised or lowered text: sup, sub, or ""."""
        return ""

    def is_line_break(self, element: Element) -> bool:  # noqa: ARG002
        """Return whether a break is of a line, and not of a column or a page, or a tab."""
        return False

    def content_of(self, group: Element) -> Element:
        """Return the element that contains the runs of a group."""
        return group

    def empty(self, element: Element) -> None:
        """Remove the text and the runs of a paragraph or a group."""

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        """Append elements, each in a run like its own."""

    def put_text(self, text: str, run: Any, into: Element) -> None:
        """Append text in a run like `run`; None: without a style."""

    def close(self, paragraph: Element) -> None:  # noqa: ARG002
        """Put elements behind the text of a paragraph there."""
        return


class InlineParagraph:
    """A paragraph. Its sentences are found in the source language of the options. Only `write` changes it."""

    def __init__(self, element: Element, xml: InlineXml, options: ReadOptions) -> None:
        self._element = element
        self._xml = xml
        self._numbered: list[Node] = []
        """The nodes with tags, by number. A text node stands for all text in its style."""
        self._plain: dict[int, Text] = {}
        """The style of text without a tag, by the number of its group."""
        nodes = xml.nodes(element)
        self.has_words = any(map(str.isalnum, _text(nodes)))
        words = HYPHENATED.findall(_text(nodes))
        self._unbroken = {_with_hyphens(word).lower() for word in words if NO_BREAK_HYPHEN in word}
        """The words with hyphens that must not break, which are read as plain hyphens."""
        html = _with_hyphens("".join(self._html(nodes, PARAGRAPH))) if self.has_words else ""
        self.html, self._lines = join_lines(html, self._is_line_break, options.source)

    def write(self, translation: str) -> None:
        """Replace the text by a translation. Inline objects that the translation lost go to the end."""
        xml = self._xml
        xml.empty(self._element)
        missing = {number: node for number, node in enumerate(self._numbered) if isinstance(node, NonText)}
        inside: list[tuple[Element, Text | None, Sequence[RunChild]]]
        inside = [(self._element, self._plain.get(PARAGRAPH), ())]
        for part in texts_and_tags(part_lines(translation, self._lines)):
            into, style, _ = inside[-1]
            if isinstance(part, str):
                text = self._with_unbroken(INVALID_XML.sub("", part))
                xml.put_text(text, style and style.child.run, into)
            elif part.is_end and len(inside) > 1:
                xml.put(inside.pop()[2], into)
            elif part.number is not None:
                node = self._numbered[part.number]
                if isinstance(node, NonText):
                    xml.put(node.children, into)
                    missing.pop(part.number, None)
                elif isinstance(node, Text):
                    inside.append((into, node, ()))
                else:
                    inside.append((self._begin(node, into), self._plain.get(part.number, style), node.end))
        for node in missing.values():
            xml.put(node.children, self._element)
        xml.close(self._element)

    def _html(self, nodes: Sequence[Node], group: int) -> Iterator[str]:
        styles = self._styles(nodes)
        sizes: Counter[bytes] = Counter()
        for node, style in zip(nodes, styles, strict=True):
            if isinstance(node, Text) and style is not None:
                sizes[style] += len(node.text)
        most = max(sizes, key=sizes.__getitem__, default=None)
        if most is not None:
            alike = [node for node, style in zip(nodes, styles, strict=True) if style == most]
            self._plain[group] = self._typical(alike)
        for style, run in groupby(zip(nodes, styles, strict=True), key=lambda pair: pair[1]):
            alike = [node for node, _ in run]
            if style is None:
                for node in alike:
                    yield from self._tag_node(node)
            elif text := escaped(_text(alike)):
                if style == most:
                    yield text
                else:
                    text_node = self._typical(alike)
                    number = self._number(text_node)
                    name = self._xml.raised(text_node.child.run) or f"g{number}"
                    yield f'<{name} id="{number}">{text}</{name}>'

    def _is_line_break(self, number: int) -> bool:
        node = self._numbered[number]
        return isinstance(node, NonText) and self._xml.is_line_break(node.children[0].element)

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
        self._xml.put(group.begin, into)
        if group.element is None:
            return into
        content = self._xml.content_of(group.element)
        self._xml.empty(content)
        self._xml.put([RunChild(group.run, group.element)], into)
        return content

    def _with_unbroken(self, text: str) -> str:
        """Return a text with no-break hyphens in words that have them in the source."""

        def unbroken(word: re.Match[str]) -> str:
            return word[0].replace("-", NO_BREAK_HYPHEN) if word[0].lower() in self._unbroken else word[0]

        return HYPHENATED.sub(unbroken, text) if self._unbroken else text

    def _typical(self, nodes: Sequence[Node]) -> Text:
        """Return a text of one style whose properties, also invisible ones, most of the characters have."""
        sizes: Counter[bytes] = Counter()
        texts: dict[bytes, Text] = {}
        for node in nodes:
            assert isinstance(node, Text)
            if len(nodes) == 1:
                return node
            exact = self._xml.exact_style(node.child.run)
            sizes[exact] += len(node.text)
            texts.setdefault(exact, node)
        return texts[max(sizes, key=sizes.__getitem__)]

    def _styles(self, nodes: Sequence[Node]) -> list[bytes | None]:
        """Return the style of each text node, else None. A space between two nodes of a style has it too."""
        styles = [self._xml.style(node.child.run) if isinstance(node, Text) else None for node in nodes]
        for i in range(1, len(nodes) - 1):
            node = nodes[i]
            if isinstance(node, Text) and node.text.isspace() and styles[i - 1] == styles[i + 1] is not None:
                styles[i] = styles[i - 1]
        return styles


def _with_hyphens(text: str) -> str:
    return text.replace(NO_BREAK_HYPHEN, "-")


def _text(nodes: Sequence[Node]) -> str:
    shown = (node for node in nodes if not isinstance(node, NonText))
    return "".join(_text(node.nodes) if isinstance(node, Group) else node.text for node in shown)
