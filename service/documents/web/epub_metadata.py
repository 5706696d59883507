"""The title, the description and the language of a book, and its table of contents in EPUB 2 (NCX).

The XML is not parsed: names and values are found by their places, and everything else stays.
"""

import re
from collections.abc import Iterator
from html import escape, unescape

from service.documents.contents import ReadOptions
from service.documents.encodings import decode
from service.documents.web.html import declared_encoding
from service.documents.web.pieces import FileInPieces, Text
from service.text.language_marks import MarkedLanguages
from service.text.spans import Span

PART = re.compile(
    r"""<!--(?:.*?-->|.*) | <!\[CDATA\[(?:.*?\]\]>|.*) | <\?(?:.*?\?>|.*)
    | <(?:[\w.-]+:)?docAuthor\b(?:.*?</(?:[\w.-]+:)?docAuthor|.*)
    | <(?P<name>(?:[\w.-]+:)?(?P<local>[\w.-]+)) (?P<attributes>(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*+)?) >
      (?:(?P<text>[^<]*+)</(?P=name)\s*+>)?""",
    re.VERBOSE | re.DOTALL,
)
"""A start tag with its text, if it has nothing else inside; or a part that is skipped."""
ATTRIBUTE = re.compile(r"""\s(?P<name>xml:lang|title)\s*=\s*(?P<quote>["'])(?P<value>.*?)(?P=quote)""", re.DOTALL)
TEXTS = frozenset(("title", "description", "text"))
"""Elements with a text: dc:title and dc:description of a package document, <text> of an NCX."""
MARKED = TEXTS | {"package", "metadata", "ncx", "navMap", "navLabel", "docTitle"}
"""Elements whose `xml:lang` marks translated text."""


def read_metadata(data: bytes, options: ReadOptions) -> FileInPieces:
    """Read a package document or an NCX. Raises InvalidDocument: the file is not text in its encoding."""
    xml, encoding = decode(data, declared_encoding(data))
    pieces: list[str | Text] = []
    position = 0
    for span, piece in _values(xml, options.languages):
        pieces += [xml[position : span.start], piece]
        position = span.end
    return FileInPieces([*pieces, xml[position:]], encoding)


def _values(xml: str, languages: MarkedLanguages | None) -> Iterator[tuple[Span, str | Text]]:
    for part in PART.finditer(xml):
        name, text = part["local"], part["text"]
        for attribute in ATTRIBUTE.finditer(xml, *part.span("attributes")) if name else ():
            span = Span(*attribute.span("value"))
            if attribute["name"] == "title" and name == "reference" and _has_words(attribute["value"]):
                yield span, _attribute(attribute["value"], attribute["quote"])
            elif attribute["name"] == "xml:lang" and name in MARKED and languages:
                yield span, languages.translated(attribute["value"])
        if text is None:  # it is empty, or has something else inside
            continue
        start = part.start("text") + len(text) - len(text.lstrip())
        span = Span(start, start + len(text.strip()))
        if name in TEXTS and _has_words(text):
            yield span, _element(text.strip())
        elif name == "language" and languages:
            yield span, languages.translated(text.strip())


def _element(written: str) -> Text:
    """Return the text of an element. Descriptions are often escaped HTML."""
    html = unescape(written)
    return Text(html, lambda translation: escape(translation, quote=False)) if "</" in html else Text(written)


def _attribute(written: str, quote: str) -> Text:
    return Text(written, lambda translation: translation.replace(quote, f"&#{ord(quote)};"))


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, unescape(text)))
