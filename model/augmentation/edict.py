"""`python -m model dictionary`: the words of EDICT, a Japanese-English dictionary, as sentence pairs are written.

A small corpus lacks common words, and a dictionary has them. EDICT, and ENAMDICT of names (both of the Electronic
Dictionary Research and Development Group; Debian: edict, enamdict), have an entry a line, in EUC-JP:

    食べる [たべる] /(v1,vt) (1) to eat/(2) to live on (e.g. a salary)/to live off/(P)/

The headword, its reading if that is not the headword, the senses with their glosses, and (P) where the word is common.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from model.data import DataError, Row, read_tsv

EDICT = "edict"
"""Name of the file."""
FEWEST_SENTENCES = 20
"""Of the corpora, with each English word of a gloss, unless EDICT says that the Japanese one is common."""
MOST_WORDS = 6
"""Longer glosses explain."""
SHORTEST_READING = 3
"""Kana. Shorter ones are mostly those of several words."""
ENTRY = re.compile(r"(?P<headword>[^\[/]+?)(?: \[(?P<reading>[^]]+)\])? /(?P<senses>.*)")
UNUSUAL = re.compile(r"\((?:arch|Buddh|dated|derog|i[kK]|io|obs|obsc|o[kK]|poet|proverb|rare|sumo|vulg|X)\b")
"""Labels of what is old, misspelt, known to few or better left unsaid."""
USUALLY_KANA, COMMON = "(uk)", "(P)"
LABELS = re.compile(r"(?<=/)(?:\([^)]*\) ?)+")
ASIDE = re.compile(r"\([^)]*\)|\{[^}]*\}|\[[^]]*\]")
GLOSS = re.compile(r"[A-Za-z][A-Za-z ,.!?'-]*")
ENGLISH_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")


class Entry(NamedTuple):
    headword: str
    reading: str
    """In kana; of a headword in kana the headword."""
    labels: str
    """What its first sense begins with in brackets; (P) if any sense has it."""
    glosses: list[str]
    """Of its first sense, without labels and explanations."""


def entries(dictionary: Path) -> Iterator[Entry]:
    """All entries in order.

    Raises:
        DataError: the file is missing or not in EDICT's format.
    """
    try:
        lines = dictionary.read_text(encoding="euc_jp").strip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{dictionary} cannot be read: {error}") from error
    for number, line in enumerate(lines[1:], start=2):  # the first names the file
        match = ENTRY.fullmatch(line)
        if not match:
            raise DataError(f"{dictionary}, line {number}: no headword with its senses between slashes")
        first_sense, *_ = match["senses"].split("(2)")
        labels = "".join(LABELS.findall(f"/{first_sense}"))
        labels += COMMON if COMMON in match["senses"] and COMMON not in labels else ""
        glosses = [" ".join(ASIDE.sub("", gloss).split()) for gloss in first_sense.split("/")]
        yield Entry(match["headword"], match["reading"] or match["headword"], labels, [*filter(None, glosses)])


def edict_pairs(dictionary: Path, corpora: Sequence[Path], common_only: bool = False) -> Iterator[Row]:
    """Words with the first of their glosses, the common ones first, and these also in kana where no other common word
    sounds the same; English first.

    Args:
        dictionary: the file named edict.
        corpora: whose first column is English, and tells which words are common.
        common_only: leave out what EDICT does not call common.

    Raises:
        DataError: the dictionary or a corpus is missing or malformed.
    """
    texts = [row.left.lower() for path in corpora for row in read_tsv(path)]
    sentences = Counter(word for text in texts for word in set(ENGLISH_WORD.findall(text)))
    known = {word for word, n in sentences.items() if n >= FEWEST_SENTENCES}
    usual = [entry for entry in entries(dictionary) if not UNUSUAL.search(entry.labels)]
    common = [entry for entry in usual if COMMON in entry.labels]
    words: dict[str, str] = {}
    for entry in common:
        if gloss := _gloss(entry):
            words.setdefault(as_written(entry), gloss)
    sounds = Counter(reading for _, reading in {(entry.headword, entry.reading) for entry in common})
    for entry in common:
        if sounds[entry.reading] == 1 and len(entry.reading) >= SHORTEST_READING and (gloss := _gloss(entry)):
            words.setdefault(entry.reading, gloss)
    for entry in () if common_only else usual:
        gloss = _gloss(entry)
        if gloss and known.issuperset(ENGLISH_WORD.findall(gloss.lower())):
            words.setdefault(as_written(entry), gloss)
    yield from (Row(gloss, word) for word, gloss in words.items())


def as_written(entry: Entry) -> str:
    """Its usual spelling."""
    return entry.reading if USUALLY_KANA in entry.labels else entry.headword


def _gloss(entry: Entry) -> str | None:
    """The first that is not too long and of usual characters."""
    plain = (gloss for gloss in entry.glosses if GLOSS.fullmatch(gloss) and len(gloss.split()) <= MOST_WORDS)
    return next(plain, None)
