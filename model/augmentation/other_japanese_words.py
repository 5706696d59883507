"""English-Japanese sentences with other words in them (other_words.py): nouns for nouns, verbs and adjectives for those
that are inflected as they are, so that a stem takes the place of a stem and the endings stay."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from model.augmentation.edict import COMMON, UNUSUAL, as_written, entries
from model.augmentation.other_words import (
    DETERMINERS,
    PRONOUNS,
    WORD,
    Entry,
    Place,
    inflected,
    is_regular,
    lemmas,
    paired,
    put,
    put_english,
    tags_of,
    with_other_words,
)
from model.data import Row
from model.words import KANJI, KATAKANA

KANA_OF_VERB = {
    "v1": "るたてなまよらさずれ",
    "v5b": "ばびぶべぼん",
    "v5g": "がぎぐげごい",
    "v5k": "かきくけこい",
    "v5m": "まみむめもん",
    "v5n": "なにぬねのん",
    "v5r": "らりるれろっ",
    "v5s": "さしすせそ",
    "v5t": "たちつてとっ",
    "v5u": "わいうえおっ",
}
"""EDICT's classes, and what the stem of a verb may be followed by."""
ENDINGS = {
    "n": r"[はがをにでともへやのだ]|から|まで|じゃ|か[。？?]|[、。！？!?」』]|$",
    "adj-i": r"い(?![\u3040-\u309f])|い[。！？のとでか]|いです|く|かった|ければ|さ[はがをにで]",
    "adj-na": r"な|だ|です|で[はすし、]|じゃ",
    **{name: f"[{kana}]" for name, kana in KANA_OF_VERB.items()},
}
"""What follows the stem of a word of each class; nouns and na-adjectives are stems."""
PARTS_OF_SPEECH = {"n": "NOUN", "adj-i": "ADJ", "adj-na": "ADJ"} | dict.fromkeys(KANA_OF_VERB, "VERB")
CLASSES = re.compile(r"\(([a-z0-9,-]+)\)")
MORE_THAN_NOUNS = frozenset({"vs", "n-adv", "n-t", "n-suf", "n-pref", "num", "ctr", "adv"})
"""What makes verbs of nouns, times and numbers of them."""
ARTICLES = r"an?|the|my|your|his|our|their|no|every|each|another|these|those"
"""What is before a noun: not "this" and "her", which may also stand alone."""
BEHIND_ARTICLE, SINGLE = (re.compile(rf"\b(?:{words}) ([a-z]+(?:-[a-z]+)*)") for words in (ARTICLES, "an?|another"))
ARTICLE_BEFORE = re.compile(rf"\b(?:{ARTICLES}) (?:([a-z]+) )?$", re.I)
LEAST_BEHIND_ARTICLE = 0.2
"""Of the places of a noun in English texts those right behind an article or the like: "start" is rather a verb."""
LEAST_COUNTED = 0.1
"""Of these places those with "a", and plurals: "knowledge" is hardly ever one."""
OBJECT_ALONE = re.compile(rf" (?:(?:{DETERMINERS}) [a-z]+|{PRONOUNS})\s*(?:[.,;:!?…]|$)", re.I)
"""What follows a transitive verb that has an object and no more: another may want a clause or a preposition there."""
COMPLEMENT = re.compile(r" (?:to|that|of|at|for|than|about|with|as|in|from|on|if|when)\b")
"""What some adjectives want, and others cannot have."""
EXISTENCE = re.compile(r"[はがも](?:いま|い[たるなて]|あり|あ[るっ])")
"""A verb for what lives or one for what does not."""
COUNTER = re.compile(r"[\d一二三四五六七八九十何数](?:人|名|匹|頭|羽|冊|台|枚|本|杯|着|足|軒|隻|通)")
"""A word for how many there are, which depends on what they are."""
LONGEST = 6
"""Letters of a stem."""
BEHIND_OTHERS = rf"(?<![{KANJI}ァ-ヴー・])"
BEHIND_PARTICLE = r"(?:^|(?<=[はがをにでともの、。「]))"
"""What a word begins behind, so that it is not part of another; one in hiragana is seen behind a particle alone."""
FEWEST_HIRAGANA = 3


class EnglishCounts:
    """How often English texts have each word, and where."""

    def __init__(self, texts: Iterable[str]) -> None:
        lower = [text.lower() for text in texts]
        self.anywhere, self.behind_article, self.single = (
            Counter(word for text in lower for word in pattern.findall(text))
            for pattern in (WORD, BEHIND_ARTICLE, SINGLE)
        )

    def is_countable_noun(self, word: str) -> bool:
        """Whether this is mostly a noun, and one that is counted. Of a word that the texts lack lemminflect tells."""
        parts, n = lemmas(word).keys(), self.anywhere[word]
        if not parts <= {"NOUN", "VERB", "PROPN"}:
            return False
        if n == 0:
            return "VERB" not in parts
        counted = self.single[word] + self.anywhere[inflected(word, "NNS")]
        return self.behind_article[word] >= LEAST_BEHIND_ARTICLE * n and counted >= LEAST_COUNTED * n


Words = Mapping[str, Iterable[tuple[re.Pattern[str], Entry[str]]]]
"""By stem, what a word looks like with what is around it, and the entries that it may be."""


