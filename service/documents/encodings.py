"""Encodings of text files: byte order marks, decoding and encoding. A file is written in the encoding that it had.

Without a byte order mark a file is UTF-8. No encoding is guessed, because a wrong guess spoils a file unnoticed.
"""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass

import webencodings

from service.base.errors import InvalidDocument

BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MARKS = re.compile(b"(" + b"|".join(map(re.escape, BYTE_ORDER_MARKS)) + rb")\1*")
"""A byte order mark, which programs that join files repeat."""
CONTROL = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters that never occur in text; a form feed and an escape are allowed."""
C1 = range(0x80, 0xA0)
"""Code points of the C1 control characters; Windows encodings leave some of these bytes undefined."""
UNREADABLE = frozenset({"replacement", "x-user-defined"})
"""Encodings of WHATWG's standard that cannot be decoded to text."""
XML_ENCODING = re.compile(rb"<\?xml\b[^>]*\bencoding\s*=\s*[\"']([\w.:-]+)")
LIKE_BROWSERS = "like_browsers"
"""Error handler for an encoding that a web page declares."""


@dataclass(frozen=True)
class Encoding:
    name: str = "utf-8"
    byte_order_mark: bytes = b""
    errors: str = "strict"
    """Python's error handler for bytes and characters that the encoding does not have."""

    def encode(self, text: str) -> bytes:
        return self.byte_order_mark + text.encode(self.name, self.errors)


def decode(data: bytes, default: Encoding | None = None) -> tuple[str, Encoding]:
    """Return the text of a file, and its encoding. Without a byte order mark this is `default`, or UTF-8. Raises
    InvalidDocument: the file is not text in this encoding."""
    marks = MARKS.match(data)
    mark = marks[0] if marks else b""
    encoding = Encoding(BYTE_ORDER_MARKS[mark[: marks.end(1)]], mark) if marks else default or Encoding()
    try:
        text = data[len(mark) :].decode(encoding.name, encoding.errors)
    except UnicodeDecodeError as error:
        at = len(mark) + error.start
        raise InvalidDocument(f"The file is not {encoding.name.upper()}: {error.reason} at byte {at}") from None
    if control := CONTROL.search(text):
        raise InvalidDocument(f"The file is not text: it has the control character {ord(control[0])}")
    return text, encoding


def named_encoding(label: str) -> Encoding | None:
    """Return the encoding that a file declares, by WHATWG's Encoding Standard. UTF-16 gives None: a declaration that is
    readable as ASCII is not in UTF-16. Raises InvalidDocument: the standard does not know the label."""
    known = webencodings.lookup(label)
    if known is None:  # Python knows other spellings, such as latin-1 and utf_8
        with suppress(LookupError):
            known = webencodings.lookup(codecs.lookup(label).name)
    if known is None or known.name in UNREADABLE:
        raise InvalidDocument(f"The file declares the encoding {label}, which is not supported")
    if known.name.startswith("utf-16"):
        return None
    # The standard reads GBK as GB 18030, which has more characters.
    name = "gb18030" if known.name == "gbk" else known.codec_info.name
    return Encoding(name, errors=LIKE_BROWSERS)


def _handle_like_browsers(error: UnicodeError) -> tuple[str | bytes, int]:
    """Read a byte that Windows leaves undefined as a control character, and write it again as that byte (WHATWG's
    Encoding Standard). Write any other character that the encoding does not have as a numeric reference (&#233;)."""
    if isinstance(error, UnicodeDecodeError) and error.encoding == "charmap" and error.object[error.start] in C1:
        return chr(error.object[error.start]), error.start + 1
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start]
        is_byte = error.encoding == "charmap" and ord(character) in C1
        return bytes([ord(character)]) if is_byte else f"&#{ord(character)};", error.start + 1
    raise error


codecs.register_error(LIKE_BROWSERS, _handle_like_browsers)
