"""Parses forms, also those whose file names are encoded.

Browsers send names as they are, clients in .NET and Java encoded words of RFC 2047, others `filename*` of RFC 5987.
"""

import re
from base64 import b64decode
from quopri import decodestring
from urllib.parse import unquote

from starlette.formparsers import MultiPartParser

CHARSET = "(?P<charset>utf-8|iso-8859-1)"
ENCODED_WORD = re.compile(
    rf"=\?{CHARSET}\?(?:b\?(?P<base64>[^?]*)|q\?(?P<quoted>[^?]*))\?=(?:\s+(?==\?))?", re.IGNORECASE
)
EXTENDED_NAME = re.compile(rf""";\s*filename\*\s*=\s*"?{CHARSET}'[^']*'(?P<name>[^\s;"]+)""", re.IGNORECASE)


class FormParser(MultiPartParser):
    """Starlette's parser, which reads neither encoding, and takes a file without a plain `filename` for text."""

    def on_headers_finished(self) -> None:
        part = self._current_part
        disposition = part.content_disposition or b""
        extended = EXTENDED_NAME.search(disposition.decode("latin-1"))
        if extended is not None:  # without a plain name the part would be text; of two names the last one counts
            part.content_disposition = disposition.replace(b";", b"; filename=file;", 1)
        super().on_headers_finished()
        if part.file is not None:
            part.file.filename = _decoded(part.file.filename or "", extended)


def _decoded(name: str, extended: re.Match[str] | None) -> str:
    """Return the name of a file, or the name as it was sent if it is not what it declares."""
    try:
        if extended is not None:
            return unquote(extended["name"], extended["charset"], "strict")
        return ENCODED_WORD.sub(_decoded_word, name)
    except ValueError:
        return name


def _decoded_word(word: re.Match[str]) -> str:
    """Raises ValueError: the word is no base64, or not in its charset."""
    is_quoted = word["quoted"] is not None
    data = decodestring(word["quoted"], header=True) if is_quoted else b64decode(f"{word['base64']}==")
    return data.decode(word["charset"])
