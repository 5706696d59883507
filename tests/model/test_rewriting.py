import re
from pathlib import Path

import numpy as np
import pytest

from model.config import DataSource, Rewrite
from model.data import Row, load_rows
from model.rewriting import VARIANTS, rewritten

ROWS = [
    Row("Tom met Alice in 1987.", "Tom a rencontré Alice en 1987."),
    Row("It rains.", "Il pleut."),
    Row("Why?", "Pourquoi ?"),
    Row("...", "..."),
]


def rewrite(rows: list[Row], how: Rewrite) -> list[Row]:
    return rewritten(rows, how, np.random.default_rng(1))


def test_names_and_numbers_become_others_on_both_sides_alike() -> None:
    found = rewrite(ROWS, "other_names")
    assert len(found) == VARIANTS, "rows without names are left out"
    assert len(set(found)) == VARIANTS
    for row in found:
        english = re.fullmatch(r"(\w+) met (\w+) in (\d{4})\.", row.left)
        french = re.fullmatch(r"(\w+) a rencontré (\w+) en (\d{4})\.", row.right)
        assert english is not None
        assert french is not None
        assert english.groups() == french.groups() != ("Tom", "Alice", "1987")
        assert english[2][0] in "AEIOUYH", "d'Alice stays right"


def test_a_name_inside_a_word_stays() -> None:
    (row, *_) = rewrite([Row("Tom and Tommy", "Tom et Tommy")], "other_names")
    first, second = row.left.split(" and ")
    assert row.right == f"{first} et {second}"
    assert not second.startswith(first)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("upper_case", [Row("IT RAINS.", "IL PLEUT."), Row("WHY?", "POURQUOI ?"), Row("...", "...")]),
        ("no_final_punctuation", [Row("It rains", "Il pleut"), Row("Why", "Pourquoi")]),
    ],
)
def test_other_rewritings(how: Rewrite, expected: list[Row]) -> None:
    assert rewrite(ROWS[1:], how) == expected


def test_swapped_files_have_their_source_second(tmp_path: Path) -> None:
    (tmp_path / "a.en-fr.tsv").write_text("A dog.\tUn chien.\n", encoding="utf-8")
    source = DataSource(file="a.en-fr.tsv", licence="", swap=True)
    assert load_rows(source, tmp_path) == [Row("Un chien.", "A dog.")]