def with_other_japanese_words(rows: Sequence[Row], dictionary: Path) -> Iterator[Row]:
    """Rows with one word of each side exchanged, English first.

    Args:
        dictionary: the file named edict; what it calls common is exchanged.

    Raises:
        DataError: the dictionary is missing or malformed.
    """
    counts = EnglishCounts(row.left for row in rows)
    known: dict[str, dict[tuple[re.Pattern[str], Entry[str]], None]] = defaultdict(dict)
    others = dict[tuple[str, tuple[str, ...]], Entry[str]]()
    for pattern, glosses in vocabulary(dictionary):
        usual = [gloss for gloss in glosses if _is_usual(gloss, counts)]
        for entry in usual:
            known[entry.foreign][pattern, entry] = None
        if usual:
            others.setdefault((usual[0].foreign, usual[0].category), usual[0])
    common_first = sorted(others.values(), key=lambda entry: -counts.anywhere[entry.english])
    return with_other_words(rows, common_first, partial(places, known=known), exchanged)


def _is_usual(entry: Entry[str], counts: EnglishCounts) -> bool:
    """Whether the English word is mostly of this part of speech, as far as is known."""
    part = entry.category[0]
    if part == "NOUN":
        return counts.is_countable_noun(entry.english)
    return part == "VERB" or "ADV" not in lemmas(entry.english)


def vocabulary(dictionary: Path) -> Iterator[tuple[re.Pattern[str], list[Entry[str]]]]:
    """How a stem looks in a text, and an entry for each gloss of its word that can be exchanged.

    Raises:
        DataError: the dictionary is missing or malformed.
    """
    for entry in entries(dictionary):
        match = CLASSES.match(entry.labels)
        classes = match[1].split(",") if match else []
        name = next((name for name in classes if name in PARTS_OF_SPEECH), None)
        if name is None or COMMON not in entry.labels or UNUSUAL.search(entry.labels):
            continue
        if name == "n" and MORE_THAN_NOUNS.intersection(classes):
            continue
        part, word = PARTS_OF_SPEECH[name], as_written(entry)
        stem = word if name in ("n", "adj-na") else word[:-1]
        takes_object = "vt" in classes
        category = (part, name, "vt" if takes_object else "vi") if part == "VERB" else (part, name)
        glosses = [gloss.removeprefix("to ") for gloss in entry.glosses if gloss.startswith("to ") == (part == "VERB")]
        pairs = [
            Entry(gloss, stem, category, takes_object)
            for gloss in glosses
            if WORD.fullmatch(gloss) and gloss.islower() and is_regular(gloss, part)
        ]
        if not pairs or not 0 < len(stem) <= LONGEST:
            continue
        if re.match(f"[{KANJI}]", stem) or KATAKANA.fullmatch(stem):
            yield re.compile(f"{BEHIND_OTHERS}{re.escape(stem)}(?={ENDINGS[name]})"), pairs
        elif len(stem) >= FEWEST_HIRAGANA:
            yield re.compile(f"{BEHIND_PARTICLE}{re.escape(stem)}(?={ENDINGS[name]})"), pairs


def places(row: Row, known: Words) -> list[Place[str]]:
    """Words of the dictionary that are once in each side, with a translation that the dictionary has."""
    text = row.right
    stems = {text[start:end] for start in range(len(text)) for end in range(start + 1, start + 1 + LONGEST)}
    found = []
    for stem in sorted(stems & known.keys(), key=lambda stem: (-len(stem), stem)):
        for pattern, entry in known[stem]:
            matches = [*pattern.finditer(text)]
            if len(matches) == 1:
                found.append((matches[0], entry))
    return paired(row, found)


def exchanged(place: Place[str], other: Entry[str]) -> Row | None:
    """The row with another word in the place; None if the English word may be two forms that differ for the other, or
    one that the other has not, or may be something else, as the verb "book"."""
    word = place.english[0].lower()
    tags = tags_of(word, place.entry)
    english = {inflected(other.english, tag) for tag in tags}
    if len(english) != 1 or "" in english or other.foreign == place.foreign[0]:
        return None
    if not _stands_alone(place, tags):
        return None
    return Row(put_english(place.english, english.pop()), put(place.foreign, other.foreign))


def _stands_alone(place: Place[str], tags: Sequence[str]) -> bool:
    """Whether nothing in the sentence and its translation asks for this very word."""
    part, after = place.entry.category[0], place.english.string[place.english.end() :]
    if part == "NOUN":
        beside = place.foreign.string
        agrees = EXISTENCE.match(beside, place.foreign.end()) is not None or COUNTER.search(beside) is not None
        return not agrees and _is_noun(place.english, tags)
    if part == "ADJ":
        return COMPLEMENT.match(after) is None
    return not place.entry.takes_object or OBJECT_ALONE.match(after) is not None


def _is_noun(place: re.Match[str], tags: Sequence[str]) -> bool:
    """Whether it has an article or the like, with an adjective between at most, or is a plural that can be nothing
    else: "book" alone may be a verb, and "coffee" is not one coffee."""
    if tags == ["NNS"] and "VERB" not in lemmas(place[0].lower()):
        return True
    before = ARTICLE_BEFORE.search(place.string[: place.start()])
    return before is not None and (before[1] is None or "ADJ" in lemmas(before[1].lower()))
