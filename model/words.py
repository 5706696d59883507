"""Words of a text, and the word that each token belongs to.

Legend: T tokens, W words.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, pre_tokenizers

Span = tuple[int, int]
"""Index of the first character, and of the one after the last."""
JAPANESE_LETTERS = r"\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff\uff66-\uff9f"
"""Kanji and kana, for a class of characters in a pattern."""
JAPANESE = re.compile(f"[{JAPANESE_LETTERS}]")
"""A Japanese letter, which shows that a text is Japanese."""
HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " "}
"""Table from full-width letters, digits, marks and the space to ASCII."""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_LETTER = rf"[\p{{L}}&&[^{_UNSPACED}]]"
_IN_WORD = rf"{_LETTER}(?:{_LETTER}|[\p{{M}}\p{{N}}])*"
_ELIDED = "[b-df-hj-np-tv-xz]|(?:jus|lors|puis|quoi)?qu|(?:[ac]|[dn]e|da|su|be|que)?ll|un|gl|ch|dov|com|cos|anch|quest"
"""Short words of French and Italian that lose their last letter before a vowel; no others split at an apostrophe."""
_WORDS = pre_tokenizers.Split(
    Regex(
        r"[\p{Katakana}ー]+\p{M}*|[\p{Han}\p{Hiragana}]\p{M}*"  # kanji and hiragana one by one: no spaces are written
        rf"|(?i:{_ELIDED})['’](?={_LETTER})(?!(?i:[tsmd]|re|ve|ll)(?!{_LETTER}))"  # noqa: RUF001
        rf"|{_IN_WORD}(?:['’]{_IN_WORD})*"  # noqa: RUF001
        r"|\p{N}+(?:[.,]\p{N}+)*|[^\s\p{L}\p{N}]+"
    ),
    behavior="isolated",
)
"""Splits texts into words as the service does to align them."""


def word_spans(text: str) -> list[Span]:
    """Return the spans of words, numbers and runs of punctuation, without white space."""
    return [span for piece, span in _WORDS.pre_tokenize_str(text) if not piece.isspace()]


def word_columns(text: str, spans: Sequence[Span], offsets: Sequence[Span]) -> NDArray[np.float32]:
    """Return (T, W + 1) with a 1 in each row for the word that a token begins in, or the last column if in none, as
    </s>.

    Args:
        spans: spans of the words.
        offsets: spans of the tokens, which may begin with a space.
    """
    columns = np.zeros((len(offsets), len(spans) + 1), np.float32)
    starts = [start for start, _ in spans]
    for token, (start, end) in enumerate(offsets):
        piece = text[start:end]
        first = end - len(piece.lstrip())
        word = int(np.searchsorted(starts, first, side="right")) - 1
        inside = first < end and word >= 0 and first < spans[word][1]
        columns[token, word if inside else len(spans)] = 1
    return columns
