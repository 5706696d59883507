"""What makes two texts alike: the same text, the same text but for kept spans, or many shared words."""

import re
import unicodedata
from collections.abc import Collection
from hashlib import blake2b
from itertools import pairwise
from zlib import crc32

from service.text.scripts import JAPANESE

N_WORDS, N_PAIRS = 2, 4
"""How many words, and pairs of neighbouring words, find a text: the longest ones, as few texts share them. An edit
leaves most of them as they are."""
FEW_WORDS = 3
"""Texts of so few words are found by three letters in a row too, at their beginning."""
N_TRIGRAMS = 32
_WORD = re.compile(rf"[{JAPANESE}]|[^\W_{JAPANESE}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_RUN = re.compile(rf"[{JAPANESE}]+|[^\s{JAPANESE}]+")
_IS_JAPANESE = re.compile(f"[{JAPANESE}]")


def alike(text: str) -> str:
    """Return a text as it is compared: in Unicode's composed form, with one space in place of any white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).encode(errors="replace").decode()
    return " ".join(text.split())


def key_of(text: str) -> int:
    """Return the number of a text that `alike` returned: 64 bits with a sign."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def form_of(text: str, seed: int) -> int:
    """Return a number that texts share if they differ only in spans with anything but letters, such as numbers. It only
    finds candidates: spans.py compares them."""
    runs = _RUN.findall(text) if not text.isascii() and _IS_JAPANESE.search(text) else text.split()
    return crc32("\n".join([*filter(str.isalpha, runs)] or [text]).encode(), seed)


def grams_of(text: str, seed: int) -> set[int]:
    """Return what finds a text among similar ones: 32 bits each.

    Args:
        text: what `alike` returned.
        seed: the number of the memory, so that memories have different ones.
    """
    text = text.casefold()
    words = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)
    grams = [word for word in sorted(words, key=len)[-N_WORDS:] if len(word) > 1]
    grams += sorted([f"{left} {right}" for left, right in pairwise(words)], key=len)[-N_PAIRS:]
    if len(words) <= FEW_WORDS:
        grams += {f" {text} "[i : i + 3] for i in range(min(len(text), N_TRIGRAMS))}
    return {crc32(gram.encode(), seed) for gram in grams}


def fts5_words(grams: Collection[int]) -> str:
    """Return grams as words of SQLite's FTS5."""
    return ("%x " * len(grams)) % (*grams,)


def signed(gram: int) -> int:
    """Return a gram as an integer of PostgreSQL, which has a sign."""
    return gram - 2**31
