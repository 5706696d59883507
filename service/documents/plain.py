"""Plain text in pieces, which are cut where no sentence goes on."""

import re
from collections.abc import Iterator

from service.documents.contents import Contents
from service.documents.encodings import decode

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
ENDS = (re.compile(r"[.!?]\s+|[。！？]"), re.compile(r"\s+"))
"""Where a line that is too long is cut: best behind a sentence, or else behind a word."""

MIN_PIECE_LENGTH = 2_000
"""Characters after which the next empty line ends a piece."""
MAX_PIECE_LENGTH = 10_000
"""Characters after which the next line ends one, too. A longer line is cut."""


def read(data: bytes) -> Contents:
    """Raises UnprocessableRequest: it is no text."""
    text, encoding = decode(data)
    return Contents([*pieces(text)], "text", lambda translations: encoding.encode("".join(translations)))


def pieces(text: str) -> Iterator[str]:
    """The text, in order and complete."""
    piece: list[str] = []
    length = 0
    ends_paragraph = False
    for line in (part for match in LINE.finditer(text) for part in _parts(match.group())):
        is_blank = line.isspace()
        if piece and (
            (ends_paragraph and not is_blank and length >= MIN_PIECE_LENGTH) or length + len(line) > MAX_PIECE_LENGTH
        ):
            yield "".join(piece)
            piece, length = [], 0
        piece.append(line)
        length += len(line)
        ends_paragraph = is_blank
    if piece:
        yield "".join(piece)


def _parts(line: str) -> Iterator[str]:
    """A line of at most MAX_PIECE_LENGTH characters, or one cut into such parts."""
    start = 0
    while len(line) - start > MAX_PIECE_LENGTH:
        window = line[start : start + MAX_PIECE_LENGTH]
        ends = (max((match.end() for match in pattern.finditer(window)), default=0) for pattern in ENDS)
        end = next(filter(None, ends), MAX_PIECE_LENGTH)
        yield window[:end]
        start += end
    yield line[start:]
