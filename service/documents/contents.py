"""What a document has to translate, whatever kind of file it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.schemas.requests import Format


@dataclass(frozen=True)
class Contents:
    """The texts of a document in order, none of them empty, and how it is written with their translations."""

    texts: list[str]
    format: Format
    written: Callable[[Sequence[str]], bytes]
    """The file with one translation for each text. With the texts themselves it is the file that was read."""
