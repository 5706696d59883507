"""`python -m model other-words`: English-Russian sentences with words of a dictionary in them.

A word of a dictionary takes the place of another, on both sides and in the form of the other: "She lost her glove"
becomes "She lost her spoon", "Она потеряла перчатку" "Она потеряла ложку". So a model meets in sentences, with their
endings, words that the corpora lack (data augmentation for rare words, Fadaee et al. 2017). Needs `attend[words]`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import lemminflect
import numpy as np
import pymorphy3
from pymorphy3.analyzer import Parse

from model.data import Row

VARIANTS = 4
"""Rows that are made of one at most."""
SEED = 1

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
TAGS = {"NOUN": ("NN", "NNS"), "VERB": ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG"), "ADJ": ("JJ",), "ADV": ("RB",)}
"""The Penn Treebank's, for universal parts of speech."""
NUMBERS = {"NN": "sing", "NNS": "plur"}
PARTS_OF_SPEECH = {"NOUN": "NOUN", "VERB": "VERB", "INFN": "VERB", "ADJF": "ADJ", "ADVB": "ADV"}
"""OpenCorpora's, as universal ones. Comparatives, short adjectives, participles and gerunds are left as they are."""
AGREEMENT = {"NOUN": ("gender", "animacy"), "VERB": ("aspect", "transitivity"), "ADJ": (), "ADV": ()}
"""What other words of a sentence depend on, so that both words have it in common."""
INFLECTION = ("case", "number", "gender", "animacy", "tense", "person", "mood", "involvement")
LEFT_OUT = frozenset({"Name", "Surn", "Patr", "Geox", "Orgn", "Abbr", "Sgtm", "Pltm"})
"""Grammemes of names, and of nouns that have one number alone."""
BOUND = re.compile(
    "alone|can|day|few|first|hour|last|left|many|may|might|minute|month|morning|much|must|next|night|only|other|right|"
    "same|time|way|week|will|year"
)
"""English words that other words of their kind do not stand for."""
OBJECT = re.compile("an?|the|this|these|those|my|your|his|her|its|our|their|some|any|no|every|him|them|me|us|it")
"""What follows a transitive verb that has an object, and no clause, particle or infinitive."""
SENTENCE_BEFORE = re.compile(r"(?:^|[.!?:…\"“«(—-])\s*$")
OTHER_PREPOSITION = re.compile(r"\b(?:со|во|об|обо|ко|о) $", re.I)
"""Variants before some words alone."""
VOWEL_SOUND = re.compile(
    r"(?:hour|honest|honou?r|heir)|(?!uni[^nm]|us[aeiu]|ur[aiou]|ut[ei]|eu|one\b|once\b)[aeiou]", re.I
)


class Entry(NamedTuple):
    """A pair of the dictionary, both in their basic forms, and what can take its place: the same category."""

    english: str
    russian: Parse
    category: tuple[str, ...]


class Place(NamedTuple):
    """Where a pair of the dictionary is in a sentence pair, in whichever forms."""

    english: re.Match[str]
    russian: re.Match[str]
    entry: Entry


def with_other_words(rows: Iterable[Row], dictionary: Sequence[Row]) -> Iterator[Row]:
    """Rows with one word of each side exchanged, up to VARIANTS for each, English first.

    Args:
        dictionary: words, the most common first. Its phrases are passed over.
    """
    random = np.random.default_rng(SEED)
    known = vocabulary(dictionary)
    others = defaultdict[tuple[str, ...], list[Entry]](list)
    for entry in known.values():
        others[entry.category].append(entry)
    written = set[Row]()
    for row in rows:
        found = places(row, known)
        for at in random.permutation(max(len(found), VARIANTS))[:VARIANTS] if found else ():
            place = found[at % len(found)]
            candidates = others[place.entry.category]
            # The more common a word, the more often, though by far not as in texts.
            other = candidates[int(len(candidates) * random.random() ** 3)]
            new = exchanged(place, other)
            if new is not None and new not in written:
                written.add(new)
                yield new


def vocabulary(dictionary: Sequence[Row]) -> dict[str, Entry]:
    """What can be exchanged, by the Russian word."""
    found = {}
    for english, russian in dictionary:
        headword = english.removeprefix("to ")
        if " " in headword + russian or BOUND.fullmatch(headword):
            continue
        for parse in parses_of(russian):
            part = PARTS_OF_SPEECH[parse.tag.POS]
            fits = parse.word == parse.normal_form and (headword != english) == (part == "VERB")
            if fits and part in lemminflect.getAllLemmas(headword) and _is_regular(headword, part):
                agreement = (str(getattr(parse.tag, name)) for name in AGREEMENT[part])
                found[russian] = Entry(headword, parse, (part, *agreement))
                break
    return found


