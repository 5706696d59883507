"""A text file in pieces: the texts to translate, and everything between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.documents.encodings import Encoding


@dataclass(frozen=True)
class Text:
    """A text to translate, and a function that returns the source of its translation."""

    text: str
    write: Callable[[str], str] = str


@dataclass(frozen=True)
class FileInPieces:
    pieces: Sequence[str | Text]
    encoding: Encoding

    @property
    def texts(self) -> list[str]:
        return [piece.text for piece in self.pieces if isinstance(piece, Text)]

    def write(self, translations: Sequence[str]) -> bytes:
        """Return the file with one translation for each text."""
        remaining = iter(translations)
        written = (piece if isinstance(piece, str) else piece.write(next(remaining)) for piece in self.pieces)
        return self.encoding.encode("".join(written))
