"""The elements of an XML file and their places in its text, so that parts are replaced and all else stays as it was."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape

from service.documents.archive import INVALID_XML, parse_xml
from service.documents.encodings import XML_ENCODING, Encoding, decode, named_encoding
from service.markup.xml import MARKUP
from service.text.spans import Span

ATTRIBUTE = re.compile(r"(?<!\s)\s++([^\s<>/=]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(eq=False)
class XmlElement:
    """An element, and the places of its parts in the text of the file.

    Attributes:
        tag: its name, as it is written.
        start_tag: the span of the start tag, or of the whole element if it is written as `<a/>`.
        content: the span between its tags.
        end: the end of its end tag.
    """

    tag: str
    attributes: Mapping[str, str]
    start_tag: Span
    content: Span
    end: int
    parent: "XmlElement | None"
    children: list["XmlElement"] = field(default_factory=list)

    @property
    def span(self) -> Span:
        return Span(self.start_tag.start, self.end)

    @property
    def name(self) -> str:
        """The name without its prefix."""
        return self.tag.rpartition(":")[2]

    def child(self, name: str) -> "XmlElement | None":
        """Return the first child with a name and with the prefix of this element."""
        tag = self.tag[: -len(self.name)] + name
        return next((child for child in self.children if child.tag == tag), None)

    def inherited(self, name: str) -> str:
        """Return an attribute of this element, or of the closest element around it; "" if no element has it."""
        element: XmlElement | None = self
        while element is not None and name not in element.attributes:
            element = element.parent
        return "" if element is None else element.attributes[name]

    def attribute_span(self, text: str, name: str) -> Span:
        """Return the place of the value of an attribute in the text of the file."""
        attribute = next(match for match in ATTRIBUTE.finditer(text, *self.start_tag.pair) if match[1] == name)
        return Span(*attribute.span(2 if attribute[2] is not None else 3))

    def all(self) -> Iterator["XmlElement"]:
        """Yield this element and all elements in it, in order."""
        left = [self]
        while left:
            element = left.pop()
            yield element
            left += reversed(element.children)


def read_xml(data: bytes) -> tuple[str, Encoding, XmlElement]:
    """Return the text of an XML file, its encoding, and its root. Raises InvalidDocument: the file is not well-formed,
    has a document type definition, or is not in its encoding. TooLarge: it has too many tags."""
    declared = XML_ENCODING.match(data)
    text, encoding = decode(data, named_encoding(declared[1].decode()) if declared else None)
    parse_xml(text.encode(), "The file")
    return text, encoding, _root(text)


def attributes_of(tag: str) -> dict[str, str]:
    """Return the attributes of a start tag."""
    return {name: unescape(double or single) for name, double, single in ATTRIBUTE.findall(tag)}


def with_attributes(tag: str, values: Mapping[str, str | None]) -> str:
    """Return a start tag with other values of some attributes; None removes an attribute."""
    missing = {name: value for name, value in values.items() if value is not None}

    def replaced(match: re.Match[str]) -> str:
        name, value = match[1], values.get(match[1], "")
        missing.pop(name, None)
        return "" if value is None else f' {name}="{escape(value)}"' if name in values else match.group()

    tag = ATTRIBUTE.sub(replaced, tag)
    end = len(tag.removesuffix(">").removesuffix("/").rstrip())
    added = "".join(f' {name}="{escape(value)}"' for name, value in missing.items())
    return tag[:end] + added + tag[end:]


def escape_text(text: str) -> str:
    """Return a text as XML, without the characters that XML cannot hold."""
    return escape(INVALID_XML.sub("", text), quote=False)


def runs(text: str, content: Span) -> Iterator[tuple[Span, bool]]:
    """Yield the parts of an element's content in order, and whether each is inside a CDATA section."""
    start = content.start
    for section in MARKUP.finditer(text, *content.pair):
        if section["data"] is not None:
            yield Span(start, section.start()), False
            yield Span(*section.span("inside")), True
            start = section.end()
    yield Span(start, content.end), False


def for_cdata(text: str) -> str:
    """Return a text as CDATA sections have it, without the first start and the last end."""
    return INVALID_XML.sub("", text).replace("]]>", "]]]]><![CDATA[>")


def _root(text: str) -> XmlElement:
    around: list[XmlElement] = []
    for tag in MARKUP.finditer(text):
        if tag["end"]:
            element = around.pop()
            element.content, element.end = Span(element.start_tag.end, tag.start()), tag.end()
            root = element
        elif tag["start"]:
            span, parent = Span(*tag.span()), around[-1] if around else None
            content = Span(span.end, span.end)
            root = XmlElement(tag["start"], attributes_of(tag.group()), span, content, span.end, parent)
            if parent is not None:
                parent.children.append(root)
            if not tag["empty"]:
                around.append(root)
    return root
