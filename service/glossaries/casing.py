"""Capital and small letters of terms and of their places in a text."""

import re
from itertools import pairwise, takewhile

_WORD = re.compile(r"\w+")
_SENTENCE_ENDS = frozenset(".!?…。！？\n\r\t")


def has_capitals(text: str) -> bool:
    return text != text.lower()


def is_in_capitals(text: str) -> bool:
    """Return whether a text has no small letters. A single capital does not count: it may begin a sentence."""
    return text.isupper() and sum(map(str.isalpha, text)) > 1


def in_capitals(text: str) -> str:
    """Return a text in capitals. A name such as iPhone stays as it is."""
    is_name = any(before.islower() and after.isupper() for before, after in pairwise(text))
    return text if is_name else text.upper()


def with_capital(text: str) -> str:
    """Return a text that begins with a capital, with as many characters. A first word with capitals stays as it is."""
    word = _WORD.search(text)
    if word is None or has_capitals(word.group()):
        return text
    start, capital = word.start(), word.group()[0].upper()
    return f"{text[:start]}{capital}{text[start + 1 :]}" if len(capital) == 1 else text


def begins_sentence(text: str, position: int) -> bool:
    """Return whether no letter or digit stands between a position and the start of its line or sentence."""
    between = [*takewhile(lambda character: not character.isalnum(), reversed(text[max(0, position - 50) : position]))]
    return len(between) == min(50, position) or any(character in _SENTENCE_ENDS for character in between)
