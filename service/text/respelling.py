"""How a text is shown to models: what they have hardly seen is written as they have seen it.

Nobody sees a byte order mark, a soft hyphen, or whether an accent is a character of its own; a model that has not read
them makes another sentence of it.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize

from service.text.scripts import JAPANESE
from service.text.spans import Edits, Span, edited

_INVISIBLE = (
    r"[\x00-\x08\x0e-\x1b\x7f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060"
    r"\u2066-\u2069\ufe00-\ufe0e\ufeff\U000e0100-\U000e01ef]"
)
_ACCENT = r"[\u0300-\u036f\u3099\u309a]"
_LIGATURE = r"[\ufb00-\ufb04]"
_OTHER_WIDTH = r"[\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\u3380-\u33df]+|[\u2103\u2109]"
"""Latin letters as wide as kanji, katakana half as wide, and units in one character, as ㎡ and ℃."""
_DOTS = re.compile("…+")
_PUNCTUATION = {"´": "'", "`": "'", "—": " – ", "--": " – "}  # noqa: RUF001
_STRESS = re.compile(r"(?<=[а-яё])[\u0300\u0301]", re.IGNORECASE)  # noqa: RUF001
"""Put over Russian vowels for learners."""
_STRESSED_LETTERS = str.maketrans("ѐЀѝЍ", "еЕиИ")
"""The same, of those that Unicode has as one."""
_HARDLY_SEEN = re.compile(
    rf"{_LIGATURE}|{_OTHER_WIDTH}"
    rf"|(?<=[^\W\d_]|{_ACCENT}){_INVISIBLE}*[´`]{_INVISIBLE}*(?=[^\W\d_])"  # noqa: RUF001
    rf"|(?<=\w|{_ACCENT}){_INVISIBLE}*(?:—|-{_INVISIBLE}*-){_INVISIBLE}*(?=\w)"
    rf"|(?<![…{JAPANESE}])…+(?![…{JAPANESE}])"  # Japanese has them, and goes on behind them
    r"|[\uf900-\ufaff]"  # kanji that Unicode has twice
    rf"|[^\W\d_](?:{_INVISIBLE}*{_ACCENT})+"  # a letter and its accents
    rf"|{_INVISIBLE}+"
)
_COMPATIBLE = re.compile(f"{_LIGATURE}|{_OTHER_WIDTH}")
_SUSPECT = re.compile(rf"[\uf900-\ufaff]|{_LIGATURE}|{_OTHER_WIDTH}|{_ACCENT}|{_INVISIBLE}|[´`—…-]")  # noqa: RUF001
"""What each of these has one of: most texts have none, and are not searched."""
_INVISIBLES = re.compile(f"{_INVISIBLE}+")
_DEGREES = re.compile(r"(?<=\d)[ \u00a0\u202f]?(?:°[ \u00a0\u202f]?[CF]\b|[\u2103\u2109](?![^\W_]))")
_SCALES = {"C": " degrees", "F": " degrees Fahrenheit"}
_WITHOUT_SIGN = frozenset({"ja", "ru"})
"""Languages whose corpora have temperatures in words alone, so that models into them do not write the sign."""


def respellings(text: str) -> Iterator[tuple[Span, str]]:
    """Parts of a text, in order, and how models have seen them."""
    for match in _HARDLY_SEEN.finditer(text) if _SUSPECT.search(text) else ():
        visible = _INVISIBLES.sub("", match.group())
        if visible in _PUNCTUATION:
            usual = _PUNCTUATION[visible]
        elif _DOTS.fullmatch(visible):
            usual = visible.replace("…", "...")
        else:
            composed = normalize("NFKC" if _COMPATIBLE.match(visible) else "NFC", visible)
            usual = _STRESS.sub("", composed.translate(_STRESSED_LETTERS))
        if usual != match.group():
            yield Span(*match.span()), usual


def degrees_in_words(text: str, source: str, target: str) -> Iterator[tuple[Span, str]]:
    """Signs of English temperatures, in order, and the words for them: 20 °C is 20 degrees."""
    if source == "en" and target in _WITHOUT_SIGN:
        for match in _DEGREES.finditer(text):
            yield Span(*match.span()), _SCALES[normalize("NFKC", match.group())[-1]]


def respelled(text: str) -> tuple[str, Edits]:
    """The text as models have seen such texts."""
    return edited(text, respellings(text))
