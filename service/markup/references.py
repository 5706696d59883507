"""Character references of HTML: a text becomes pieces, each with its source."""

import re
from collections.abc import Iterator
from html import escape, unescape

from service.markup.pieces import Piece, PieceKind

REFERENCE = re.compile(r"(&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?))")
"""Character references as HTML may read them (as in html.unescape)."""


def read_texts(raw: str, text: str) -> Iterator[Piece]:
    """Yield a text as pieces. Each character reference is a piece of its own. A parser read `text` from `raw`."""
    if unescape(raw) != text:  # the parser skipped something
        raw = escape(text, quote=False)
    for part in REFERENCE.split(raw) if "&" in raw else [raw]:
        text = unescape(part) if part.startswith("&") else part
        if len(text) in (1, len(part)):
            yield Piece(PieceKind.TEXT, part, text=text)
        else:
            yield from (Piece(PieceKind.TEXT, escape(character, quote=False), text=character) for character in text)
