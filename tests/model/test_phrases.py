"""The phrase book of our own, in five languages."""

import re
from collections import Counter
from itertools import product

from model.data import OWN_CORPORA, read_tsv
from model.evaluation.cases import SUITES

LANGUAGES = ("en", "fr", "de", "ru", "ja")
SHORT_WORDS = 3


def test_each_phrase_is_there_once_in_every_language() -> None:
    pairs = [[*read_tsv(OWN_CORPORA / "phrases.tsv", ("en", other))] for other in LANGUAGES[1:]]

    twice = [text for text, n in Counter(row.left for row in pairs[0]).items() if n > 1]
    assert not twice
    assert {len(rows) for rows in pairs} == {len(pairs[0])}


def test_sentences_that_are_looked_at_are_not_trained_on() -> None:
    known = {
        language: {_letters(text) for text in column}
        for other in LANGUAGES[1:]
        for language, column in zip(
            ("en", other), zip(*read_tsv(OWN_CORPORA / "phrases.tsv", ("en", other)), strict=True), strict=True
        )
    }
    for source, target in product(LANGUAGES, repeat=2):
        path = SUITES / f"{source}-{target}.tsv"
        for row in read_tsv(path) if path.is_file() else ():
            assert len(row.left.split()) <= SHORT_WORDS or _letters(row.left) not in known[source]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text).lower()
