"""Split texts into words, signs and spaces, and find terms by theirs."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

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

Leaf = TypeVar("Leaf")


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


class WordTree(Generic[Leaf]):
    """Terms by their words: each node has the nodes of the next word.

    Args:
        new_leaf: makes what a node has if terms end at it.
    """

    def __init__(self, new_leaf: Callable[[], Leaf]) -> None:
        self._new_leaf = new_leaf
        self._root: dict[Any, Any] = {}

    def at(self, words: Iterable[str]) -> Leaf:
        """Return the leaf of some words."""
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        leaf: Leaf = node.setdefault(None, self._new_leaf())
        return leaf

    def find(self, words: Sequence[str], start: int) -> Iterator[tuple[int, Leaf]]:
        """Yield the leaves of the words from `start`, and the number of the first word after each."""
        node = self._root
        for end in range(start, len(words)):
            if words[end] not in node:
                return
            node = node[words[end]]
            if None in node:
                yield end + 1, node[None]
