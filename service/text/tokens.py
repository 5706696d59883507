"""Find the characters of a text that each token covers.

A token is a piece of UTF-8; in a byte-level tokenizer it may end in the middle of a character. The pieces of a text,
joined, are a space and the text. Offsets count characters (Unicode code points).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

from service.text.spans import Span

SPACE = "▁"
"""Users see this sign for a space at the start of a token."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Token(NamedTuple):
    """A token and its span, text[start:end], without the space before it. A token that is part of a character covers
    the whole character; a token without characters covers text[n:n]."""

    token: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    def of(self, span: Span) -> "Token":
        """Return the token with another span."""
        return self._replace(start=span.start, end=span.end)

    def moved(self, offset: int) -> "Token":
        """Return the token in a text that has `offset` more characters before it."""
        return self._replace(start=self.start + offset, end=self.end + offset)


def locate_pieces(pieces: Sequence[bytes | str]) -> tuple[str, list[Token]]:
    """Return the text of joined pieces, without invalid UTF-8, and the token of each piece. A piece is the UTF-8 of a
    token, or the name of a special token, which has no characters."""
    text, ends = _characters(b"".join(piece for piece in pieces if isinstance(piece, bytes)))
    character_at = [i for i, (start, end) in enumerate(pairwise([0, *ends])) for _ in range(start, end)]
    before = [*accumulate((character != REPLACEMENT for character in text), initial=0)]
    """For each character, the number of characters before it in the text without replacements."""
    spaces = 1 if text.startswith(" ") else 0
    tokens = []
    sizes = (len(piece) if isinstance(piece, bytes) else 0 for piece in pieces)
    for piece, (first, after) in zip(pieces, pairwise(accumulate(sizes, initial=0)), strict=True):
        if isinstance(piece, str) or first == after:
            start = end = character_at[first] if first < len(character_at) else len(text)
        else:
            start, end = character_at[first], character_at[after - 1] + 1
        token, start, end = place_token(piece, Span(start, end), text)
        tokens.append(Token(token, max(0, before[start] - spaces), max(0, before[end] - spaces)))
    return text.replace(REPLACEMENT, "")[spaces:], tokens


def place_token(piece: bytes | str, span: Span, text: str) -> Token:
    """Return a token for a span of a text, without the space before it."""
    covered = span.of(text)
    if isinstance(piece, bytes) and piece.isspace() and not covered.isspace():  # the space before the text
        return Token(_visible(piece), span.start, span.start)
    n_spaces = len(covered) - len(covered.lstrip()) if not covered.isspace() else 0
    return Token(_visible(piece), span.start + n_spaces, span.end)


def _characters(data: bytes) -> tuple[str, list[int]]:
    """Return decoded UTF-8, with a replacement for each invalid part, and the end of each character in bytes."""
    text, ends, position = "", [0], 0
    while position < len(data):
        try:
            good, bad = data[position:].decode(), 0
        except UnicodeDecodeError as error:
            good, bad = data[position : position + error.start].decode(), error.end - error.start
        sizes = [len(character.encode()) for character in good]
        if bad:
            good += REPLACEMENT
            sizes.append(bad)
        text += good
        ends += list(accumulate(sizes, initial=ends[-1]))[1:]
        position = ends[-1]
    return text, ends[1:]


def fewest_pieces(data: bytes, ids: Mapping[bytes, int]) -> list[int] | None:
    """Return the ids of as few pieces as possible that make up some UTF-8, the longest ones first; None if none do. So
    are targets cut for which there is no tokenizer."""
    longest = max(map(len, ids), default=0)
    best: list[tuple[int, int] | None] = [*[None] * len(data), (0, 0)]
    """For each position, the number of pieces from there on, and the end of the first."""
    for start in range(len(data) - 1, -1, -1):
        ends = range(min(start + longest, len(data)), start, -1)
        rest = ((after[0] + 1, end) for end in ends if (after := best[end]) and data[start:end] in ids)
        best[start] = min(rest, key=itemgetter(0), default=None)
    found, start = list[int](), 0
    while start < len(data):
        if (piece := best[start]) is None:
            return None
        found.append(ids[data[start : piece[1]]])
        start = piece[1]
    return found


def _visible(piece: bytes | str) -> str:
    if isinstance(piece, str):
        return piece
    space = SPACE if piece.startswith(b" ") else ""
    rest = piece.removeprefix(b" ")
    try:
        return space + rest.decode()
    except UnicodeDecodeError:
        return space + "".join(f"<0x{byte:02X}>" for byte in rest)


_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = (byte for byte in range(0x100) if byte not in _VISIBLE)
BYTE_OF = {chr(byte): byte for byte in _VISIBLE} | {chr(0x100 + i): byte for i, byte in enumerate(_HIDDEN)}
"""The byte of each character in byte-level BPE (Radford et al. 2019, in the order of GPT-2's encoder)."""
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def _of_bytes(token: str) -> bytes:
    return bytes(BYTE_OF[character] for character in token)


def _of_metaspace(token: str) -> bytes:
    """Tokens of SentencePiece (Kudo and Richardson 2018) have a visible sign for a space, and names of bytes."""
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode()


def _of_word_pieces(token: str) -> bytes:
    return (token[2:] if token.startswith("##") else f" {token}").encode()


def piece_reader(decode: Callable[[list[str]], str]) -> Callable[[str], bytes]:
    """Return a function from a token in the vocabulary to its UTF-8, chosen by how the tokenizer decodes tokens. Raises
    ValueError: the tokenizer writes tokens in no known way."""
    if decode(["a", "Ġa"]) == "a a":
        return _of_bytes
    if decode(["a", "▁a"]) == "a a":
        return _of_metaspace
    if decode(["a", "##a"]) == "aa":
        return _of_word_pieces
    raise ValueError("tokens are neither byte-level, nor SentencePiece's, nor WordPiece's")
