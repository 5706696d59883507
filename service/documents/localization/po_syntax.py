"""The syntax of PO files: entries with their strings, and where they stand in the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.base.errors import InvalidDocument
from service.documents.encodings import Encoding
from service.text.spans import Span

STRING = r"\"(?:[^\"\\\r\n]|\\[^\r\n])*+\""
TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<comment>#[^\r\n]*)|(?P<string>{STRING}(?:\s*{STRING})*+)"
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,3}\])?)"
)
ESCAPE = re.compile(r"((?:\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}))+)|\\(.)")
OCTET = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]+))")
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
WRITTEN = {ord(character): f"\\{letter}" for letter, character in ESCAPES.items()} | {34: '\\"', 92: "\\\\"}
WRITTEN = {code: f"\\{code:03o}" for code in range(32)} | WRITTEN
WORD = re.compile(r"\S*\s*")


@dataclass
class Entry:
    """A message and its translations.

    Attributes:
        start: the place of its first keyword.
        flags: the comment with its flags, if any.
        previous: the comments with its previous message.
        strings: the strings behind each keyword, joined.
        translations: the place of msgstr, from its first keyword to the end of its last string.
    """

    start: int = 0
    flags: Span | None = None
    previous: list[Span] = field(default_factory=list)
    strings: dict[str, str] = field(default_factory=dict)
    translations: Span = field(default_factory=lambda: Span(0, 0))

    @property
    def is_header(self) -> bool:
        return self.strings["msgid"] == "" and "msgctxt" not in self.strings

    @property
    def messages(self) -> list[str]:
        """The message, and its plural if it has one."""
        return [self.strings[name] for name in ("msgid", "msgid_plural") if name in self.strings]

    @property
    def translated(self) -> list[str]:
        return [text for name, text in self.strings.items() if name.startswith("msgstr")]

    def flag_names(self, text: str) -> list[str]:
        return [] if self.flags is None else re.split(r"[,\s]+", self.flags.of(text).strip("#, "))


def entries_of(text: str, encoding: Encoding) -> Iterator[Entry]:
    """Yield the entries of a file; obsolete entries are comments. Raises InvalidDocument: the syntax is wrong."""
    entry, name = Entry(), ""
    position = 0
    while token := TOKEN.match(text, position):
        kind, span = token.lastgroup, Span(position, position := token.end())
        is_translation = token.group().startswith("msgstr")
        if name.startswith("msgstr") and (kind == "comment" or (kind == "keyword" and not is_translation)):
            yield entry
            entry, name = Entry(), ""
        if kind == "comment":
            _add_comment(entry, span, text)
        elif kind == "keyword":
            name = token.group()
            if name in entry.strings or (is_translation and "msgid" not in entry.strings):
                raise _unreadable(text, span.start)
            entry.start = span.start if not entry.strings else entry.start
            entry.strings[name] = ""
            if is_translation and not entry.translations.end:
                entry.translations = span
        elif kind == "string" and name:
            lines = re.findall(STRING, token.group())
            entry.strings[name] += "".join(_unescape(line[1:-1], encoding) for line in lines)
            if name.startswith("msgstr"):
                entry.translations = Span(entry.translations.start, span.end)
        elif kind == "string":
            raise _unreadable(text, span.start)
    if position < len(text) or not (name.startswith("msgstr") or not entry.strings):
        raise _unreadable(text, position)
    if entry.strings:
        yield entry


def quoted(keyword: str, text: str, width: int, line_end: str) -> str:
    """Return a keyword and its string, over several lines if the text has several or is longer than the width."""
    lines = [line.translate(WRITTEN) for line in text.split("\n")]
    lines = [f"{line}\\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
    if len(lines) < 2 and len(keyword) + len("".join(lines)) + 3 <= width:
        return f'{keyword} "{"".join(lines)}"'
    wrapped = [f'{keyword} ""']
    for line in lines:
        wrapped.append("")
        for word in WORD.findall(line):
            if wrapped[-1] and len(wrapped[-1]) + len(word) > width - 2:
                wrapped.append("")
            wrapped[-1] += word
    return line_end.join([wrapped[0], *(f'"{line}"' for line in wrapped[1:])])


def _add_comment(entry: Entry, span: Span, text: str) -> None:
    begins = text[span.start : span.start + 2]
    if begins == "#~":  # comments before it belong to an obsolete entry
        entry.flags, entry.previous = None, []
    elif begins == "#,":
        entry.flags = span
    elif begins == "#|":
        entry.previous.append(span)


def _unescape(written: str, encoding: Encoding) -> str:
    return ESCAPE.sub(lambda match: _unescaped(match, encoding), written) if "\\" in written else written


def _unescaped(match: re.Match[str], encoding: Encoding) -> str:
    """Numbers are bytes of the file's encoding."""
    if match[2] is not None:
        return ESCAPES.get(match[2], match[2])
    octets = (int(hexadecimal, 16) if hexadecimal else int(octal, 8) for hexadecimal, octal in OCTET.findall(match[1]))
    return bytes(octet & 0xFF for octet in octets).decode(encoding.name, "replace")


def _unreadable(text: str, position: int) -> InvalidDocument:
    return InvalidDocument(f"Line {text.count(chr(10), 0, position) + 1} of the file is not as in PO files")
