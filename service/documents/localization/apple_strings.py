"""Messages of Apple's programs (.strings): keys, comments and the style of quotes stay."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.localization.printf_order import in_order
from service.documents.localization.splicing import Splice, Value, rewrite_spliced, spliced_value
from service.text.spans import Span

_BLANK = r"(?:\s|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_WORD = r"[A-Za-z0-9_$/:.-]+"
"""A string that needs no quotes."""
_STRING = rf'"(?:[^"\\]|\\.)*+"|(?!//|/\*){_WORD}'
_ENTRY = re.compile(rf"{_BLANK}(?P<key>{_STRING}){_BLANK}(?:=(?:{_BLANK})(?P<value>{_STRING}){_BLANK})?;", re.DOTALL)
_BLANKS = re.compile(_BLANK)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9a-fA-F]{4})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED = {code: f"\\U{code:04x}" for code in range(32)}
_ESCAPED |= {92: r"\\", 34: r"\"", 10: r"\n", 13: r"\r", 9: r"\t"}


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite messages of Apple's programs. Raises InvalidDocument: no text, a property list, or another mistake."""
    if data.startswith((b"bplist", b"<?xml")):
        raise InvalidDocument("The file is a property list; convert it to text, as it is in the program's sources")
    text, encoding = decode(data)
    return rewrite_spliced(data, text, encoding, _splices(text), "text")


def _splices(text: str) -> Iterator[Splice]:
    position = 0
    while match := _ENTRY.match(text, position):
        position = match.end()
        if match["value"]:
            span = Span(*match.span("value"))
            yield from spliced_value(text, _value(span, match["value"], partial(_encode, before=match["value"])))
        else:  # a key without a value is its value
            end = match.end("key")
            yield from spliced_value(text, _value(Span(end, end), match["key"], lambda new: f" = {_quoted(new)}"))
    blank = _BLANKS.match(text, position)
    position = blank.end() if blank else position
    if position < len(text):
        n_line = text.count("\n", 0, position) + 1
        raise InvalidDocument(f'Line {n_line} is not like "key" = "value";')


def _value(span: Span, raw: str, encode: Callable[[str], str]) -> Value:
    text = _text(raw)
    return Value(span, text, lambda translation: encode(in_order(text, translation)))


def _text(raw: str) -> str:
    if not raw.startswith('"'):
        return raw
    text = _ESCAPE.sub(_character, raw[1:-1])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in raw.lower() else text


def _character(match: re.Match[str]) -> str:
    if match[3] is not None:
        return _LETTERS.get(match[3], match[3])
    return chr(int(match[1], 16) if match[1] else int(match[2], 8))


def _encode(text: str, before: str) -> str:
    """Return a text as a value. Line ends are escaped unless the value before had them as they are."""
    quoted = _quoted(text)
    if "\n" in before:
        return quoted.replace(r"\n", "\n")
    return quoted if before[0] == '"' or not re.fullmatch(_WORD, text) else text


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPED)}"'
