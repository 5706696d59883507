"""The texts of a document to translate, the same for every kind of file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.schemas.requests import Format


@dataclass(frozen=True)
class Contents:
    """The texts of a document, in order, and a function that writes the translated document."""

    texts: list[str]
    """Each has a character at least, and no half of a surrogate pair."""
    format: Format
    """The format of every text, as in `TranslateRequest`."""
    write: Callable[[Sequence[str]], bytes]
    """Returns the file with one translation for each text. With the original texts it returns the original file."""
