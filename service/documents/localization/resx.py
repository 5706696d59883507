"""Resources of .NET (.resx): strings alone; comments and references to files stay."""

from collections.abc import Iterator
from functools import partial
from html import escape, unescape

from service.base.errors import InvalidDocument
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.encodings import decode
from service.documents.localization import xml_text
from service.documents.localization.splicing import Splice, Value, spliced_contents, spliced_value
from service.documents.localization.xml_text import Element, for_cdata, runs
from service.text.spans import Span


def read_file(data: bytes, _: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read resources of .NET.

    Raises:
        InvalidDocument: the file is not such a file, or is damaged.
        TooLarge: the file has too many tags.
    """
    text, encoding = decode(data)
    root = xml_text.parse(text)
    if root.name != "root":
        raise InvalidDocument(f"The root of the file is <{root.name}>; resources of .NET have <root>")
    return spliced_contents(data, text, encoding, _splices(text, root), "text")


def _splices(text: str, root: Element) -> Iterator[Splice]:
    for entry in root.children:
        for element in entry.children if _is_string(entry) else ():
            if element.name == "value":
                for span, is_cdata in runs(text, element.inside):
                    yield from spliced_value(text, _value(text, span, is_cdata))


def _is_string(entry: Element) -> bool:
    """Return whether an entry is a string, and none that a form designer writes for itself."""
    is_typed = "type" in entry.attributes or "mimetype" in entry.attributes
    return entry.name == "data" and not is_typed and not entry.attributes.get("name", "").startswith(">>")


def _value(text: str, span: Span, is_cdata: bool) -> Value:
    raw = span.of(text)
    return Value(span, raw, for_cdata) if is_cdata else Value(span, unescape(raw), partial(escape, quote=False))
