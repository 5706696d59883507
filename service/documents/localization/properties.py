"""Messages of Java programs (.properties): keys, comments, order and line continuations stay.

java.util.Properties describes the format, java.text.MessageFormat the texts with arguments ({0}).
"""

import re
from collections.abc import Iterator
from functools import partial

from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import Encoding, decode
from service.documents.localization.splicing import Splice, Value, rewrite_spliced, spliced_value
from service.text.spans import Span

_LINE = re.compile(
    r"[ \t\f]*+(?:[#!][^\r\n]*+"
    r"|(?:[^\\ \t\f\r\n=:]|\\(?:\r\n|.))*+(?:[ \t\f]|\\(?:\r\n|[\r\n]))*+(?:[=:](?:[ \t\f]|\\(?:\r\n|[\r\n]))*+)?"
    r"(?P<value>(?:[^\\\r\n]|\\(?:\r\n|.|\Z))*+))(?:\r\n|[\r\n]|\Z)",
    re.DOTALL,
)
"""A comment, or a key and a value."""
_CONTINUATION = re.compile(r"\\(?:\r\n|[\r\n])[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {chr(code): f"\\u{code:04X}" for code in range(32)}
_ESCAPED |= {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f", "\\": r"\\"}
_ARGUMENT = re.compile(r"\{\s*\d+\s*[,}]")
_QUOTED = re.compile(r"'[^']*[{}][^']*'")
"""Braces that MessageFormat does not read."""


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite messages of a Java program. Raises InvalidDocument: the file is not text."""
    text, encoding = decode(data, _encoding(data))
    return rewrite_spliced(data, text, encoding, _splices(text, encoding, data.isascii()), "text")


def _encoding(data: bytes) -> Encoding:
    """Return UTF-8, or Latin-1 if the file is not UTF-8: Java has read both, the one or the other first."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return Encoding("iso-8859-1")
    return Encoding()


def _splices(text: str, encoding: Encoding, is_ascii: bool) -> Iterator[Splice]:
    writable = "ascii" if is_ascii else encoding.name
    for match in _LINE.finditer(text):
        if match["value"]:
            decoded = _unescaped(_CONTINUATION.sub("", match["value"]))
            is_format = _ARGUMENT.search(decoded) is not None and not _QUOTED.search(decoded.replace("''", ""))
            value = decoded.replace("''", "'") if is_format else decoded
            encode = partial(_encode, before=match["value"], is_format=is_format, writable=writable)
            yield from spliced_value(text, Value(Span(*match.span("value")), value, encode))


def _unescaped(raw: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2]), raw)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\ud" in raw.lower() else text


def _encode(text: str, before: str, is_format: bool, writable: str) -> str:
    """Return a text as a value with line ends like `before`. MessageFormat reads two apostrophes as one. Characters
    that the encoding `writable` lacks are escaped."""
    doubled = text.replace("'", "''") if is_format else text
    escaped = "".join(_ESCAPED.get(character) or _written(character, writable) for character in doubled)
    if (continued := _CONTINUATION.search(before)) is not None:
        escaped = re.sub(r"\\n(?=.)", lambda _: rf"\n{continued[0]}", escaped)
    return "\\" + escaped if escaped.startswith((" ", "\t")) else escaped


def _written(character: str, writable: str) -> str:
    try:
        character.encode(writable)
    except UnicodeEncodeError:
        units = character.encode("utf-16-be").hex().upper()
        return "".join(rf"\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return character
