"""The text of an OpenDocument paragraph: text and spans become nodes, and translated text is written in spans again.

Spans may be nested: a run is the chain of spans around a text.
"""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from service.documents.contents import ReadOptions
from service.documents.office.nodes import (
    LINK,
    Element,
    Group,
    Node,
    NonText,
    RunChild,
    Text,
    attribute,
    local_name,
    with_ranges,
)
from service.documents.office.open_document_languages import foreign_mark

TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
DRAWING = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
SPACES = re.compile(r"[ \t\r\n]+")
"""White space, which is one space in OpenDocument."""
WIDE_SPACES = re.compile(r"( {2,})")
FEW_SPACES = ("", "1", "2")
"""Numbers of spaces between words. More stand between columns, as a tab does."""

GROUPS = {"a", "meta", "meta-field"}
IGNORED = {"", "soft-page-break"}
"""Names of elements that are left out: comments ("") and notes on the old text."""
BREAKS = {"tab", "line-break"}
MARK = re.compile(r"note|change|.*-mark|bookmark|.*-(?:start|end)")
"""Names of elements of text that are no words. All others are fields, such as a page number."""
INVISIBLE = re.compile(
    r"(?:language|country|script|rfc-language-tag)(?:-\w+)?|(?:paragraph-)?rsid|letter-(?:spacing|kerning)"
    r"|text-scale|hyphenate"
)
"""Properties of text that no reader sees, or that change from word to word and mean nothing."""

Run = tuple[Element, ...]


class SpanXml:
    """Spans of a part.

    Args:
        root: the part, with the automatic styles that its spans name.
        options: tell the source language. Text that is marked as another language is kept apart.
    """

    def __init__(self, root: Element, options: ReadOptions) -> None:
        self._looks: dict[str, bytes] = {}
        self._raised: dict[str, str] = {}
        for style in root.iterfind("{*}automatic-styles/{*}style"):
            if attribute(style, "family") != "text":
                continue
            properties = [pair for one in style.iterfind("{*}text-properties") for pair in sorted(one.items())]
            seen = [(name, value) for name, value in properties if not INVISIBLE.fullmatch(etree.QName(name).localname)]
            foreign = [mark for one in style.iterfind("{*}text-properties") if (mark := foreign_mark(one, options))]
            parent = attribute(style, "parent-style-name")
            name = attribute(style, "name")
            looks = parent, seen, foreign
            self._looks[name] = repr(looks).encode() if any(looks) else b""
            position = next((value for key, value in seen if key.endswith("}text-position")), "")
            if position and not position.startswith("0"):
                self._raised[name] = "sub" if position.startswith(("sub", "-")) else "sup"

    def nodes(self, paragraph: Element) -> list[Node]:
        return with_ranges([*_nodes(paragraph, ())])

    def style(self, run: Run | None) -> bytes:
        names = [attribute(span, "style-name") for span in run or ()]
        return b"".join(self._looks.get(name, name.encode()) for name in names)

    def exact_style(self, run: Run) -> bytes:
        return b"|".join(attribute(span, "style-name").encode() for span in run)

    def raised(self, run: Run) -> str:
        return next((self._raised[name] for span in run if (name := attribute(span, "style-name")) in self._raised), "")

    def is_line_break(self, element: Element) -> bool:
        return local_name(element) == "line-break"

    def content_of(self, group: Element) -> Element:
        return group

    def empty(self, element: Element) -> None:
        element.text = None
        for child in [*element]:
            element.remove(child)

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            child.element.tail = None
            _spans(child.run, into).append(child.element)

    def put_text(self, text: str, run: Run | None, into: Element) -> None:
        if text:
            span = _spans(run, into)
            for i, part in enumerate(WIDE_SPACES.split(text)):
                _append(span, part if i % 2 == 0 else " ")
                if i % 2:
                    etree.SubElement(span, f"{{{TEXT}}}s", {f"{{{TEXT}}}c": str(len(part) - 1)})

    def close(self, paragraph: Element) -> None:
        """Do nothing: no element stands behind the text."""


def _nodes(parent: Element, run: Run) -> Iterator[Node]:
    yield from _text_nodes(parent.text, run, parent)
    for child in parent:
        yield from _nodes_of_child(child, run)
        yield from _text_nodes(child.tail, run, parent)


def _text_nodes(text: str | None, run: Run, element: Element) -> Iterator[Text]:
    if text:
        yield Text(SPACES.sub(" ", text), RunChild(run, element))


def _nodes_of_child(child: Element, run: Run) -> Iterator[Node]:
    name, as_child = local_name(child), [RunChild(run, child)]
    if name == "span":
        yield from _nodes(child, (*run, child))
    elif name == "s" and (count := attribute(child, "c")) in FEW_SPACES:
        yield Text(" " * int(count or 1), as_child[0])
    elif name in BREAKS or name == "s":
        yield NonText("br", as_child)
    elif name in GROUPS:
        yield Group(LINK if name == "a" else "ins", [*_nodes(child, ())], child, run=run)
    elif name == "ruby":  # the reading above the base is left out
        yield from (node for base in child.iterfind("{*}ruby-base") for node in _nodes(base, run))
    elif name and etree.QName(child).namespace == DRAWING:
        yield NonText("img" if attribute(child, "anchor-type") == "as-char" else "wbr", as_child)
    elif name not in IGNORED:
        is_field = child.text and not MARK.fullmatch(name)
        yield NonText("x" if is_field else "wbr", as_child)


def _spans(run: Run | None, into: Element) -> Element:
    """Append copies of the spans of a run, one in the other, and return the innermost."""
    for span in run or ():
        into = etree.SubElement(into, span.tag, dict(span.items()))
    return into


def _append(element: Element, text: str) -> None:
    """Append text behind the last child."""
    last = next(element.iterchildren(reversed=True), None)  # lxml counts all children for len(element)
    if last is not None:
        last.tail = (last.tail or "") + text
    else:
        element.text = (element.text or "") + text
