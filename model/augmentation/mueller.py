"""`python -m model dictionary`: the words and phrases of an English-Russian dictionary, as sentence pairs are written.

A small corpus lacks common words, and a dictionary has them. The one that is read here is V. K. Mueller's, 46,000
headwords in dictd's format (Debian: mueller7-dict):

    hammer
      1. _n.
         1) молоток; молот; hammer and sickle серп и молот; throwing of the hammer _спорт. метание молота

A sense begins with translations of the headword, and goes on with phrases and theirs.
"""

import gzip
import math
import re
import string
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from model.data import DataError, Row, read_tsv

FEWEST_SENTENCES = 3
"""Of the corpora, with a headword: most that are rarer there are old or technical words."""
LARGEST_SHARE = 0.01
"""Of the sentences: words in more of them are pronouns and the like, of which a corpus has enough; what a dictionary
says of them (she: женщина) is not what they are mostly translated by."""
RARE = re.compile(r"_(?:австрал|груб|детск|диал|жарг|ирл|поэт|редк|сев|стих|унив|уст|школ|шотл|эвф|ю-афр)\b")
"""Labels of what few people say."""
OF_PART, OF_SENSE, OF_PLACE = 1.0, 1.0, 0.5
"""What each part of speech, sense and translation before it takes from how common a translation is taken to be: from
the logarithm of the sentences with its headword."""
LARGEST_PENALTY = 2.0
"""A frequent word has twenty senses, and is seldom the translation of what the later ones say."""

DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
"""Of the numbers in an index."""
ASIDE = re.compile(r"\[[^]]*\]|\{[^}]*\}|\([^)]*\)")
"""Pronunciation, references, explanations and variants."""
PART_OF_SPEECH = re.compile(r"(?:\d+\. )?_(n|v|a|adv)\.")
SENSES_OF_A_PHRASE = re.compile(r"(?<=[A-Za-z]) а\).*?(?=(?<!\S)\d+\)|$)")
"""The headword has none of them."""
SENSE = re.compile(r"(?<!\S)(?:\d+|[а-я])\)")
UNUSUAL = re.compile(rf"{RARE.pattern}|_pl\b")
"""Senses that are left out."""
WORDS = re.compile(r"[^\W\d_]{2}")
LABEL = re.compile(r"_[^\W_][\w-]*\.?")
ENGLISH_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
RUSSIAN_WORD = re.compile(r"[а-яё]+(?:-[а-яё]+)?")
INFINITIVE = re.compile(r".*(?:ть|ти|чь)(?:ся|сь)?")
PHRASE = re.compile(r"(?P<english>[A-Za-z][A-Za-z ,.!?'-]*?),? (?P<russian>[А-ЯЁа-яё][А-ЯЁа-яё ,.!?-]*)")
NEW_CLAUSE = re.compile(r", (?:а|будто|где|если|зачем|как|когда|котор\w+|кто|куда|но|откуда|пока|почему|что|чтобы)\b")
"""Any other comma is mostly before the same in other words."""
NO_PHRASE = re.compile(r"\b[B-HJ-Z]\.|\bили\b")
"""A headword in short, and variants."""
INDEFINITE = re.compile(r"\b([кч][а-яё]+)-?л\b\.?")
SHORTENED = {"smb.": "somebody", "smth.": "something", "и т.п.": "", "и т.д.": "", "etc.": ""}


class Translation(NamedTuple):
    """A word, one of its translations, and what the places of that in the entry take from how common it is."""

    english: str
    russian: str
    penalty: float


def mueller_pairs(index: Path, corpora: Sequence[Path]) -> Iterator[Row]:
    """Words, each Russian one with its most usual translation, the most common first, then phrases; English first.

    Args:
        index: the .index file of the dictionary, with its .dict.dz beside it.
        corpora: whose first column is English, and tells which words are common.

    Raises:
        DataError: the dictionary or a corpus is missing or malformed.
    """
    bodies = dict(entries(index))
    # The first word of a sentence has its capital from there; May and may are two words.
    texts = [row.left[:1].lower() + row.left[1:] for path in corpora for row in read_tsv(path)]
    sentences = Counter(word for text in texts for word in set(ENGLISH_WORD.findall(text)))
    common = {word: n for word, n in sentences.items() if FEWEST_SENTENCES <= n <= LARGEST_SHARE * len(texts)}
    yield from word_pairs(bodies, common)
    yield from phrase_pairs(bodies.values())


