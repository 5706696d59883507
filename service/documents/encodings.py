"""Files of text: which bytes they begin with, and how their characters are written. A file is written as it was read.

Without a byte order mark a file is UTF-8. Nothing is guessed: a wrong guess spoils a file and nobody notices.
"""

import codecs
import re
from dataclasses import dataclass

from service.base.errors import InvalidDocument

MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
CONTROL = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")
"""What no text has. A form feed and an escape may be there."""
C1 = range(0x80, 0xA0)
"""Control characters that no keyboard has."""
AS_BROWSERS_DO = "as_browsers_do"
"""The errors of an encoding that is named in a page."""


@dataclass(frozen=True)
class Encoding:
    name: str = "utf-8"
    mark: bytes = b""
    errors: str = "strict"
    """What becomes of a character that the encoding has not, and of a byte that is none."""

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.name, self.errors)


def decoded(data: bytes, otherwise: Encoding | None = None) -> tuple[str, Encoding]:
    """The text of a file, and its encoding.

    Args:
        otherwise: the encoding where no mark tells it; UTF-8 by default.

    Raises:
        InvalidDocument: it is no text in this encoding.
    """
    mark = next(filter(data.startswith, MARKS), b"")
    encoding = Encoding(MARKS[mark], mark) if mark else otherwise or Encoding()
    try:
        text = data[len(mark) :].decode(encoding.name, encoding.errors)
    except UnicodeDecodeError as error:
        at = len(mark) + error.start
        raise InvalidDocument(f"The file is not {encoding.name.upper()}: {error.reason} at byte {at}") from None
    if control := CONTROL.search(text):
        raise InvalidDocument(f"The file is not text: it has the control character {ord(control[0])}")
    return text, encoding


def _as_browsers_do(error: UnicodeError) -> tuple[str | bytes, int]:
    """A byte that Windows leaves undefined is a control character, in both directions (WHATWG's Encoding Standard);
    another character that the encoding has not is written by its number."""
    if isinstance(error, UnicodeDecodeError) and error.encoding == "charmap" and error.object[error.start] in C1:
        return chr(error.object[error.start]), error.start + 1
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start]
        is_byte = error.encoding == "charmap" and ord(character) in C1
        return bytes([ord(character)]) if is_byte else f"&#{ord(character)};", error.start + 1
    raise error


codecs.register_error(AS_BROWSERS_DO, _as_browsers_do)
