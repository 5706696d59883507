"""Split texts into words, signs and spaces, which are compared with those of a term."""

import re
import unicodedata
from typing import NamedTuple

from service.text.scripts import LETTER

_WORD = re.compile(
    rf"""
    (?:(?<![\w.])\.(?=[0-9]))?        # .5
    (?:{LETTER}[\u0300-\u036f]*)+
    (?: (?<=[0-9]) (?:[.,](?=[0-9]) | ['’\u00a0\u2009\u202f](?=[0-9]{{3}}(?![0-9])))  # 6.5, 1.2.3, 6,000, 6’000
        {LETTER}+ )*
    | .""",  # noqa: RUF001
    re.VERBOSE | re.DOTALL,
)
"""A word, a number with its decimals and groups, or another character. Each character of Japanese stands alone."""
_PLAIN = str.maketrans("\u00a0\u2009\u202f’‐‑", "   '--")  # noqa: RUF001
"""Characters that people write in place of a space, an apostrophe and a hyphen."""


class Word(NamedTuple):
    """A word, sign or space at a place in a text.

    Attributes:
        text: the word, with plain spaces, apostrophes and hyphens.
    """

    start: int
    end: int
    text: str


def words_of(text: str) -> list[Word]:
    """Return the words, signs and spaces of a text, in order and without gaps."""
    return [Word(match.start(), match.end(), _plain(match.group())) for match in _WORD.finditer(text)]


def _plain(word: str) -> str:
    return word if word.isascii() else unicodedata.normalize("NFC", word).translate(_PLAIN)
