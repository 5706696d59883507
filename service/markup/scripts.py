"""Words in letters that neither language of a translation is written in: a model reads them byte by byte, and invents
words."""

import re

from service.sentences import Span

_CYRILLIC = r"\u0400-\u052f"
_OTHERS = (
    r"\u0370-\u03ff\u0530-\u1cff\u2c80-\ua71f\ua800-\uab2f\uabc0-\ud7ff\uf900-\ufaff\ufb13-\ufdff\ufe70-\ufefc"
    r"\uff00-\uffef\U00010000-\U0001d7ff\U0001e000-\U0001efff\U00020000-\U0003ffff"
)
"""Neither Latin nor Cyrillic: from Greek and Hebrew to Chinese."""
_LATIN = frozenset({"en", "de", "fr"})
_LANGUAGES = _LATIN | {"ru"}


def _foreign(letters: str) -> re.Pattern[str]:
    return re.compile(rf"[{letters}](?:[{letters}\u0300-\u036f\u200c\u200d]|[ '’·-](?=[{letters}]))*")  # noqa: RUF001


_BESIDE_LATIN = _foreign(_CYRILLIC + _OTHERS)
_BESIDE_CYRILLIC = _foreign(_OTHERS)
"""Who writes Russian meets Latin letters too."""


def foreign_words(text: str, source: str, target: str) -> list[Span]:
    """Runs of them, in order; none where it is not known what a language is written in."""
    languages = {source, target}
    if text.isascii() or not languages <= _LANGUAGES:
        return []
    foreign = _BESIDE_LATIN if languages <= _LATIN else _BESIDE_CYRILLIC
    return [Span(*match.span()) for match in foreign.finditer(text)]
