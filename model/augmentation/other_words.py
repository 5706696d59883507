"""`python -m model other-words`: sentence pairs with other words of a dictionary in them.

A word of a dictionary takes the place of another, on both sides and in the form of the other: "She lost her glove"
becomes "She lost her spoon", "Она потеряла перчатку" "Она потеряла ложку". So a model meets in sentences words that the
corpora lack (data augmentation for rare words, Fadaee et al. 2017). English is the same for all languages; what is not,
each has in a module of its own. Needs `attend[words]`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Generic, NamedTuple, TypeVar

import lemminflect
import numpy as np

from model.data import Row

VARIANTS = 4
"""Rows that are made of one at most."""
SEED = 1

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
TAGS = {"NOUN": ("NN", "NNS"), "VERB": ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG"), "ADJ": ("JJ",), "ADV": ("RB",)}
"""The Penn Treebank's, for universal parts of speech."""
BOUND = re.compile(
    "alone|can|day|few|first|hour|last|left|many|may|might|minute|month|morning|much|must|next|night|only|other|right|"
    "same|time|way|week|will|year"
)
"""Words that others of their kind do not stand for."""
DETERMINERS = "an?|the|this|these|those|my|your|his|her|its|our|their|some|any|no|every"
PRONOUNS = "him|them|me|us|it"
OBJECT = re.compile(f"{DETERMINERS}|{PRONOUNS}")
"""What follows a transitive verb that has an object, and no clause, particle or infinitive."""
SENTENCE_BEFORE = re.compile(r"(?:^|[.!?:…\"“«(—-])\s*$")
VOWEL_SOUND = re.compile(
    r"(?:hour|honest|honou?r|heir)|(?!uni[^nm]|us[aeiu]|ur[aiou]|ut[ei]|eu|one\b|once\b)[aeiou]", re.I
)

Foreign = TypeVar("Foreign")


class Entry(NamedTuple, Generic[Foreign]):
    """A pair of the dictionary, both in their basic forms, and what can take its place: the same category."""

    english: str
    foreign: Foreign
    category: tuple[str, ...]
    """The universal part of speech, and what else other words of a sentence depend on."""
    takes_object: bool


class Place(NamedTuple, Generic[Foreign]):
    """Where a pair of the dictionary is in a sentence pair, in whichever forms."""

    english: re.Match[str]
    foreign: re.Match[str]
    entry: Entry[Foreign]


def with_other_words(
    rows: Iterable[Row],
    entries: Iterable[Entry[Foreign]],
    places: Callable[[Row], list[Place[Foreign]]],
    exchanged: Callable[[Place[Foreign], Entry[Foreign]], Row | None],
) -> Iterator[Row]:
    """Rows with one word of each side exchanged, up to VARIANTS for each, English first.

    Args:
        entries: of the dictionary, the most common first.
        places: finds those of them in a row.
        exchanged: the row with another in a place; None if it cannot be there.
    """
    random = np.random.default_rng(SEED)
    others = defaultdict[tuple[str, ...], list[Entry[Foreign]]](list)
    for entry in entries:
        others[entry.category].append(entry)
    written = set[Row]()
    for row in rows:
        found = places(row)
        for at in random.permutation(max(len(found), VARIANTS))[:VARIANTS] if found else ():
            place = found[at % len(found)]
            candidates = others[place.entry.category]
            # The more common a word, the more often, though by far not as in texts.
            other = candidates[int(len(candidates) * random.random() ** 3)]
            new = exchanged(place, other) if other.english != place.entry.english else None
            if new is not None and new not in written:
                written.add(new)
                yield new


def paired(row: Row, found: Iterable[tuple[re.Match[str], Entry[Foreign]]]) -> list[Place[Foreign]]:
    """Of words found in the other language, with what they may be, those whose English is once in the row and can be
    another."""
    words = [*WORD.finditer(row.left)]
    of_words = [lemmas(word[0].lower()) for word in words]
    places = []
    for foreign, entry in found:
        part = entry.category[0]
        where = [at for at, of_word in enumerate(of_words) if entry.english in of_word.get(part, ())]
        if len(where) == 1 and _is_free(words, where[0], part, entry.takes_object):
            places.append(Place(words[where[0]], foreign, entry))
    # Where a word has two translations in the row, nobody knows which is which.
    english = Counter(place.english.span() for place in places)
    others = Counter(place.foreign.span() for place in places)
    return [place for place in places if english[place.english.span()] == others[place.foreign.span()] == 1]


def _is_free(words: Sequence[re.Match[str]], at: int, part: str, takes_object: bool) -> bool:
    """Whether another word may be in the place: it is in no name, and a verb has an object if it wants one, and else
    nothing after it."""
    word = words[at]
    text = word.string
    if word[0][0].isupper() and not SENTENCE_BEFORE.search(text[: word.start()]):
        return False
    if part != "VERB":
        return True
    if takes_object:
        return at + 1 < len(words) and OBJECT.fullmatch(words[at + 1][0].lower()) is not None
    return re.match(r"\s*(?:[.,;:!?…]|$)", text[word.end() :]) is not None


def is_regular(headword: str, part: str) -> bool:
    """Whether a word can be such a part of speech, and is used as others are. A noun has a singular and a plural (boots
    and sheep have not), and an adverb tells how something is done: when and how much are said in places of their own.
    """
    if part not in lemmas(headword) or BOUND.fullmatch(headword):
        return False
    if part == "NOUN":
        return inflected(headword, "NNS") not in ("", headword) and re.search("[^sui]s$", headword) is None
    return part != "ADV" or headword.endswith("ly")


@cache
def lemmas(english: str) -> dict[str, tuple[str, ...]]:
    """By part of speech, what this may be a form of."""
    found: dict[str, tuple[str, ...]] = lemminflect.getAllLemmas(english)
    return found


def tags_of(word: str, entry: Entry[Foreign]) -> list[str]:
    """Of the forms of an entry that the English word may be."""
    return [tag for tag in TAGS[entry.category[0]] if word == inflected(entry.english, tag)]


@cache
def inflected(english: str, tag: str) -> str:
    """The usual form, "" if there is none."""
    return next(iter(lemminflect.getInflection(english, tag)), "")


def put(place: re.Match[str], word: str) -> str:
    """The text around, with the word in its place and with its capital."""
    capital = word.capitalize() if place[0][0].isupper() else word
    return place.string[: place.start()] + capital + place.string[place.end() :]


def put_english(place: re.Match[str], word: str) -> str:
    """The same, with an article right before it that is "an" before a vowel."""
    text, start = put(place, word), place.start()
    before, after = text[:start], text[start:]
    return re.sub(r"\b([Aa])n? $", r"\1n " if VOWEL_SOUND.match(after) else r"\1 ", before) + after
