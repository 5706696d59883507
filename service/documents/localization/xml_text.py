"""XML that people write and read: its elements with their places, so that a text can change where it is.

The file is checked by a parser first. Then its tags, comments and sections are found by pattern.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

from service.documents.archive import parse_xml
from service.text.spans import Span

_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<(?P<close>/?)(?P<name>[^\s/>]+)(?P<attributes>(?:[^\"'>/]|/(?!>)|\"[^\"]*+\"|'[^']*+')*+)(?P<empty>/?)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


@dataclass
class Element:
    """An element of a file.

    Args:
        name: its name, with the prefix that the file gives it.
        span: the whole element.
        inside: what is between its tags; empty if it has no end tag.
    """

    name: str
    attributes: dict[str, str]
    attribute_spans: dict[str, Span]
    span: Span
    inside: Span
    children: "list[Element]" = field(default_factory=list)


def parse(text: str) -> Element:
    """Return the root of a file.

    Raises:
        InvalidDocument: the file is not XML, or has a document type definition.
        TooLarge: the file has too many tags.
    """
    parse_xml(text.encode(), "The file")
    root = Element("", {}, {}, Span(0, len(text)), Span(0, len(text)))
    opened = [root]
    for match in _TAG.finditer(text):
        if not match["name"]:
            continue
        if match["close"]:
            element = opened.pop()
            element.span = Span(element.span.start, match.end())
            element.inside = Span(element.inside.start, match.start())
            continue
        found = [*_ATTRIBUTE.finditer(text, *match.span("attributes"))]
        spans = {one[1]: Span(*one.span(2 if one[2] is not None else 3)) for one in found}
        values = {name: unescape(span.of(text)) for name, span in spans.items()}
        element = Element(match["name"], values, spans, Span(*match.span()), Span(match.end(), match.end()))
        opened[-1].children.append(element)
        if not match["empty"]:
            opened.append(element)
    return root.children[0]


def runs(text: str, inside: Span) -> Iterator[tuple[Span, bool]]:
    """Yield the parts of an element's content in order, and whether each is what a CDATA section has."""
    start = inside.start
    for section in _CDATA.finditer(text, *inside.pair):
        yield Span(start, section.start()), False
        yield Span(*section.span(1)), True
        start = section.end()
    yield Span(start, inside.end), False


def for_cdata(text: str) -> str:
    """Return a text as CDATA sections have it, without the first start and the last end."""
    return text.replace("]]>", "]]]]><![CDATA[>")
