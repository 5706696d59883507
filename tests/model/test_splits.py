"""Rows that are trained on, that choose a model, and that are reported."""

from typing import Any

import pytest

from model.data import Row
from model.recipe import DataConfig, DataSource, Recipe
from model.splits import MIN_REPORTED_WORDS, place, reported_rows, split
from tests.model.tiny_configs import TRAINING

ROWS = [Row(f"Sentence {i} has a few words.", f"La phrase {i} a quelques mots.") for i in range(1000)]
DATA = DataConfig(train=(DataSource(file="pairs.tsv", licence="ours"),), validation_fraction=0.1, reported_fraction=0.2)
FORWARD = DataSource(file="pairs.tsv", licence="ours")
BACKWARD = FORWARD.model_copy(update={"swap": True})


def swapped(rows: list[Row]) -> list[Row]:
    return [Row(right, left) for left, right in rows]


def test_a_pair_is_in_the_same_part_in_both_directions() -> None:
    here, there = split(ROWS, FORWARD, DATA, is_pairs=True), split(swapped(ROWS), BACKWARD, DATA, is_pairs=True)
    assert all(part == swapped(other) for part, other in zip(here, there, strict=True))
    assert [len(part) / len(ROWS) for part in here] == pytest.approx([0.7, 0.1, 0.2], abs=0.04)
    assert reported_rows(ROWS, FORWARD, DATA) == swapped(reported_rows(swapped(ROWS), BACKWARD, DATA))


def test_a_text_is_in_the_same_part_of_every_corpus_however_it_is_written() -> None:
    others = [Row(row.left.upper().rstrip("."), "another translation") for row in ROWS]
    parts, other_parts = (split(rows, FORWARD, DATA, is_pairs=True) for rows in (ROWS, others))
    assert [len(part) for part in parts] == [len(part) for part in other_parts]
    assert place("Save as...") == place("save as") != place("Save us")
    assert place("...") != place("!!!"), "texts without letters have places too"


def test_short_texts_and_repeated_ones_are_not_reported() -> None:
    short = [Row(f"Word {i}", f"Mot {i}") for i in range(200)]
    found = reported_rows([*ROWS, *short, *ROWS], FORWARD, DATA)
    assert all(len(row.left.split()) >= MIN_REPORTED_WORDS for row in found)
    assert len({row.left for row in found}) == len(found)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": "law"}, "`kind` is law, which has no share in `shares`"),
        ({}, "`kind` is None, which has no share in `shares`"),
        ({"kind": "talk", "sample": 5}, "`sample` cannot be used with `shares`"),
    ],
)
def test_shares_are_of_kinds_that_corpora_have(source: dict[str, Any], message: str) -> None:
    data = {"train": [{"file": "ours.tsv", "licence": "ours"} | source], "shares": {"talk": 1.0}}
    with pytest.raises(ValueError, match=message):
        Recipe.model_validate({"data": data, "training": TRAINING})
