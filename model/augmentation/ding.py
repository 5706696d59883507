"""`python -m model dictionary`: the words, phrases and examples of a German-English dictionary, as sentence pairs are
written.

A small corpus lacks common words, and a dictionary has them. The one that is read here is Frank Richter's of Ding
(Debian: trans-de-en), 200,000 entries, one a line:

    Apotheke {f} [pharm.] | Apotheken {pl} | Internet-Apotheke {f}; Online-Apotheke {f} :: pharmacy | pharmacies | ...

Parts of the German side have the same place on the English one. Each has one or more ways to say it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from model.data import DataError, Row, read_tsv

DING = "de-en"
"""Name of the file."""
FEWEST_SENTENCES = 3
"""Of the corpora, with each English word of a translation: what is rarer there is mostly known to few."""
LARGEST_SHARE = 0.01
"""Of the sentences: words in more of them are pronouns and the like, of which a corpus has enough."""
MOST_WAYS = 3
"""German ones of a part; later ones are seldom said."""
MOST_WORDS = 6
"""Longer parts explain, unless they are sentences."""
OF_PART, OF_FIELD, OF_PLACE = 0.5, 1.0, 0.5
"""What being no headword, belonging to one field, and each way before it take from how usual a translation is taken to
be: from the logarithm of the sentences with its rarest word."""

ASIDE = re.compile(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|<[^>]*>")
"""Grammar, labels, explanations and other spellings."""
UNUSUAL = re.compile(
    r"\[(?:Austr|BW|Bayr|Jägersprache|Lux|Mitteldt|Norddt|Ös|Ostdt|Schw|Süddt|Westdt|altertümlich|archaic|dated"
    r"|dialect|geh|hist|humor|literary|obs|obsolete|pej|poet|rare|slang|slur|veraltend|veraltet|vulg)\b"
)
"""Labels of what few people say."""
GERMANY = "[Dt.]"
"""A label of what is said there, whoever else says it."""
FIELD = re.compile(r"\[[a-z]+\.\]")
"""[mach.] or [astron.]: not what a word mostly means."""
OF_NO_FIELD = re.compile(r"\[(?:bot|coll|cook|fam|fig|ugs|zool)\.\]")
OBJECTS = re.compile(r"^(?:(?:etw|jd[mns])\.(?:/(?:etw|jd[mns])\.)? )+|(?: (?:sb|sth)\.(?:/(?:sb|sth)\.)?)+$")
"""Of a verb: before a German one, behind an English one."""
OPEN = re.compile(r"\b(?:etw|jd[mns]?|jmd[mn]?|sb|sth)\b|/|\.\.\.|…|\+")
"""What stands for anything, and variants."""
ENGLISH_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
ENGLISH = re.compile(r"[A-Za-z][A-Za-z ,'-]*")
GERMAN = re.compile(r"[A-Za-zÄÖÜäöüß][A-Za-zÄÖÜäöüß ,-]*")
SENTENCE = re.compile(r"[A-ZÄÖÜ„\"][^|;:]*[.!?]")
FEWEST_WORDS = 3
"""Of a sentence."""


def entries(dictionary: Path) -> Iterator[list[tuple[str, str]]]:
    """Of each line its parts, German first, with labels.

    Raises:
        DataError: the file is missing or not in Ding's format.
    """
    try:
        lines = dictionary.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{dictionary} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            german, separator, english = line.replace("\u2019", "'").partition(" :: ")
            if not separator:
                raise DataError(f"{dictionary}, line {number}: no German and English with :: between them")
            left, right = german.split("|"), english.split("|")
            if len(left) == len(right):
                yield [(g.strip(), e.strip()) for g, e in zip(left, right, strict=True)]


def ding_sentences(dictionary: Path) -> Iterator[Row]:
    """The examples that are whole sentences, English first.

    Raises:
        DataError: the dictionary is missing or malformed.
    """
    parts = (part for entry in entries(dictionary) for part in entry)
    yield from dict.fromkeys(filter(None, (_sentence(german, english) for german, english in parts)))


def ding_pairs(dictionary: Path, corpora: Sequence[Path]) -> Iterator[Row]:
    """Words and short phrases, each German one once with its most usual translation, the most usual first; English
    first.

    Args:
        dictionary: the file named de-en.
        corpora: whose first column is English, and tells which words are common.

    Raises:
        DataError: the dictionary or a corpus is missing or malformed.
    """
    texts = [row.left.lower() for path in corpora for row in read_tsv(path)]
    sentences = Counter(word for text in texts for word in set(ENGLISH_WORD.findall(text)))
    known = {word: n for word, n in sentences.items() if n >= FEWEST_SENTENCES}
    parts = [(place, *part) for entry in entries(dictionary) for place, part in enumerate(entry)]
    yield from phrases(parts, known, LARGEST_SHARE * len(texts))


def _sentence(german: str, english: str) -> Row | None:
    plain_german, plain_english = _plain(german), _plain(english)
    both = (plain_german, plain_english)
    if all(SENTENCE.fullmatch(text) and len(text.split()) >= FEWEST_WORDS and not OPEN.search(text) for text in both):
        return Row(plain_english, plain_german)
    return None


def phrases(parts: Sequence[tuple[int, str, str]], sentences: Mapping[str, int], most: float) -> list[Row]:
    """Words and short phrases: each German one once, with its most usual translation, the most usual first.

    Args:
        parts: place in its entry, German and English, with labels.
        sentences: that an English word is in. What has other words is left out.
        most: sentences of a translation's rarest word that make it too usual.
    """
    best: dict[str, tuple[float, str]] = {}
    for place, german, english in parts:
        translation = _usual(english, sentences)
        if translation and translation[0] <= math.log(most):
            usual, text = translation
            usual -= OF_PART * (place > 0) + OF_FIELD * _is_of_one_field(german)
            for way_place, way in enumerate(_ways(german)[:MOST_WAYS]):
                if _is_plain(way, GERMAN):
                    this = (usual - OF_PLACE * way_place, text)
                    word = _without_objects(way)
                    best[word] = max(best.get(word, this), this)
    return [Row(english, german) for german, (_, english) in sorted(best.items(), key=lambda item: -item[1][0])]


def _usual(english: str, sentences: Mapping[str, int]) -> tuple[float, str] | None:
    """Of the ways to say it the first of known words, and how usual it is."""
    for place, way in enumerate(_ways(english)):
        text = _without_objects(way)
        if _is_plain(way, ENGLISH):
            counts = [sentences.get(word.lower(), 0) for word in ENGLISH_WORD.findall(text)]
            if all(counts):
                return math.log(min(counts)) - OF_PLACE * place - OF_FIELD * _is_of_one_field(english), text
    return None


def _ways(part: str) -> list[str]:
    """Split at semicolons outside of brackets."""
    return [way for way in re.split(r";(?![^({\[]*[)}\]])", part) if way.strip()]


def _plain(text: str) -> str:
    return re.sub(r" +(?=[,.!?])", "", " ".join(ASIDE.sub(" ", text).split()))


def _without_objects(way: str) -> str:
    return OBJECTS.sub("", _plain(way))


def _is_plain(way: str, characters: re.Pattern[str]) -> bool:
    text = _without_objects(way)
    usual = GERMANY in way or not UNUSUAL.search(way)
    return usual and bool(characters.fullmatch(text)) and not OPEN.search(text) and len(text.split()) <= MOST_WORDS


def _is_of_one_field(part: str) -> bool:
    return bool(FIELD.search(OF_NO_FIELD.sub("", part)))
