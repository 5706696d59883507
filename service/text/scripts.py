"""Find scripts of texts, scripts without spaces, words in letters of other scripts, and hidden characters."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from tokenizers import Regex
from tokenizers.normalizers import Replace

from service.text.spans import Span

LETTER = r"[^\W\u0590-\U0010ffff]"
"""A letter or digit up to U+058F: of Latin, Greek, Cyrillic and Armenian script, whose words have spaces between them.
Beside such a letter a number is part of a word, beside a kanji it is not."""
JAPANESE = r"\u3005\u3040-\u30ff\u3400-\u9fff"
"""Kana and kanji, in a class of characters."""
_UNSPACED = re.compile(rf"[{JAPANESE}\u3001-\u301f\uff01-\uff9f]")
"""Japanese letters and punctuation."""
_REST_OF_WORD = re.compile(
    r"(?:(?<=[\u3005\u3400-\u9fff])[\u3005\u3400-\u9fff]*|(?<=[\u30a1-\u30ff])[\u30a1-\u30ff]*)"
    r"(?:(?![をがはにでのへとも])[\u3041-\u309f]+)?|(?<=[\u3041-\u309f])[\u3041-\u309f]+"
)
"""Kanji or katakana, and hiragana behind them, but no particle."""
_LETTERS = {
    "Cyrillic": r"\u0400-\u052f",
    "Japanese": (  # punctuation excluded
        r"\u2e80-\u2fff\u3005-\u3007\u3031-\u3035\u3040-\u30ff\u3190-\u9fff\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff"
    ),
    "other": (  # from Greek and Hebrew to Korean
        r"\u0370-\u03ff\u0530-\u1cff\u2c80-\u2e7f\u3100-\u318f\ua000-\ua71f\ua800-\uab2f\uabc0-\ud7ff\ufb13-\ufdff"
        r"\ufe70-\ufefc\U00010000-\U0001d7ff\U0001e000-\U0001efff"
    ),
}
"""Letters by script. Latin is missing, as all models read it."""
_SCRIPT = {"en": "Latin", "de": "Latin", "fr": "Latin", "ru": "Cyrillic", "ja": "Japanese"}
_OF_NAMES = {
    "ARABIC": "Arab",
    "ARMENIAN": "Armn",
    "BENGALI": "Beng",
    "CYRILLIC": "Cyrl",
    "DEVANAGARI": "Deva",
    "ETHIOPIC": "Ethi",
    "GEORGIAN": "Geor",
    "GREEK": "Grek",
    "GUJARATI": "Gujr",
    "GURMUKHI": "Guru",
    "HANGUL": "Kore",
    "HEBREW": "Hebr",
    "HIRAGANA": "Jpan",
    "KANNADA": "Knda",
    "KATAKANA": "Jpan",
    "KHMER": "Khmr",
    "LAO": "Laoo",
    "LATIN": "Latn",
    "MALAYALAM": "Mlym",
    "MYANMAR": "Mymr",
    "ORIYA": "Orya",
    "SINHALA": "Sinh",
    "TAMIL": "Taml",
    "TELUGU": "Telu",
    "THAANA": "Thaa",
    "THAI": "Thai",
    "TIBETAN": "Tibt",
}
"""Scripts (ISO 15924) by the first word of their letters' names, without ideographs, which three scripts have."""


def scripts_of(letters: Iterable[str]) -> set[str]:
    """Return the known scripts (ISO 15924) of letters. Ideographs alone mean Japanese, and simplified or traditional
    Chinese, whichever has more of them, or both if they have equally many."""
    scripts = {_script(letter) for letter in letters}
    if "CJK" in scripts:
        ideographs = [letter for letter in letters if _script(letter) == "CJK"]
        n_hans, n_hant = (len([i for i in ideographs if i.encode(codec, "ignore")]) for codec in ("gb2312", "big5"))
        scripts |= {"Jpan", *(["Hans"] if n_hans >= n_hant else []), *(["Hant"] if n_hant >= n_hans else [])}
    return {script for script in scripts if script not in (None, "CJK")}


@lru_cache(maxsize=10_000)
def _script(letter: str) -> str | None:
    first_word = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    return "CJK" if first_word == "CJK" else _OF_NAMES.get(first_word)


@cache
def _in_other_letters(own_script: str) -> re.Pattern[str]:
    letters = "".join(letters for script, letters in _LETTERS.items() if script != own_script)
    return re.compile(rf"[{letters}](?:[{letters}\u0300-\u036f\u200c\u200d]|[ '’·-](?=[{letters}]))*")  # noqa: RUF001


def foreign_words(text: str, source: str) -> list[Span]:
    """Return words in letters that a language does not use, because a model would change them; none if it is unknown.
    The letters may belong to the target language: "спасибо" in an English text means this word."""
    if text.isascii() or source not in _SCRIPT:
        return []
    matches = _in_other_letters(_SCRIPT[source]).finditer(text)
    return [Span(*match.span()) for match in matches if not all(map(is_hidden, match.group()))]


_WITHOUT_HIDDEN = Replace(Regex(r"\p{Default_Ignorable_Code_Point}"), "")


@lru_cache(maxsize=10_000)
def is_hidden(character: str) -> bool:
    """Return whether a character has no sign of its own, such as a joiner (Unicode's Default_Ignorable_Code_Point)."""
    return not without_hidden(character)


def without_hidden(text: str) -> str:
    return str(_WITHOUT_HIDDEN.normalize_str(text))


def end_of_unspaced_word(text: str, position: int) -> int:
    """Return the end of the Japanese word that surrounds a position, or else the position. A word has an ending of
    hiragana, or is written in one script."""
    rest = _REST_OF_WORD.match(text, position)
    return rest.end() if rest else position


def is_unspaced(characters: str) -> bool:
    """Return whether any of the characters belongs to a script without spaces between words."""
    return _UNSPACED.search(characters) is not None
