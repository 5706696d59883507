"""Resources of .NET (.resx): strings alone; comments and references to files stay."""

from collections.abc import Iterator
from html import unescape

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.localization.splicing import Splice, Value, rewrite_spliced, spliced_value
from service.documents.localization.xml_elements import XmlElement, escape_text, for_cdata, read_xml, runs
from service.text.spans import Span

STRING = "System.String"
"""The type of strings, which nearly all files leave out."""


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite resources of .NET. Raises InvalidDocument: it is damaged or another file. TooLarge: too many tags."""
    text, encoding, root = read_xml(data)
    if root.tag != "root":
        raise InvalidDocument(f"The root of the file is <{root.tag}>; resources of .NET have <root>")
    return rewrite_spliced(data, text, encoding, _splices(text, root), "text")


def _splices(text: str, root: XmlElement) -> Iterator[Splice]:
    for entry in root.children:
        for element in entry.children if _is_string(entry) else ():
            if element.tag == "value":
                for span, is_cdata in runs(text, element.content):
                    yield from spliced_value(text, _value(text, span, is_cdata))


def _is_string(entry: XmlElement) -> bool:
    """Return whether an entry is a string, unless a form designer wrote it for itself."""
    kind = entry.attributes.get("type", STRING).partition(",")[0].strip()
    is_text = kind == STRING and "mimetype" not in entry.attributes
    return entry.tag == "data" and is_text and not entry.attributes.get("name", "").startswith(">>")


def _value(text: str, span: Span, is_cdata: bool) -> Value:
    raw = span.of(text)
    return Value(span, raw, for_cdata) if is_cdata else Value(span, unescape(raw), escape_text)
