"""HTML files: the text between two block-level tags is a text to translate; everything else stays unchanged."""

import re
from collections.abc import Iterable, Iterator
from html import escape, unescape

from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import XML_ENCODING, Encoding, decode, named_encoding
from service.documents.web.pieces import FileInPieces, Text
from service.kept.placeholders import protect
from service.kept.restoration import Restored, keep_original
from service.markup.html import parse
from service.markup.passages import Passage, fill, split_at_anchors
from service.text.spans import NO_EDITS

CHARSET = re.compile(rb"<meta\b[^>]*\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
PRESCAN = 1024
"""Number of bytes in which HTML must declare its encoding."""


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite an HTML file. Raises InvalidDocument: the file is not text in its encoding, or that is unknown."""
    page = read_page(data, options)
    translations = yield Contents(page.texts, "html")
    return data if translations == page.texts else page.write(translations)


def read_page(data: bytes, options: ReadOptions) -> FileInPieces:
    """Read a page of HTML or XHTML. Raises InvalidDocument as `rewrite`."""
    html, encoding = decode(data, declared_encoding(data))
    return FileInPieces([*_pieces(parse(html, languages=options.languages).parts)], encoding)


def _pieces(parts: Iterable[str | Passage]) -> Iterator[str | Text]:
    """Yield the parts of a page. Attributes of a block-level tag are texts; a passage is a text with its tags."""
    values: dict[str, Passage] = {}
    for part in parts:
        if isinstance(part, Passage) and part.anchor:
            values[part.anchor] = part
            continue
        if isinstance(part, Passage):
            yield Text(fill(_render_source(part), {anchor: _render_source(value) for anchor, value in values.items()}))
        else:
            yield from (_value(values[piece]) if piece in values else piece for piece in split_at_anchors(part, values))
        values = {}


def _value(passage: Passage) -> Text:
    text = escape(passage.text, quote=False)

    def write(translation: str) -> str:
        if translation == text:
            return _render_source(passage)
        return passage.render(Restored(unescape(translation), NO_EDITS, (), list))

    return Text(text, write)


def _render_source(passage: Passage) -> str:
    return passage.render(keep_original(protect(passage.text)))


def declared_encoding(data: bytes) -> Encoding | None:
    """Return the encoding that a page declares in <meta>, or in the prolog of XHTML. Raises InvalidDocument."""
    match = CHARSET.search(data[:PRESCAN]) or XML_ENCODING.match(data[:PRESCAN])
    return named_encoding(match[1].decode()) if match else None