def entries(index: Path) -> Iterator[tuple[str, str]]:
    """Headwords, and what is said of each.

    Raises:
        DataError: the index, or the dictionary beside it, is missing or not in dictd's format.
    """
    dictionary = index.with_suffix(".dict.dz")
    try:
        content = gzip.decompress(dictionary.read_bytes())
        lines = index.read_text(encoding="utf-8").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{index} and {dictionary.name} cannot be read: {error}") from error
    for line_number, line in enumerate(lines, start=1):
        try:
            headword, start, length = line.split("\t")
            entry = content[number(start) : number(start) + number(length)].decode()
        except ValueError as error:
            raise DataError(f"{index}, line {line_number}: no headword with a place in the dictionary") from error
        if not headword.startswith("00-database"):
            headword, _, body = entry.partition("\n")
            if not headword.startswith("_"):  # an abbreviation that the dictionary itself uses
                yield headword, re.sub(r"(?<=[^\W\d_]-) ", "", " ".join(body.split()))


def number(digits: str) -> int:
    """Of an index: in base 64, the highest digit first.

    Raises:
        ValueError: one is no digit.
    """
    return sum(DIGITS.index(digit) * 64**place for place, digit in enumerate(reversed(digits)))


def parts_of_speech(body: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The label of each part of speech, "" if it has none, with its senses: what is between their semicolons, without
    labels and asides. What few people say is left out, and senses that a word has in the plural alone."""
    first, *others = PART_OF_SPEECH.split(ASIDE.sub("", body))
    for label, text in [("", first), *zip(others[::2], others[1::2], strict=True)]:
        senses = [sense.strip() for sense in SENSE.split(SENSES_OF_A_PHRASE.sub("", text))]
        senses = [sense for sense in senses if WORDS.search(LABEL.sub("", sense)) and not UNUSUAL.match(sense)]
        if senses:
            yield label, [list(_parts(sense)) for sense in senses]


def _parts(sense: str) -> Iterator[str]:
    for short, long in SHORTENED.items():
        sense = sense.replace(short, long)
    for part in INDEFINITE.sub(r"\1-то", sense).split(";"):
        if not RARE.search(part):
            yield re.sub(r" +(?=[,.!?])", "", " ".join(LABEL.sub("", part).split()))


def word_pairs(bodies: Mapping[str, str], sentences: Mapping[str, int]) -> list[Row]:
    """Single words with single words: each Russian one once, with its most usual translation, the most common first.

    Args:
        bodies: of the entries, by headword.
        sentences: that a word is in. Of other words there are no pairs.
    """
    best: dict[str, tuple[float, str]] = {}
    for headword, body in bodies.items():
        n_sentences = sentences.get(headword)
        if n_sentences is not None:
            for translation in translations(headword, body):
                usual = (math.log(n_sentences) - translation.penalty, translation.english)
                best[translation.russian] = max(best.get(translation.russian, usual), usual)
    return [Row(english, russian) for russian, (_, english) in sorted(best.items(), key=lambda item: -item[1][0])]


def translations(headword: str, body: str) -> Iterator[Translation]:
    """Single Russian words that the senses of a headword begin with. The infinitive of a verb has its "to"."""
    for part, (label, senses) in enumerate(parts_of_speech(body)):
        for sense, parts in enumerate(senses):
            russian_parts = takewhile(lambda part: not re.search("[A-Za-z]", part), parts)
            # After a translation of two words, one word may belong to them: "самка волка, лисы".
            words = [word for part in russian_parts for word in takewhile(RUSSIAN_WORD.fullmatch, part.split(", "))]
            for place, russian in enumerate(words):
                penalty = OF_PART * part + OF_SENSE * sense + OF_PLACE * place
                if penalty <= LARGEST_PENALTY and (label != "v" or INFINITIVE.fullmatch(russian)):
                    yield Translation(f"to {headword}" if label == "v" else headword, russian, penalty)


def phrase_pairs(bodies: Iterable[str]) -> list[Row]:
    """Phrases of more than one word with their first translations of more than one word, each Russian one once."""
    phrases: dict[str, str] = {}
    for body in bodies:
        for part in (part for _, senses in parts_of_speech(body) for parts in senses for part in parts):
            if (match := PHRASE.fullmatch(part)) and not NO_PHRASE.search(part):
                english, russian = match["english"], match["russian"].rstrip(", -")
                if english.startswith("to ") and not NEW_CLAUSE.search(russian):
                    russian, _, _ = russian.partition(", ")
                n_others = NEW_CLAUSE.sub("", russian).count(",")
                if " " in english and " " in russian and n_others <= english.count(",") <= russian.count(","):
                    phrases.setdefault(russian, english)
    return [Row(english, russian) for russian, english in phrases.items()]
