"""The phrase book of our own, in five languages."""

import re
from collections import Counter

import pytest

from model.data import OWN_CORPORA, read_tsv
from model.evaluation.cases import SUITES

PHRASES = OWN_CORPORA / "phrases.tsv"
OTHERS = ("fr", "de", "ru", "ja")


def test_each_phrase_is_there_once_in_every_language() -> None:
    pairs = [[*read_tsv(PHRASES, ("en", other))] for other in OTHERS]

    twice = [text for text, n in Counter(row.left for row in pairs[0]).items() if n > 1]
    assert not twice
    assert {len(rows) for rows in pairs} == {len(pairs[0])}


@pytest.mark.parametrize(
    ("source", "target"), [("en", other) for other in OTHERS] + [(other, "en") for other in OTHERS]
)
def test_sentences_that_are_looked_at_are_not_trained_on(source: str, target: str) -> None:
    book = {_letters(row.left) for row in read_tsv(PHRASES, (source, target))}
    looked_at = [row.left for row in read_tsv(SUITES / f"{source}-{target}.tsv")]
    assert not [text for text in looked_at if _letters(text) in book]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text).lower()
