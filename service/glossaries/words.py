"""Split texts into words, signs and spaces, and find terms by their words."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from service.text.scripts import LETTER

_UNSEEN = r"\u00ad\u200b-\u200d\u2060\ufeff"
"""Characters that are not seen within a word, such as soft hyphens."""
_MARK = rf"[\u0300-\u036f\u3099\u309a\uff9e\uff9f{_UNSEEN}]"
_WIDE = r"\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\ufb00-\ufb06"
"""Letters and digits as wide as Japanese ones, and ligatures."""
_SPACES = r"\x20\u00a0\u2009\u202f"
_WORD = re.compile(
    rf"""
    (?<!\w) [0-9]{{1,4}} ([/-]) [0-9]{{1,2}} \1 [0-9]{{1,4}} (?!\w)  # 10/11/2020
    | (?:(?<![\w.])\.(?=[0-9]))?                                                   # .5
      (?: [0-9]{{1,3}} (?:\x20[0-9]{{3}})+ (?!\w) | (?:(?:{LETTER}|[{_WIDE}]){_MARK}*)+ )  # 6 000
      (?: (?<=[0-9])
          (?: [.,](?=[0-9]) | :(?=[0-9]{{2}}) | ['’\u00a0\u2009\u202f](?=[0-9]{{3}}(?![0-9])) )
          {LETTER}+ )*                                                              # 6.5, 1.2.3, 6:30, 6,000, 6’000
    | [{_SPACES}]+ | .{_MARK}*""",  # noqa: RUF001
    re.VERBOSE | re.DOTALL,
)
"""A word, a number with its decimals and groups, spaces, or another character, such as each character of Japanese."""
_REPLACED = re.compile(rf"(?P<spaces>[{_SPACES}]+)|(?P<wide>[\uff01-\uffef\ufb00-\ufb06]+)|[{_UNSEEN}]+")
_PLAIN = str.maketrans("’‐‑ёЁ", "'--еЕ")  # noqa: RUF001
"""Characters that people write in place of an apostrophe, a hyphen and the Russian letter е."""  # noqa: RUF001
Leaf = TypeVar("Leaf")


class Word(NamedTuple):
    """A word, sign or space at a place in a text. `text` is its plain form."""

    start: int
    end: int
    text: str


def words_of(text: str) -> list[Word]:
    """Return the words, signs and spaces of a text, in order and without gaps."""
    return [Word(match.start(), match.end(), plain(match.group())) for match in _WORD.finditer(text)]


def plain(word: str) -> str:
    """Return a word with usual spaces, apostrophes and hyphens, in letters of usual width."""
    word = _REPLACED.sub(_replacement, word)
    return word if word.isascii() else unicodedata.normalize("NFC", word).translate(_PLAIN)


def _replacement(match: re.Match[str]) -> str:
    return " " if match["spaces"] else unicodedata.normalize("NFKC", match["wide"] or "")


class WordTree(Generic[Leaf]):
    """Terms by their words: each node has the nodes of the next word, and a leaf if a term ends at it."""

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
