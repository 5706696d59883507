"""Full stops that end no sentence, though what follows them looks like the start of one: "M. Martin", "vol. 3"."""

import re
from itertools import pairwise

_JOINT = "\0"
"""Where two parts meet."""

_FRENCH = "M|MM|Mr|Mmes?|Mlles?|Dr|Pr|Me|Mgr|Ste?|av|apr|art|chap|éd|env|nos?|tél|vol|bd|boul"
_ENGLISH_BEFORE_NUMBERS = "approx|vols?|chs?|chap|secs?|arts?|est|min|max|av|tel"
_BEFORE_GERMAN_ORDINALS = (
    "am|ab|an|bis|beim|de[mnrs]|das|die|eine?|eine[mnrs]|im|ins?|oder|seit|und|vom|von|zum|zur"
    "|jede[mnrs]?|diese[mnrs]?|(?:[mds]ein|ihr|unser|eue?r)(?:e[mnrs]?)?"
)
_BEGIN_GERMAN_SENTENCES = "Aber|Am|Das|Dann|Danach|Der|Die|Du|Er|Es|Ich|Ihr|Im|In|Jetzt|Man|Sie|Und|Wir"

_INSIDE = {
    "en": rf"\b(?i:{_ENGLISH_BEFORE_NUMBERS})\.\s+{_JOINT}(?=\d)",
    "de": rf"\b(?i:{_BEFORE_GERMAN_ORDINALS})\s+\d{{1,3}}\.\s+{_JOINT}(?!(?:{_BEGIN_GERMAN_SENTENCES})\b)",
    "fr": rf"(?:^|[\s(«'’])(?i:{_FRENCH})\.\s+{_JOINT}|[A-Za-zÀ-ÿ]\.{_JOINT}-|-C\.\s+{_JOINT}(?=[a-zà-ÿ])",  # noqa: RUF001
}
INSIDE = {language: re.compile(pattern) for language, pattern in _INSIDE.items()}
"""Joints inside a sentence."""


def rejoined(parts: list[str], language: str) -> list[int]:
    """Lengths of the sentences in a text that was parted at every full stop that may end one."""
    inside = INSIDE.get(language)
    lengths = [len(part) for part in parts[:1]]
    for before, part in pairwise(parts):
        if inside is not None and inside.search(f"{before}{_JOINT}{part}"):
            lengths[-1] += len(part)
        else:
            lengths.append(len(part))
    return lengths
