"""HTML, passage by passage: what is between two block-level tags is a text, and all else stays."""

import codecs
import re
from collections.abc import Sequence

from service.documents.contents import Contents
from service.documents.encodings import Encoding, decoded
from service.errors import NotAcceptable
from service.formats.document import parse
from service.formats.passages import Passage
from service.text.placeholders import protect
from service.text.restoration import untranslated

CHARSET = re.compile(rb"<meta\b[^>]*\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
PRESCAN = 1024
"""Bytes in which HTML must say its encoding."""
KNOWN = re.compile(r"utf-8|ascii|cp\d+|iso8859-\d+|koi8-[rtu]|mac-\w+|tis-620|gb\w+|big5\w*|euc_\w+|shift_jis\w*")
READ_AS = {"ascii": "cp1252", "iso8859-1": "cp1252"}
"""Encodings that browsers take for others."""


def read(data: bytes) -> Contents:
    """Raises NotAcceptable: it is no text in its encoding, or in one that is not known."""
    html, encoding = decoded(data, _declared(data))
    parts = parse(html).parts
    texts = [_written(part) for part in parts if isinstance(part, Passage)]

    def written(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        remaining = iter(translations)
        return encoding.encoded("".join(part if isinstance(part, str) else next(remaining) for part in parts))

    return Contents(texts, "html", written)


def _written(passage: Passage) -> str:
    return passage.render(untranslated(protect(passage.text)))


def _declared(data: bytes) -> Encoding | None:
    match = CHARSET.search(data[:PRESCAN])
    if match is None:
        return None
    name = match[1].decode()
    try:
        found = codecs.lookup(name).name
    except LookupError:
        found = ""
    if found.startswith("utf-16"):  # what reads so is not
        return None
    if not KNOWN.fullmatch(found):
        raise NotAcceptable(f"the file says that its encoding is {name}, which is not known here")
    return Encoding(READ_AS.get(found, found), errors="xmlcharrefreplace")
