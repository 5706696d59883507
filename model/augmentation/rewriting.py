"""Rewrites rows as users also write: other names and numbers, capitals or none, no full stop, long or single words.

A small corpus has few names (in Tatoeba nearly all are Tom and Mary), so a model learns these words and not to copy.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np

from model.augmentation.word_pairs import word_pairs
from model.data import Row
from model.recipe import Rewrite
from model.words import HALF_WIDTH, JAPANESE

VARIANTS = 4
"""Number of random variants of each row."""
NAME = re.compile(r"\b(?:[A-Z][a-z]{2,}|[А-ЯЁ][а-яё]{2,})\b")
NUMBER = re.compile(r"\d{2,}")
DIGITS = re.compile(r"\d+")
WIDE_MARKS = ("。", "！", "？", "」", "』")
MAX_JOINED = 4
MAX_LIST_LENGTH = 8
FINAL_PUNCTUATION = re.compile(r"\s*[.!?…。！？]+\s*$")
FULL_WIDTH_DIGITS = {code: HALF_WIDTH[code] for code in range(ord("０"), ord("９") + 1)}
KANJI_DIGITS = "〇一二三四五六七八九"
KANJI_POWERS = ("", "十", "百", "千")
LONE_NUMBER = re.compile(r"(?<![\d.,．，:：/／A-Za-z])[1-9]\d{0,3}(?![\d.,．，:：/／%％A-Za-z])")
"""Excludes decimals, times, dates and codes, which are not written in kanji."""
VOWELS = ("a", "e", "i", "o", "u", "ia", "ou", "ei", "aa", "y")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "dr", "fl", "gr", "kr", "kh", "kw", "lj", "mb", "nd", "pr", "sch", "sh",
          "sk", "st", "str", "sz", "th", "tr", "ts", "zh")  # fmt: skip
CODAS = ("", "", "", "n", "s", "r", "l", "k", "m", "t", "ck", "ng", "ski", "ński", "sson", "ström", "rd", "tz", "va",
         "dez", "ić", "ão")  # fmt: skip
CYRILLIC_VOWELS = "аеиоуяэ"
CYRILLIC_ONSETS = (*"бвгджзклмнпрстфхцчш", "бр", "вл", "гр", "др", "кр", "св", "ск", "ст", "тр", "хр", "щ")
CYRILLIC_CODAS = ("ан", "ев", "ек", "ил", "ин", "ов", "овский", "он", "ор", "ус", "ян")
CYRILLIC_CODAS_OF_WOMEN = ("а", "а", "ева", "ина", "ия", "ова", "овская")
"""Endings of feminine names: verbs and adjectives of a row agree with its name in gender."""
LATIN_SHARE = 0.25
"""Share of names that stay in Latin letters in Russian too, like those of products."""
LATIN_LETTERS = str.maketrans(
    dict(zip("абвгдеёзийклмнопрстуфыэ", "abvgdeeziyklmnoprstufye", strict=True))
    | {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu", "я": "ya"}
)


def rewrite_rows(rows: Sequence[Row], rewrite: Rewrite, random: np.random.Generator) -> list[Row]:
    """Rewrite the rows to which a rewriting applies, both sides alike, and return only those."""
    if rewrite == "other_names":
        return [row for _ in range(VARIANTS) for row in _renamed(rows, random)]
    if rewrite == "other_numbers":
        return [row for _ in range(VARIANTS) for row in _renumbered(rows, random)]
    if rewrite == "half_width":
        return [new for row in rows if (new := Row(*(text.translate(HALF_WIDTH) for text in row))) != row]
    if rewrite == "kanji_numbers":
        return [row for _ in range(VARIANTS) for row in _in_kanji(_renumbered(rows, random))]
    if rewrite == "joined":
        return list(_joined(rows, random))
    if rewrite == "single_words":
        return word_pairs(rows)
    if rewrite == "lists":
        return _lists(word_pairs(rows), len(rows), random)
    if rewrite == "capitalized":
        return [new for row in rows if (new := Row(*(text[:1].upper() + text[1:] for text in row))).left != row.left]
    if rewrite == "capitals":
        return [Row(row.left.upper(), row.right.upper()) for row in rows if row.left != row.left.upper()]
    if rewrite == "no_capitals":
        return [Row(row.left.lower(), row.right) for row in rows if row.left != row.left.lower()]
    stripped = (Row(*(FINAL_PUNCTUATION.sub("", text) for text in row)) for row in rows)
    return [new for new, row in zip(stripped, rows, strict=True) if new.left and new.right and new != row]


def _renamed(rows: Sequence[Row], random: np.random.Generator) -> Iterator[Row]:
    """Yield rows that share a name or a number between their sides, with others in its place."""
    for row in rows:
        new = row
        for pattern, invent in ((NAME, _name), (NUMBER, _number)):
            # Sets would have another order in every process; a resumed run must draw what the killed one drew.
            here, there = (dict.fromkeys(pattern.findall(text)) for text in row)
            romanized_there = {romanized(word): word for word in reversed(there)}
            for word in here:
                other = word if word in there else romanized_there.get(romanized(word))
                if other and (other == word or other not in here):
                    invented = invent(other if word.isascii() else word, random)
                    if word != other and random.random() < LATIN_SHARE:
                        invented = romanized(invented)
                    new = Row(_exchanged(new.left, word, invented), _exchanged(new.right, other, invented))
        if new != row:
            yield new


def romanized(word: str) -> str:
    """Transliterate a Russian name, except its ending: Щукин is Shchukin, Дмитрий Dmitry. Others are unchanged."""
    small = re.sub("ий$", "й", word.lower()).translate(LATIN_LETTERS)
    return small.capitalize() if word[:1].isupper() else small


def _exchanged(text: str, word: str, invented: str) -> str:
    return re.sub(rf"(?<!\w){word}(?!\w)", romanized(invented) if word.isascii() else invented, text)


def _name(like: str, random: np.random.Generator) -> str:
    """Invent a name, with a vowel first where `like` has one, because French elides before it (d'Alice)."""
    if not like.isascii():
        return _russian_name(like, random)
    syllables = [f"{random.choice(ONSETS)}{random.choice(VOWELS)}" for _ in range(random.integers(1, 4))]
    if like[0] in "AEIOUYH":
        syllables.insert(0, str(random.choice(VOWELS[:5])))
    return "".join([*syllables, str(random.choice(CODAS))]).capitalize()


def _russian_name(like: str, random: np.random.Generator) -> str:
    syllables = [
        f"{random.choice(CYRILLIC_ONSETS)}{random.choice(list(CYRILLIC_VOWELS))}" for _ in range(random.integers(1, 3))
    ]
    codas = CYRILLIC_CODAS_OF_WOMEN if like[-1] in "ая" else CYRILLIC_CODAS
    return "".join([*syllables, str(random.choice(CYRILLIC_ONSETS)), str(random.choice(codas))]).capitalize()


def _number(like: str, random: np.random.Generator) -> str:
    """Draw as many digits as `like` has, the first of them not zero."""
    first, *rest = random.integers(0, 10, len(like))
    return "".join(map(str, [max(first, 1), *rest]))


def _renumbered(rows: Sequence[Row], random: np.random.Generator) -> Iterator[Row]:
    """Yield rows with the same runs of digits on both sides (17:45 and 17 h 45, 3,600 and 3 600), as other digits."""
    for row in (Row(*(text.translate(FULL_WIDTH_DIGITS) for text in row)) for row in rows):
        runs = DIGITS.findall(row.left)
        if runs and runs == DIGITS.findall(row.right):
            others = [_like(run, random) for run in runs]
            yield Row(*(_replaced(text, others) for text in row))


def _like(run: str, random: np.random.Generator) -> str:
    """A possible hour, day or minute stays one."""
    if len(run) > 2 or (len(run) == 2 and run > "59"):
        return _number(run, random)
    bounds = (
        (2, 10)
        if len(run) == 1
        else next((least, beyond) for least, beyond in ((0, 24), (24, 32), (32, 60)) if int(run) < beyond)
    )
    return f"{random.integers(*bounds):0{len(run)}}"


def _in_kanji(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows whose numbers are in kanji on the Japanese side: 34 as 三十四."""
    for row in rows:
        new = Row(*(LONE_NUMBER.sub(_kanji, text) if JAPANESE.search(text) else text for text in row))
        if new != row:
            yield new


def _kanji(number: re.Match[str]) -> str:
    """Write a number from 1 to 9999 in kanji; a one before a power of ten is omitted."""
    written = ""
    for power, digit in enumerate(reversed(number.group())):
        if digit != "0":
            written = ("" if power and digit == "1" else KANJI_DIGITS[int(digit)]) + KANJI_POWERS[power] + written
    return written


def _replaced(text: str, runs: Sequence[str]) -> str:
    remaining = iter(runs)
    return DIGITS.sub(lambda _: next(remaining), text)


def _joined(rows: Sequence[Row], random: np.random.Generator) -> Iterator[Row]:
    """A corpus of short sentences has too few long ones (Kondo et al. 2021)."""
    order = random.permutation(len(rows)).tolist()
    while len(order) >= 2:
        parts = [rows[order.pop()] for _ in range(min(len(order), int(random.integers(2, MAX_JOINED + 1))))]
        yield Row(*(reduce(_and, side) for side in zip(*parts, strict=True)))


def _and(text: str, following: str) -> str:
    """There is no space after wide Japanese punctuation."""
    return f"{text}{'' if text.endswith(WIDE_MARKS) else ' '}{following}"


def _lists(pairs: Sequence[Row], n: int, random: np.random.Generator) -> list[Row]:
    if not pairs:
        return []
    drawn = (random.choice(len(pairs), random.integers(3, MAX_LIST_LENGTH + 1)) for _ in range(n))
    return [
        Row(", ".join(pairs[i].left for i in indices), ", ".join(pairs[i].right for i in indices)) for indices in drawn
    ]
