"""English-Russian sentences with other words in them (other_words.py), in the cases and persons of these."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

import pymorphy3
from pymorphy3.analyzer import Parse

from model.augmentation.other_words import (
    WORD,
    Entry,
    Place,
    inflected,
    is_regular,
    paired,
    put,
    put_english,
    tags_of,
    with_other_words,
)
from model.data import Row

NUMBERS = {"NN": "sing", "NNS": "plur"}
PARTS_OF_SPEECH = {"NOUN": "NOUN", "VERB": "VERB", "INFN": "VERB", "ADJF": "ADJ", "ADVB": "ADV"}
"""OpenCorpora's, as universal ones. Comparatives, short adjectives, participles and gerunds are left as they are."""
AGREEMENT = {"NOUN": ("gender", "animacy"), "VERB": ("aspect", "transitivity"), "ADJ": (), "ADV": ()}
"""What other words of a sentence depend on, so that both words have it in common."""
INFLECTION = ("case", "number", "gender", "animacy", "tense", "person", "mood", "involvement")
LEFT_OUT = frozenset({"Name", "Surn", "Patr", "Geox", "Orgn", "Abbr", "Sgtm", "Pltm"})
"""Grammemes of names, and of nouns that have one number alone."""
OTHER_PREPOSITION = re.compile(r"\b(?:со|во|об|обо|ко|о) $", re.I)
"""Variants before some words alone."""


def with_other_russian_words(rows: Iterable[Row], dictionary: Sequence[Row]) -> Iterator[Row]:
    """Rows with one word of each side exchanged, English first.

    Args:
        dictionary: words, the most common first. Its phrases are passed over.
    """
    known = vocabulary(dictionary)
    return with_other_words(rows, known.values(), partial(places, known=known), exchanged)


def vocabulary(dictionary: Sequence[Row]) -> dict[str, Entry[Parse]]:
    """What can be exchanged, by the Russian word."""
    found = {}
    for english, russian in dictionary:
        headword = english.removeprefix("to ")
        if " " in headword + russian:
            continue
        for parse in parses_of(russian):
            part = PARTS_OF_SPEECH[parse.tag.POS]
            fits = parse.word == parse.normal_form and (headword != english) == (part == "VERB")
            if fits and is_regular(headword, part):
                category = (part, *(str(getattr(parse.tag, name)) for name in AGREEMENT[part]))
                found[russian] = Entry(headword, parse, category, "tran" in category)
                break
    return found


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


def places(row: Row, known: Mapping[str, Entry[Parse]]) -> list[Place[Parse]]:
    """Words of the dictionary that are once in each side, with the translation that the dictionary has."""
    found = []
    for word in WORD.finditer(row.right):
        lemmas = dict.fromkeys(parse.normal_form for parse in parses_of(word[0].lower()))
        found += [(word, known[lemma]) for lemma in lemmas if lemma in known]
    return paired(row, found)


def exchanged(place: Place[Parse], other: Entry[Parse]) -> Row | None:
    """The row with another word in the place; None if the word before may be two forms that differ for the other, or
    one that the other has not."""
    if OTHER_PREPOSITION.search(place.foreign.string[: place.foreign.start()]):
        return None
    english, russian = forms(place.english[0].lower(), place.foreign[0].lower(), place.entry, other)
    if len(english) != 1 or len(russian) != 1 or "" in english | russian:
        return None
    return Row(put_english(place.english, english.pop()), put(place.foreign, russian.pop()))


def forms(english: str, russian: str, entry: Entry[Parse], other: Entry[Parse]) -> tuple[set[str], set[str]]:
    """Of the other entry, in English and in Russian, in each form that the words may be and that both can have; "" for
    one that the other has not."""
    part = entry.category[0]
    tags = tags_of(english, entry)
    numbers = {NUMBERS.get(tag) for tag in tags}
    parses = [
        parse.tag
        for parse in parses_of(russian)
        if parse.normal_form == entry.foreign.normal_form
        and PARTS_OF_SPEECH[parse.tag.POS] == part
        and (part != "NOUN" or parse.tag.number in numbers)
    ]
    in_russian = [
        other.foreign.inflect({"INFN"} if tag.POS == "INFN" else {getattr(tag, name) for name in INFLECTION} - {None})
        for tag in parses
    ]
    return (
        {inflected(other.english, tag) for tag in tags},
        {form.word if form else "" for form in in_russian},
    )
