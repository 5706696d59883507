"""Rows as users also write them: other names and numbers, capitals, no full stop at the end.

A small corpus has few names (in Tatoeba nearly all are Tom and Mary), so a model learns these words and not to copy.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from model.config import Rewrite
from model.data import Row

VARIANTS = 4
"""Rows that `other_names` makes of one, each with names of its own."""

NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
NUMBER = re.compile(r"\d{2,}")
FINAL_PUNCTUATION = re.compile(r"\s*[.!?…]+\s*$")
VOWELS = ("a", "e", "i", "o", "u", "ia", "ou", "ei", "aa", "y")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "dr", "fl", "gr", "kr", "kh", "kw", "lj", "mb", "nd", "pr", "sch", "sh",
          "sk", "st", "str", "sz", "th", "tr", "ts", "zh")  # fmt: skip
CODAS = ("", "", "", "n", "s", "r", "l", "k", "m", "t", "ck", "ng", "ski", "sson", "rd", "tz", "va", "dez")


def rewritten(rows: Sequence[Row], rewrite: Rewrite, random: np.random.Generator) -> list[Row]:
    """The rows to which a rewriting applies, rewritten on both sides alike."""
    if rewrite == "other_names":
        return [row for _ in range(VARIANTS) for row in _renamed(rows, random)]
    if rewrite == "upper_case":
        return [Row(row.left.upper(), row.right.upper()) for row in rows]
    stripped = (Row(*(FINAL_PUNCTUATION.sub("", text) for text in row)) for row in rows)
    return [new for new, row in zip(stripped, rows, strict=True) if new.left and new.right and new != row]


def _renamed(rows: Sequence[Row], random: np.random.Generator) -> Iterator[Row]:
    """Rows that share a name or a number between their sides, which become others."""
    for row in rows:
        new = row
        for pattern, invent in ((NAME, _name), (NUMBER, _number)):
            for word in {*pattern.findall(row.left)} & {*pattern.findall(row.right)}:
                word_itself = re.compile(rf"(?<!\w){word}(?!\w)")
                invented = invent(word, random)
                new = Row(word_itself.sub(invented, new.left), word_itself.sub(invented, new.right))
        if new != row:
            yield new


def _name(like: str, random: np.random.Generator) -> str:
    """A word that no corpus has, with a vowel first where `like` has one, because French elides before it (d'Alice)."""
    syllables = [f"{random.choice(ONSETS)}{random.choice(VOWELS)}" for _ in range(random.integers(1, 4))]
    if like[0] in "AEIOUYH":
        syllables.insert(0, str(random.choice(VOWELS[:5])))
    return "".join([*syllables, str(random.choice(CODAS))]).capitalize()


def _number(like: str, random: np.random.Generator) -> str:
    """As many digits, the first of them not zero."""
    first, *rest = random.integers(0, 10, len(like))
    return "".join(map(str, [max(first, 1), *rest]))
