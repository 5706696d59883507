"""Texts that are too short for a model: letters, Roman numbers, and codes of a letter and a digit, such as 4C."""

import re

from service.text.scripts import LETTER

MAX_LABEL = 12
"""Maximum number of characters of a label, with the marks around it."""
_LABEL = re.compile(
    rf"""[^\w&@#]*(?P<label>
      (?P<letter>(?!\d){LETTER}) | [A-Za-z]\d{{1,3}} | (?P<ordinal>\d{{1,3}}e) | \d{{1,3}}[A-Za-z]
      | (?=[ivx])x{{0,3}}(?:ix|iv|v?i{{0,3}}) | (?=[CLXVI])C{{0,3}}(?:XC|XL|L?X{{0,3}})(?:IX|IV|V?I{{0,3}})
      )[^\w&@#]*""",
    re.VERBOSE,
)
_WORDS = {"en": "I", "fr": "ayàôÀ", "ru": "Яявиоскуа"}
"""The letters of each language that are words when they stand alone."""


def is_label(text: str, language: str) -> bool:
    """Return whether a text is a label and no word of its language, with marks around it or not."""
    label = _LABEL.fullmatch(text)
    if label is None or (label["ordinal"] and language == "fr"):  # 2e is second
        return False
    return label["letter"] is None or label["letter"] not in _WORDS.get(language, "")
