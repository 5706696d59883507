"""Plain text files: a file is cut into pieces at places where no sentence continues."""

import re
from collections.abc import Iterator

from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import decode

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
ENDS = (re.compile(r"[.!?]\s+|[。！？]"), re.compile(r"\s+"))
"""A line that is too long is cut after a sentence if possible, otherwise after a word."""
MIN_PIECE_LENGTH = 2_000
"""Minimum length of a piece in characters. The next empty line then ends it."""
MAX_PIECE_LENGTH = 10_000
"""Maximum length of a piece in characters. A longer line is cut."""


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite a text file. Raises InvalidDocument: the file is not text."""
    text, encoding = decode(data)
    translations = yield Contents([*split_pieces(text)], "text")
    return encoding.encode("".join(translations))


def split_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text in order. Together they are the whole text."""
    piece: list[str] = []
    length = 0
    ends_paragraph = False
    for line in (part for match in LINE.finditer(text) for part in _cut_line(match.group())):
        is_blank = line.isspace()
        begins_next = ends_paragraph and not is_blank and length >= MIN_PIECE_LENGTH
        if piece and (begins_next or length + len(line) > MAX_PIECE_LENGTH):
            yield "".join(piece)
            piece, length = [], 0
        piece.append(line)
        length += len(line)
        ends_paragraph = is_blank
    if piece:
        yield "".join(piece)


def _cut_line(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > MAX_PIECE_LENGTH:
        window = line[start : start + MAX_PIECE_LENGTH]
        ends = (max((match.end() for match in pattern.finditer(window)), default=0) for pattern in ENDS)
        end = next(filter(None, ends), MAX_PIECE_LENGTH)
        yield window[:end]
        start += end
    yield line[start:]