def _is_regular(headword: str, part: str) -> bool:
    """Whether it is used as others of its part of speech are. That of a noun can be counted (anger and boots cannot),
    and that of an adverb tells how something is done: when and how much are said in places of their own."""
    if part == "NOUN":
        return _inflected(headword, "NNS") not in ("", headword) and re.search("[^sui]s$", headword) is None
    return part != "ADV" or headword.endswith("ly")


@cache
def _analyzer() -> pymorphy3.MorphAnalyzer:
    return pymorphy3.MorphAnalyzer()


@cache
def parses_of(russian: str) -> tuple[Parse, ...]:
    """What a word may be, the most probable first: the forms that can be exchanged, of known words that name nobody."""
    return tuple(
        parse
        for parse in _analyzer().parse(russian)
        if parse.is_known and parse.tag.POS in PARTS_OF_SPEECH and not LEFT_OUT & parse.tag.grammemes
    )


def places(row: Row, known: Mapping[str, Entry]) -> list[Place]:
    """Words of the dictionary that are once in each side, with the translation that the dictionary has."""
    english, russian = ([*WORD.finditer(text)] for text in row)
    lemmas = [_lemmas(word[0].lower()) for word in english]
    found = []
    for word in russian:
        for lemma in dict.fromkeys(parse.normal_form for parse in parses_of(word[0].lower())):
            if entry := known.get(lemma):
                where = [at for at, of_word in enumerate(lemmas) if entry.english in of_word.get(entry.category[0], ())]
                if len(where) == 1 and _is_free(english, where[0], entry):
                    found.append(Place(english[where[0]], word, entry))
    counts = Counter(text for place in found for text in {place.english, place.russian})
    return [place for place in found if counts[place.english] == counts[place.russian] == 1]


def _is_free(words: Sequence[re.Match[str]], at: int, entry: Entry) -> bool:
    """Whether another word may be in the place: it is in no name, and a verb has an object if it wants one, and else
    nothing after it."""
    word = words[at]
    text = word.string
    if word[0][0].isupper() and not SENTENCE_BEFORE.search(text[: word.start()]):
        return False
    if entry.category[0] != "VERB":
        return True
    if "tran" in entry.category:
        return at + 1 < len(words) and OBJECT.fullmatch(words[at + 1][0].lower()) is not None
    return re.match(r"\s*(?:[.,;:!?…]|$)", text[word.end() :]) is not None


@cache
def _lemmas(english: str) -> dict[str, tuple[str, ...]]:
    lemmas: dict[str, tuple[str, ...]] = lemminflect.getAllLemmas(english)
    return lemmas


def exchanged(place: Place, other: Entry) -> Row | None:
    """The row with another word in the place; None if the word before may be two forms that differ for the other, or
    one that the other has not."""
    if other.english == place.entry.english or OTHER_PREPOSITION.search(place.russian.string[: place.russian.start()]):
        return None
    english, russian = forms(place.english[0].lower(), place.russian[0].lower(), place.entry, other)
    if len(english) != 1 or len(russian) != 1 or "" in english | russian:
        return None
    left, right = _put(place.english, english.pop()), _put(place.russian, russian.pop())
    return Row(_with_article(left, place.english.start()), right)


def forms(english: str, russian: str, entry: Entry, other: Entry) -> tuple[set[str], set[str]]:
    """Of the other entry, in English and in Russian, in each form that the words may be and that both can have; "" for
    one that the other has not."""
    part = entry.category[0]
    tags = [tag for tag in TAGS[part] if english == _inflected(entry.english, tag)]
    numbers = {NUMBERS.get(tag) for tag in tags}
    parses = [
        parse.tag
        for parse in parses_of(russian)
        if parse.normal_form == entry.russian.normal_form
        and PARTS_OF_SPEECH[parse.tag.POS] == part
        and (part != "NOUN" or parse.tag.number in numbers)
    ]
    inflected = [
        other.russian.inflect({"INFN"} if tag.POS == "INFN" else {getattr(tag, name) for name in INFLECTION} - {None})
        for tag in parses
    ]
    return (
        {_inflected(other.english, tag) for tag in tags},
        {form.word if form else "" for form in inflected},
    )


def _inflected(english: str, tag: str) -> str:
    """The usual form, "" if there is none."""
    return next(iter(lemminflect.getInflection(english, tag)), "")


def _put(place: re.Match[str], word: str) -> str:
    """The text around, with the word in its place and with its capital."""
    capital = word.capitalize() if place[0][0].isupper() else word
    return place.string[: place.start()] + capital + place.string[place.end() :]


def _with_article(text: str, start: int) -> str:
    """An article right before `start` is "an" before a vowel."""
    before, word = text[:start], text[start:]
    return re.sub(r"\b([Aa])n? $", r"\1n " if VOWEL_SOUND.match(word) else r"\1 ", before) + word
