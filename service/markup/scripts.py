"""Words in letters that neither language of a translation is written in: a model reads them byte by byte, and invents
words."""

import re
from functools import cache

from service.text.sentences import Span

LETTER = r"[^\W\u0590-\U0010ffff]"
"""A pattern of a letter or digit up to U+058F: of Latin, Greek, Cyrillic and Armenian script, whose words have spaces
between them. Beside such a letter a number is a part of a word, beside a kanji it is not."""

JAPANESE = r"\u3005\u3040-\u30ff\u3400-\u9fff"
"""Kana and kanji, in a class of characters."""

_LETTERS = {
    "Cyrillic": r"\u0400-\u052f",
    "Japanese": r"\u2e80-\u30ff\u3190-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff",
    "other": (  # from Greek and Hebrew to Korean
        r"\u0370-\u03ff\u0530-\u1cff\u2c80-\u2e7f\u3100-\u318f\ua000-\ua71f\ua800-\uab2f\uabc0-\ud7ff\ufb13-\ufdff"
        r"\ufe70-\ufefc\U00010000-\U0001d7ff\U0001e000-\U0001efff"
    ),
}
"""By script, but for Latin letters, which all read."""
_SCRIPT = {"en": "Latin", "de": "Latin", "fr": "Latin", "ru": "Cyrillic", "ja": "Japanese"}


@cache
def _beside(*scripts: str) -> re.Pattern[str]:
    letters = "".join(letters for script, letters in _LETTERS.items() if script not in scripts)
    return re.compile(rf"[{letters}](?:[{letters}\u0300-\u036f\u200c\u200d]|[ '’·-](?=[{letters}]))*")  # noqa: RUF001


def foreign_words(text: str, source: str, target: str) -> list[Span]:
    """Runs of them, in order; none where it is not known what a language is written in."""
    if text.isascii() or not {source, target} <= _SCRIPT.keys():
        return []
    return [Span(*match.span()) for match in _beside(_SCRIPT[source], _SCRIPT[target]).finditer(text)]
