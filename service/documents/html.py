"""HTML, passage by passage: what is between two block-level tags is a text, and all else stays."""

import codecs
import re
from collections.abc import Sequence

from service.base.errors import UnprocessableRequest
from service.documents.contents import Contents
from service.documents.encodings import AS_BROWSERS_DO, Encoding, decoded
from service.markup.html import parse
from service.markup.passages import Passage
from service.segments.placeholders import protect
from service.segments.restoration import untranslated

CHARSET = re.compile(rb"<meta\b[^>]*\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
IN_PROLOG = re.compile(rb"<\?xml\b[^>]*\bencoding\s*=\s*[\"']([\w.:-]+)")
"""Of XHTML, where no <meta> says it."""
PRESCAN = 1024
"""Bytes in which HTML must say its encoding."""
KNOWN = re.compile(r"utf-8|cp\d+|iso8859-\d+|iso2022_jp|koi8-[rtu]|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*")
LABELS = {
    "csgb2312": "gbk",
    "dos-874": "cp874",
    "iso-8859-8-i": "iso-8859-8",
    "koi8": "koi8-r",
    "koi8-ru": "koi8-u",
    "ks_c_5601-1989": "cp949",
    "unicode-1-1-utf-8": "utf-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "windows-949": "cp949",
}
"""Names of encodings that Python has not, without an x- before them (WHATWG's Encoding Standard)."""
READ_AS = {
    "ascii": "cp1252",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
    "tis-620": "cp874",
}
"""Encodings that browsers take for others, which have more characters."""


def read(data: bytes) -> Contents:
    """Raises UnprocessableRequest: it is no text in its encoding, or in one that is not known."""
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
    match = CHARSET.search(data[:PRESCAN]) or IN_PROLOG.match(data[:PRESCAN])
    if match is None:
        return None
    name = match[1].decode()
    label = name.lower().removeprefix("x-")
    try:
        found = codecs.lookup(LABELS.get(label, label)).name
    except LookupError:
        found = ""
    if found.startswith("utf-16"):  # what reads so is not
        return None
    read_as = READ_AS.get(found, found)
    if not KNOWN.fullmatch(read_as):
        raise UnprocessableRequest(f"the file says that its encoding is {name}, which is not known here")
    return Encoding(read_as, errors=AS_BROWSERS_DO)
