"""Find words, signs and emoji that a model's vocabulary cannot write, or only in bytes, and characters without a sign.

A sign beside a number is kept with the number and its unit, as in 20 °C: the sign alone would mean less.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from service.kept.kept_kinds import Role
from service.text.scripts import LETTER, is_hidden, is_unspaced
from service.text.spans import Span
from service.text.tokenization import OPERATORS

CanWrite = Callable[[str], bool]
"""Returns whether a vocabulary has the characters of a text after normalization."""
_EMOJI = re.compile(
    r"(?:[\U0001F1E6-\U0001F1FF]{2}|[0-9#*]\uFE0F?\u20E3"
    r"|[©®‼⁉™ℹ\u2190-\u21FF\u2300-\u23FF\u25A0-\u27BF\u2900-\u297F\u2B00-\u2BFF\u3030\u303D\u3297\u3299\uFFFC"
    r"\U0001F000-\U0001FAFF][\uFE0F\u200D\u2640\u2642\u20E3\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*)+"
)
"""Runs of emoji, with the characters that join, colour or modify them, and the character that stands for an object in a
text, such as a field of Word: it must not become the unit of a number."""
_NUMBER = r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d+)(?:[.,]\d+)*"
_SPACE = "[ \u00a0\u202f]?"
_UNIT = rf"(?:[kcdmµ]?m|[kmµ]?g|[cdm]?l|[kMG]?(?:Hz|W|B|V)|min|ms)(?!{LETTER})"
_PUNCTUATION = r"!-/:-@\[-`{-~"
_WORD = re.compile(rf"(?:{LETTER}|[\u0300-\u036f\u2070-\u209c])+")  # H₂O is one


def unwritable(text: str, can_write: CanWrite) -> Iterator[tuple[Span, Role]]:
    """Yield words, signs and emoji that have to be kept. Words in letters of other scripts are found in scripts.py."""
    if text.isascii() and OPERATORS.isdisjoint(text):
        return
    for match in _EMOJI.finditer(text):
        if not all(map(can_write, match.group())):
            yield Span(*match.span()), "mark"
    text = _EMOJI.sub(lambda match: "\n" * len(match.group()), text)
    strange = {character for character in set(text) if _is_candidate(character) and not can_write(character)}
    if not strange:
        return
    signs = [character for character in strange if not _WORD.fullmatch(character)]
    beside_numbers = "".join(sign for sign in signs if not is_unspaced(sign))
    if beside_numbers:
        for match in _with_numbers(beside_numbers).finditer(text):
            start = match.end() - len(match.group().lstrip())
            has_number = any(map(str.isdigit, match.group()))
            yield Span(start, match.end()), "number" if has_number else "mark"
    others = re.escape("".join(sign for sign in signs if is_unspaced(sign)))
    for match in re.finditer(f"[{others}]", text) if others else ():
        yield Span(*match.span()), "break" if match.group() in "。｡" else "mark"
    letters = strange.difference(signs)
    for match in _WORD.finditer(text) if letters else ():
        if not letters.isdisjoint(match.group()) and not can_write(match.group()):
            yield _with_number(text, Span(*match.span()))


def hidden(text: str, has: CanWrite) -> Iterator[tuple[Span, str]]:
    """Yield the hidden characters that a vocabulary does not have, with what the model reads instead: nothing."""
    if text.isascii():
        return
    strange = {character for character in set(text) if is_hidden(character) and not has(character)}
    if strange:
        yield from ((Span(i, i + 1), "") for i, character in enumerate(text) if character in strange)


def _with_numbers(signs: str) -> re.Pattern[str]:
    """Return a pattern of signs with the numbers beside them and their unit. An operator matches whole, as -> or !=,
    but not in :> or =). The pattern includes the variable in x > 5, which models drop."""
    operator, other = _any_of(OPERATORS.intersection(signs)), _any_of({*signs} - OPERATORS)
    sign = (
        rf"(?:{other}|(?:(?<![{_PUNCTUATION}])|(?<=[(\[\"'])(?=(?:{operator}|=)+{_SPACE}\d))"
        rf"[-!~=]{{0,2}}{operator}(?:{operator}|[-~=])*+(?![{_PUNCTUATION}]))"
    )
    return re.compile(
        rf"(?:(?<!{LETTER})(?<![.,]){_NUMBER}(?={_SPACE}{sign})"
        rf"|(?<!{LETTER})(?<!['’])[A-Za-z](?=(?P<space>{_SPACE})[-!~=]{{0,2}}{operator}=?(?P=space)\d))?"
        rf"(?:{_SPACE}{sign}(?:{_SPACE}{_NUMBER})?)+"
        rf"(?:(?:(?<=\d{other})|(?<=\d[ \u00a0\u202f]{other}))[A-Za-z]{{1,3}}(?!{LETTER})|(?<=\d){_SPACE}{_UNIT})?"
    )


def _any_of(characters: Iterable[str]) -> str:
    return f"[{re.escape(''.join(characters))}]" if characters else "(?!)"


def _is_candidate(character: str) -> bool:
    """Return whether a character may have to be kept: a letter, an accent or a sign. Models know quotation marks and
    dashes, or similar ones, and write letters of scripts without case."""
    category = unicodedata.category(character)
    if character.isascii():
        return character in OPERATORS
    if category in ("Pd", "Pi", "Pf") or category[0] in "CZ" or character in "‚„" or is_hidden(character):
        return False
    return _WORD.fullmatch(character) is not None or category[0] in "PS" or category in ("Nl", "No")


def _with_number(text: str, word: Span) -> tuple[Span, Role]:
    """Return a word with the number before it, as in 20 µg, but only the word of "2 Kraków"."""
    number = re.search(rf"(?<!{LETTER})(?<![.,]){_NUMBER}{_SPACE}$", text[max(0, word.start - 30) : word.start])
    if number is not None and word.end - word.start <= 3:
        return Span(word.start - len(number.group()), word.end), "number"
    return word, "number" if word.of(text)[0].isdigit() else "word"
