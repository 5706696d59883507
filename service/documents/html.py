"""HTML files: the text between two block-level tags is a text to translate; everything else stays unchanged."""

import re
from collections.abc import Sequence

from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.encodings import Encoding, decode, named_encoding
from service.markup.html import parse
from service.markup.passages import Passage
from service.segments.placeholders import protect
from service.segments.restoration import keep_original

CHARSET = re.compile(rb"<meta\b[^>]*\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
IN_PROLOG = re.compile(rb"<\?xml\b[^>]*\bencoding\s*=\s*[\"']([\w.:-]+)")
"""The declaration of an encoding in XHTML, for a file without <meta>."""
PRESCAN = 1024
"""Number of bytes in which HTML must declare its encoding."""


def read_file(data: bytes, _: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read an HTML file. Raises InvalidDocument: the file is not text in its encoding, or its encoding is not known."""
    html, encoding = decode(data, _declared_encoding(data))
    parts = parse(html).parts
    texts = [_render_source(part) for part in parts if isinstance(part, Passage)]

    def write(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        remaining = iter(translations)
        return encoding.encode("".join(part if isinstance(part, str) else next(remaining) for part in parts))

    return Contents(texts, "html", write)


def _render_source(passage: Passage) -> str:
    return passage.render(keep_original(protect(passage.text)))


def _declared_encoding(data: bytes) -> Encoding | None:
    """Return the encoding that a page declares, with its label read as browsers do (WHATWG's Encoding Standard).

    Raises:
        InvalidDocument: the standard does not know the label.
    """
    match = CHARSET.search(data[:PRESCAN]) or IN_PROLOG.match(data[:PRESCAN])
    if match is None:
        return None
    return named_encoding(match[1].decode())
