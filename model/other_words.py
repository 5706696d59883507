"""`python -m model.other_words DICTIONARY CORPUS... --out FILE`: English-Russian sentences with other words in them.

A word of a dictionary takes the place of another, on both sides and in the form of the other: "She lost her glove"
becomes "She lost her spoon", "Она потеряла перчатку" "Она потеряла ложку". So a model meets in sentences, with their
endings, words that the corpora lack (data augmentation for rare words, Fadaee et al. 2017). Needs `attend[words]`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import lemminflect
import numpy as np
import pymorphy3
import typer
from pymorphy3.analyzer import Parse

from model.data import DataError, Row, read_tsv, write_tsv

VARIANTS = 4
"""Rows that are made of one at most."""
SEED = 1

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
TAGS = {"NOUN": ("NN", "NNS"), "VERB": ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG"), "ADJ": ("JJ",), "ADV": ("RB",)}
"""The Penn Treebank's, for universal parts of speech."""
PARTS_OF_SPEECH = {"NOUN": "NOUN", "VERB": "VERB", "INFN": "VERB", "ADJF": "ADJ", "ADVB": "ADV"}
"""OpenCorpora's, as universal ones. Comparatives, short adjectives, participles and gerunds are left as they are."""
AGREEMENT = {"NOUN": ("gender", "animacy"), "VERB": ("aspect", "transitivity"), "ADJ": (), "ADV": ()}
"""What other words of a sentence depend on, so that both words have it in common."""
INFLECTION = ("case", "number", "gender", "animacy", "tense", "person", "mood")
NAMES = frozenset({"Name", "Surn", "Patr", "Geox", "Orgn", "Abbr"})
AFTER_VERBS = re.compile(
    "about|after|against|around|as|at|away|back|by|down|for|from|into?|off?|on|out|over|through|to|up|with"
)
"""A verb is not the dictionary's with one of these after it."""
VOWEL_SOUND = re.compile(r"(?i)(?:hour|honest|honou?r|heir)|(?!uni[^nm]|us[aeiu]|eu|one\b|once\b)[aeiou]")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


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


@app.command()
def main(
    dictionary: Annotated[Path, typer.Argument(help="What `python -m model.dictionary` wrote.")],
    corpora: Annotated[list[Path], typer.Argument(help="English<TAB>Russian files.")],
    out: Annotated[Path, typer.Option(help="English<TAB>Russian lines, .tsv.xz; a file there is replaced.")],
) -> None:
    """Exchange words of sentence pairs for words of a dictionary, for common ones more often."""
    try:
        rows = (row for path in corpora for row in read_tsv(path))
        n_rows = write_tsv(out, with_other_words(rows, list(read_tsv(dictionary))))
    except (OSError, DataError) as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{out}: {n_rows:,} pairs")


def with_other_words(rows: Iterable[Row], dictionary: Sequence[Row]) -> Iterator[Row]:
    """Rows with one word of each side exchanged, up to VARIANTS for each, English first.

    Args:
        dictionary: words, the most common first. Its phrases are passed over.
    """
    random = np.random.default_rng(SEED)
    known = entries(dictionary)
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
            other = candidates[int(len(candidates) * random.random() ** 2)]
            new = exchanged(place, other)
            if new is not None and new not in written:
                written.add(new)
                yield new


def entries(dictionary: Sequence[Row]) -> dict[str, Entry]:
    """By the Russian word."""
    found = {}
    for english, russian in dictionary:
        parses = [parse for parse in parses_of(russian) if parse.word == parse.normal_form]
        infinitive = english.startswith("to ")
        for parse in parses:
            part = PARTS_OF_SPEECH[parse.tag.POS]
            headword = english.removeprefix("to ")
            if " " not in headword and infinitive == (part == "VERB") and part in lemminflect.getAllLemmas(headword):
                agreement = (str(getattr(parse.tag, name)) for name in AGREEMENT[part])
                found[russian] = Entry(headword, parse, (part, *agreement))
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
        if parse.is_known and parse.tag.POS in PARTS_OF_SPEECH and not NAMES & parse.tag.grammemes
    )


def places(row: Row, known: Mapping[str, Entry]) -> list[Place]:
    """Words of the dictionary that are once in each side, with the translation that the dictionary has."""
    english, russian = ([*WORD.finditer(text)] for text in row)
    lemmas = [_lemmas(word[0].lower()) for word in english]
    found = []
    for word in russian:
        for lemma in dict.fromkeys(parse.normal_form for parse in parses_of(word[0].lower())):
            if entry := known.get(lemma):
                part = entry.category[0]
                where = [at for at, of_word in enumerate(lemmas) if entry.english in of_word.get(part, ())]
                if len(where) == 1 and not (part == "VERB" and _has_particle(english, where[0])):
                    found.append(Place(english[where[0]], word, entry))
    counts = Counter(text for place in found for text in {place.english, place.russian})
    return [place for place in found if counts[place.english] == counts[place.russian] == 1]


def _has_particle(words: Sequence[re.Match[str]], place: int) -> bool:
    return any(AFTER_VERBS.fullmatch(word[0].lower()) for word in words[place + 1 : place + 2])


@cache
def _lemmas(english: str) -> dict[str, tuple[str, ...]]:
    lemmas: dict[str, tuple[str, ...]] = lemminflect.getAllLemmas(english)
    return lemmas


def exchanged(place: Place, other: Entry) -> Row | None:
    """The row with another word in the place; None if the word before may be two forms that differ for the other, or
    one that the other has not."""
    english = english_forms(place.english[0].lower(), place.entry, other)
    russian = russian_forms(place.russian[0].lower(), place.entry, other)
    if len(english) != 1 or len(russian) != 1 or "" in english | russian or place.entry == other:
        return None
    left, right = _put(place.english, english.pop()), _put(place.russian, russian.pop())
    return Row(_with_article(left, place.english.start()), right)


def english_forms(word: str, entry: Entry, other: Entry) -> set[str]:
    """Of the other entry, in each form that the word may be; "" for one that it has not."""
    tags = (tag for tag in TAGS[entry.category[0]] if word in lemminflect.getInflection(entry.english, tag))
    return {next(iter(lemminflect.getInflection(other.english, tag)), "") for tag in tags}


def russian_forms(word: str, entry: Entry, other: Entry) -> set[str]:
    """Of the other entry, in each form that the word may be; "" for one that it has not."""
    forms = set()
    for tag in (parse.tag for parse in parses_of(word) if parse.normal_form == entry.russian.normal_form):
        if PARTS_OF_SPEECH[tag.POS] == entry.category[0]:
            inflection = {getattr(tag, name) for name in INFLECTION} - {None}
            form = other.russian.inflect({"INFN"} if tag.POS == "INFN" else inflection)
            forms.add(form.word if form else "")
    return forms


def _put(place: re.Match[str], word: str) -> str:
    """The text around, with the word in its place and with its capital."""
    capital = word.capitalize() if place[0][0].isupper() else word
    return place.string[: place.start()] + capital + place.string[place.end() :]


def _with_article(text: str, start: int) -> str:
    """An article right before `start` is "an" before a vowel."""
    before, word = text[:start], text[start:]
    return re.sub(r"\b([Aa])n? $", r"\1n " if VOWEL_SOUND.match(word) else r"\1 ", before) + word


if __name__ == "__main__":
    app()
