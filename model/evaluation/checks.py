"""Checks of a translation without a reference, which any good one passes.

Patterns are regular expressions over whole words, in any case: `chiens?` does not match in `chienne`. In Japanese,
which writes no spaces, they match anywhere, but a number is a word: `三` does not match in `十三`.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal

from model.words import HALF_WIDTH, JAPANESE, JAPANESE_LETTERS

Ending = Literal["?", "!", "word"]

WORD = re.compile(r"\w+")
WORD_OR_TWO_LETTERS = re.compile(rf"[{JAPANESE_LETTERS}]{{1,2}}|[^\W{JAPANESE_LETTERS}]+")
ARTICLES = {
    "en": r"^(the|an?|some|to) ",
    "fr": r"^((de )?l'|d'|(le|la|les|une?|des|du|de la|de) )",
    "de": r"^(d(er|ie|as|en|em)|eine?[nmr]?|zu) ",
}
"""Articles before a word, and the particle of an infinitive, by language."""
JAPANESE_VERB_ENDING = re.compile(r"(?<=.)(です|(する|します|して)(こと|ください|下さい)?)$")
NUMERALS = r"\d\u3007一二三四五六七八九十百千万億"
EDGES = r"(?<!\w)", r"(?!\w)"
"""Start and end of a word."""
_OF_JAPANESE = rf"(?!(?<=[{NUMERALS}])(?=[{NUMERALS}]))(?:(?<=[{JAPANESE_LETTERS}])|(?=[{JAPANESE_LETTERS}])|%s)"
EDGES_OF_JAPANESE = _OF_JAPANESE % EDGES[0], _OF_JAPANESE % EDGES[1]
GROUP_SEPARATOR = re.compile(r"(?<=\d)[ .,'](?=\d{3}(?!\d))")
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
CAPITALS = 0.8
"""Smallest share of capital letters: units, or parts such as the h of "17h45", are never capital."""
REPEATED_WORDS = re.compile(r"\b(\w+(?:\W+\w+){2,11})\W+\1\b|\b(\w+(?:\W+\w+){0,1})(?:\W+\2\b){2,}")
"""Three or more words twice in a row, one or two words three times."""
REPEATING = re.compile(rf"\b(\w+(?:\W+\w+){{0,11}})\W+\1\b|([{JAPANESE_LETTERS}]{{1,8}})\2")
"""Repetition in a source, whose translation may repeat itself too."""
REPEATED_PIECE = re.compile(rf"([^\W{JAPANESE_LETTERS}]{{2,8}})\1{{2,}}")
"""A piece of a word three times in a row, as a model writes when it is caught in a loop."""
REPEATED_LETTERS = re.compile(rf"([{JAPANESE_LETTERS}]{{6,24}})\W*\1|([{JAPANESE_LETTERS}]{{2,5}})\2{{2,}}")
"""Repetition in Japanese: six letters, about three words, twice in a row, or fewer three times."""
UNMARKED_QUESTION = re.compile(r"(か[いなねよ]?|かしら|だい|の|だろう|でしょう|ね)。$")
"""Endings of Japanese questions without a question mark."""
REPEATED = ((REPEATED_WORDS, REPEATING), (REPEATED_PIECE, REPEATED_PIECE), (REPEATED_LETTERS, REPEATING))
"""Patterns of repetition in outputs, each with a pattern of sources that may be repeated."""


def normalize_text(text: str) -> str:
    """Normalize a text: one kind of apostrophe and space, composed accents, ASCII instead of full width."""
    text = unicodedata.normalize("NFC", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(text.translate(HALF_WIDTH).split())


def find_match(pattern: str, text: str) -> str | None:
    """Return the first match of a pattern of whole words in a text."""
    match = _words(pattern, JAPANESE.search(text) is not None).search(text)
    return match and match.group()


@cache  # a suite has more patterns than re keeps
def _words(pattern: str, is_japanese: bool) -> re.Pattern[str]:
    # Compiling classes of thousands of kanji is slow, and several times slower when case is ignored.
    start, end = EDGES_OF_JAPANESE if is_japanese else EDGES
    return re.compile(f"{start}(?i:{pattern}){end}")


def contains(kept: str, text: str) -> bool:
    """Whether a name or a number is in a text; 12,500.5 is the same as 12 500,5."""
    return find_match(re.escape(_numerals(kept)), _numerals(text)) is not None


def _numerals(text: str) -> str:
    return DECIMAL_COMMA.sub(".", GROUP_SEPARATOR.sub("", text))


def bare_word(text: str, language: str) -> str:
    """Return a word or a short phrase without what good translations of it differ in: capitals, an article, final
    marks, a full form of a Japanese verb."""
    text = re.sub(r"^\W+|\W+$", "", normalize_text(text).casefold()).replace("ё", "е")  # noqa: RUF001
    text = re.sub(ARTICLES.get(language, r"(?!)"), "", text)
    return JAPANESE_VERB_ENDING.sub("", text) if language == "ja" else text


def n_words(text: str) -> int:
    """Count the words of a text; of Japanese, written without spaces, two letters count as one."""
    return len(WORD_OR_TWO_LETTERS.findall(text))


def is_copy(output: str, source: str) -> bool:
    """Whether the output is the source, except for case and punctuation."""
    return WORD.findall(output.casefold()) == WORD.findall(source.casefold())


def find_repetition(output: str, source: str) -> str | None:
    """Return a repetition in the output, unless the source repeats itself too."""
    output, source = output.casefold(), source.casefold()
    for pattern, allowed in REPEATED:
        match = pattern.search(output)
        if match and not allowed.search(source):
            return match.group()
    return None


def is_in_capitals(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    return sum(letter.isupper() for letter in letters) >= CAPITALS * len(letters)


def ends_with(output: str, ending: Ending) -> bool:
    """Whether a text ends with a mark, or with no mark (`word`); closing quotes and brackets may follow."""
    output = output.rstrip(" \"'»)”」』")
    if ending == "?" and UNMARKED_QUESTION.search(output):
        return True
    last = output[-1:]
    return last == ending if ending != "word" else last not in {".", "!", "?", "…", ":", ";", ",", "。", "、"}


def problems_in(
    source: str,
    output: str,
    *,
    must: Iterable[str] = (),
    never: Iterable[str] = (),
    keep: Iterable[str] = (),
    ends: Ending | None = None,
    capitals: bool = False,
    shortest: float = 0,
    longest: float = float("inf"),
) -> list[str]:
    """Describe what is wrong with an output; empty if nothing is.

    Args:
        must: patterns that must all match.
        never: patterns that must not match.
        keep: names and numbers that the output must contain.
        capitals: whether nearly all letters must be capitals.
        shortest, longest: bounds on the number of words.
    """
    source, output = normalize_text(source), normalize_text(output)
    problems = []
    if is_copy(output, source):
        problems.append("no copy of the source")
    repeated = find_repetition(output, source)
    if repeated:
        problems.append(f"no repetition: {repeated}")
    if not shortest <= n_words(output) <= longest:
        problems.append(f"{shortest:.0f} to {longest:.0f} words, not {n_words(output)}")
    problems += [pattern for pattern in must if find_match(pattern, output) is None]
    problems += [f"not: {match}" for pattern in never if (match := find_match(pattern, output)) is not None]
    problems += [f"{name} kept" for name in keep if not contains(name, output)]
    if ends and not ends_with(output, ends):
        problems.append("no punctuation at the end" if ends == "word" else f"{ends} at the end")
    if capitals and not is_in_capitals(output):
        problems.append("capitals")
    return problems
