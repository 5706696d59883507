"""Words that stand for what is to come out of a translation as it went in, and how translations write them.

A Russian translation declines a name, "с Полом", and a Japanese one has it in katakana and may have numbers in kanji.
"""

import re
from collections.abc import Iterator
from typing import Literal

from service.text.scripts import LETTER

StandInKind = Literal["person", "place", "number", "year"]

STAND_INS: dict[StandInKind, tuple[str, ...]] = {
    "person": ("Tom", "Paul", "Daniel", "Martin", "Victor", "Nina", "Sophie", "David", "Laura", "Simon", "Julia"),
    "place": ("Toronto", "Madrid", "Tokyo", "Google", "Boston", "Berlin", "Dallas", "Kyoto", "Chicago", "Lima"),
    "year": ("1985", "1978", "1963", "2013", "1974", "1957", "1948", "2017", "1952", "1936"),
    "number": ("48", "53", "76", "86", "58", "45", "25", "82", "43"),
}
"""Words that models copy, by what they stand for, the best first."""

_RUSSIAN_AND_JAPANESE = {
    "Tom": ("Том", "トム"),
    "Paul": (r"Пол(?:ом|[аеуьюя])?(?!\w)", "ポール"),
    "Daniel": ("Дани[еиэ]л", "ダニエル"),
    "Martin": ("Мартин", "マー?[テチ]ィ?ン"),
    "Victor": ("Виктор", "[ビヴ]ィ?ク[タト][ーリル]?"),
    "Nina": ("Нин(?:ой|[аеуы])", "ニーナ"),
    "Sophie": ("Соф[иь]", "ソフィ[ーアヤ]?"),
    "David": ("Д[аэ]вид", "デイ?[ビヴ]ィ?ッ?ド?"),
    "Laura": ("Л(?:ау|о)р(?:ой|[аеуы])", "ローラ"),
    "Simon": ("Са?[ий]мон", "サイモン|シモン"),
    "Julia": ("Юли|Джули", "ジュリア"),
    "Toronto": ("Торонто", "トロント"),
    "Madrid": ("Мадрид", "マドリー?ッ?ド?"),
    "Tokyo": ("Токио", "東京"),
    "Google": ("Гугл", "グーグル"),
    "Boston": ("Бостон", "ボストン"),
    "Berlin": ("Берлин", "ベルリン"),
    "Dallas": ("Даллас", "ダラス"),
    "Kyoto": ("Киото", "(?<!東)京都"),
    "Chicago": ("Чикаго", "シカゴ"),
    "Lima": ("Лим(?:ой|[аеуы])", "リマ"),
}
"""Patterns of how the same words begin, which is all of them but for a Russian ending."""
_IN_OTHER_LETTERS = {
    word: re.compile(rf"(?<!{LETTER})(?:{russian}|{japanese})")
    for word, (russian, japanese) in _RUSSIAN_AND_JAPANESE.items()
}
_ENDING = "(?:[еоё][ймю]|[аеийоуыьюя])?"
_KATAKANA = r"[\u30a1-\u30fa\u30fc]"
_KANJI_DIGITS = "〇一二三四五六七八九"
_WIDE_DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
_IN_NUMBERS = rf"[\d{_KANJI_DIGITS}十百千万億兆]"


def named_in_other_letters(text: str) -> Iterator[str]:
    """The stand-ins that a text may have as its own words, in letters that are not Latin."""
    if not text.isascii():
        yield from (word for word, begun in _IN_OTHER_LETTERS.items() if begun.search(text))


def written(stand_in: str) -> str:
    """A pattern of a stand-in in a translation.

    A model may write one right behind another word: "coûte48", "dictPaul".
    """
    if stand_in.isdigit():
        numbers = "|".join((stand_in, *in_kanji(stand_in)))
        return rf"(?<!{_IN_NUMBERS})(?:{numbers})(?!{_IN_NUMBERS})"
    behind = rf"(?:(?<!{LETTER})|(?<=[a-zß-öø-ÿа-яё]))"
    forms = [rf"{behind}(?:{stand_in}|{stand_in.upper()})(?!{LETTER})"]
    if stand_in in _RUSSIAN_AND_JAPANESE:
        russian, japanese = _RUSSIAN_AND_JAPANESE[stand_in]
        forms.append(rf"{behind}(?=[А-Я])(?i:(?:{russian}){_ENDING})(?!{LETTER})")
        forms.append(rf"(?<!{_KATAKANA})(?:{japanese})(?!{_KATAKANA})")
    return "|".join(forms)


def in_kanji(number: str) -> tuple[str, str, str]:
    """A number below ten thousand in wide digits and in kanji: 48 as ４８, 四八 and 四十八."""
    digits = [_KANJI_DIGITS[int(digit)] for digit in number]
    places = zip(digits, ("千", "百", "十", "")[-len(digits) :], strict=True)
    counted = [f"{digit}{place}" for digit, place in places if digit != _KANJI_DIGITS[0]]
    return number.translate(_WIDE_DIGITS), "".join(digits), re.sub("一(?=[十百千])", "", "".join(counted))
