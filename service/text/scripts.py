"""Scripts: which have spaces between words, and the words of a text in letters that its language does not use."""

import re
from functools import cache

from service.text.spans import Span

LETTER = r"[^\W\u0590-\U0010ffff]"
"""A pattern of a letter or digit up to U+058F: of Latin, Greek, Cyrillic and Armenian script, whose words have spaces
between them. Beside such a letter a number is a part of a word, beside a kanji it is not."""

JAPANESE = r"\u3005\u3040-\u30ff\u3400-\u9fff"
"""Kana and kanji, in a class of characters."""
_UNSPACED = re.compile(rf"[{JAPANESE}\u3001-\u301f\uff01-\uff9f]")
"""With their marks."""

_LETTERS = {
    "Cyrillic": r"\u0400-\u052f",
    "Japanese": (  # without punctuation
        r"\u2e80-\u2fff\u3005-\u3007\u3031-\u3035\u3040-\u30ff\u3190-\u9fff\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff"
    ),
    "other": (  # from Greek and Hebrew to Korean
        r"\u0370-\u03ff\u0530-\u1cff\u2c80-\u2e7f\u3100-\u318f\ua000-\ua71f\ua800-\uab2f\uabc0-\ud7ff\ufb13-\ufdff"
        r"\ufe70-\ufefc\U00010000-\U0001d7ff\U0001e000-\U0001efff"
    ),
}
"""By script, but for Latin letters, which all read."""
_SCRIPT = {"en": "Latin", "de": "Latin", "fr": "Latin", "ru": "Cyrillic", "ja": "Japanese"}


@cache
def _in_other_letters(own: str) -> re.Pattern[str]:
    letters = "".join(letters for script, letters in _LETTERS.items() if script != own)
    return re.compile(rf"[{letters}](?:[{letters}\u0300-\u036f\u200c\u200d]|[ '’·-](?=[{letters}]))*")  # noqa: RUF001


def foreign_words(text: str, source: str) -> list[Span]:
    """Words in letters that a language does not use, which a model would change; none if its letters are not known.

    They may be letters of the target language: whoever writes "спасибо" in English means this word.
    """
    if text.isascii() or source not in _SCRIPT:
        return []
    return [Span(*match.span()) for match in _in_other_letters(_SCRIPT[source]).finditer(text)]


def is_unspaced(characters: str) -> bool:
    """Whether one is of a script, or a mark of it, that has no spaces between words."""
    return _UNSPACED.search(characters) is not None
