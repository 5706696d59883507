"""Markdown in pieces that read alone as they read in the whole text."""

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from service.documents.contents import Contents
from service.documents.encodings import decode
from service.markup.inline_marks import PARSER, Environment
from service.markup.markdown import FRONT_MATTER

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.)+)\]", re.DOTALL)
MIN_PIECE_LENGTH = 2_000
"""Characters after which the next block that has an empty line before it begins a piece."""


def read(data: bytes) -> Contents:
    """Raises UnprocessableRequest: it is no text."""
    text, encoding = decode(data)
    front_matter, pieces = _read(text)
    heads = [head for head, _ in pieces]

    def written(translations: Sequence[str]) -> bytes:
        bodies = [translation.removeprefix(head) for head, translation in zip(heads, translations, strict=True)]
        return encoding.encode("".join([front_matter, *bodies]))

    return Contents([head + body for head, body in pieces], "markdown", written)


def _read(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the text, and the text in pieces, each with a head that tells where its links go.

    A head ends in an empty line: nothing behind it is front matter, which begins a text.
    """
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
    pieces = ["".join(piece) for piece in _cut(lines, starts)]
    return front_matter, [(_head(piece, references), piece) for piece in pieces]


def _cut(lines: list[str], starts: list[int]) -> Iterator[list[str]]:
    """Lines, which are parted before blocks that have an empty line before them."""
    begun = position = length = 0
    for start in starts:
        length += sum(map(len, lines[position:start]))
        position = start
        if length >= MIN_PIECE_LENGTH and lines[start - 1].isspace():
            yield lines[begun:start]
            begun, length = start, 0
    if begun < len(lines):
        yield lines[begun:]


def _head(piece: str, references: dict[str, dict[str, str]]) -> str:
    """Where the links go whose labels the piece has, which another piece may say."""
    labels = {" ".join(label.split()).lower().upper() for label in LABEL.findall(piece)} if references else set()
    named = [label for label in references if label in labels]
    return "".join(f"[{label}]: <{references[label]['href']}>\n" for label in named) + "\n"
