"""Markdown files: a file is cut into pieces that mean the same alone as in the whole text."""

import re
from collections.abc import Iterator

from markdown_it.token import Token

from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import decode
from service.markup.inline_marks import PARSER, Environment
from service.markup.markdown import FRONT_MATTER

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
LABEL = re.compile(r"\\.|\[((?:[^\[\]\\]|\\.)++)\]", re.DOTALL)
"""A label, or an escaped character, at which no label begins."""
MIN_PIECE_LENGTH = 2_000
"""Minimum length of a piece in characters. The next block after an empty line then begins a new piece."""


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite a Markdown file. Raises InvalidDocument: the file is not text."""
    text, encoding = decode(data)
    front_matter, pieces = _split(text)
    translations = yield Contents([head + body for head, body in pieces], "markdown")
    bodies = [translation.removeprefix(head) for (head, _), translation in zip(pieces, translations, strict=True)]
    return encoding.encode("".join([front_matter, *bodies]))


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the front matter, and the text in pieces, each with a head: the link definitions that the piece uses. A
    head ends in an empty line, so that the lines after it are not read as front matter."""
    lines = [match.group() for match in LINE.finditer(text)]
    normalized = "".join(line.rstrip("\r\n") + "\n" for line in lines).replace("\0", "\ufffd")
    match = FRONT_MATTER.match(normalized)
    end = match.end() if match else 0
    first = normalized.count("\n", 0, end)
    front_matter, lines = "".join(lines[:first]), lines[first:]
    tokens: list[Token] = []
    environment: Environment = {}
    PARSER.block.parse("\n" + normalized[end:], PARSER, environment, tokens)
    starts = [token.map[0] - 1 for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    references = environment.get("references", {})
    pieces = ["".join(piece) for piece in _cut_lines(lines, starts)]
    return front_matter, [(_link_head(piece, references), piece) for piece in pieces]


def _cut_lines(lines: list[str], starts: list[int]) -> Iterator[list[str]]:
    """Yield the lines of each piece. A piece ends before a block that follows an empty line."""
    begun = position = length = 0
    for start in starts:
        length += sum(map(len, lines[position:start]))
        position = start
        if length >= MIN_PIECE_LENGTH and lines[start - 1].isspace():
            yield lines[begun:start]
            begun, length = start, 0
    if begun < len(lines):
        yield lines[begun:]


def _link_head(piece: str, references: dict[str, dict[str, str]]) -> str:
    """Return definitions of the link labels in a piece, because another piece may define them."""
    written = filter(None, LABEL.findall(piece)) if references else ()
    labels = {" ".join(label.split()).lower().upper() for label in written}
    named = [label for label in references if label in labels]
    return "".join(f"[{label}]: <{references[label]['href']}>\n" for label in named) + "\n"
