"""Sentences in capitals: models have hardly seen any, and their tokens are pieces of a letter or two. So such a
sentence is read in small letters, and its translation written in capitals.

Every character stays one character, so that places in one text are places in the other.
"""

import re
from collections.abc import Iterable, Sequence

from service.markup.placeholders import edited
from service.sentences import Span

_WORD = re.compile(r"[^\W\d_]+")
_CAPITAL_ALWAYS = {"en": re.compile(r"\bi\b")}
"""Words that a language writes with a capital wherever they stand."""


def in_small_letters(text: str, sentences: Iterable[Span], language: str, stand_ins: Sequence[Span] = ()) -> str:
    """The text, as long as before, with its sentences in capitals written as others are.

    A sentence is in capitals if it has no small letter and at least two words, one of them of three letters: others
    may be names and abbreviations.

    Args:
        stand_ins: words that stay as they are, and tell nothing of their sentence; in order.
    """
    shouted, _ = edited(text, [(span, span.of(text).upper()) for span in stand_ins])
    others = {span.start for span in stand_ins}
    pieces, position = [], 0
    for span in sentences:
        words = [word.group() for word in _WORD.finditer(shouted, *span.pair) if word.start() not in others]
        if span.of(shouted).isupper() and _is_prose(words):
            pieces += [shouted[position : span.start], _sentence_case(span.of(shouted), language)]
            position = span.end
    small = "".join([*pieces, shouted[position:]])
    return edited(small, [(span, span.of(text)) for span in stand_ins])[0]


def in_capitals(text: str) -> str:
    """The text, as long as before, in capitals: a letter that two of them stand for becomes its own capital, as ẞ, or
    stays as it is."""
    return "".join(_capital(character) for character in text)


def _is_prose(words: list[str]) -> bool:
    return len(words) >= 2 and max(map(len, words)) >= 3


def _sentence_case(sentence: str, language: str) -> str:
    first = next(i for i, character in enumerate(sentence) if character.isupper())
    small = "".join(_one(character, character.lower()) for character in sentence[first + 1 :])
    if language in _CAPITAL_ALWAYS:
        small = _CAPITAL_ALWAYS[language].sub(lambda match: match.group().upper(), small)
    return sentence[: first + 1] + small


def _capital(character: str) -> str:
    return "ẞ" if character == "ß" else _one(character, character.upper())


def _one(character: str, changed: str) -> str:
    return changed if len(changed) == 1 else character
