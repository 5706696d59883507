# ruff: noqa: RUF001  Russian letters and wide digits
"""Other weekdays, months and numbers."""

from pathlib import Path

import numpy as np
import pytest

from model.augmentation.closed_classes import CLOSED_CLASSES, WEEKDAYS, ClosedClass, with_others
from model.augmentation.rewriting import VARIANTS, rewritten
from model.data import DataError, Row
from model.training.examples import prepare
from tests.model.tiny_configs import TRANSLATOR, configured


def variants(row: Row, source: str, target: str) -> set[Row]:
    random = np.random.default_rng(1)
    return {with_others(row, (source, target), random) for _ in range(300)} - {row}


@pytest.mark.parametrize("closed", CLOSED_CLASSES)
def test_every_form_has_as_many_members(closed: ClosedClass) -> None:
    counts = {len(words) for table in closed.tables.values() for words in table}
    assert len(counts) == 1
    assert all(len(letters) in counts for letters in closed.agreeing.values())


@pytest.mark.parametrize(
    ("closed", "language"), [(closed, language) for closed in CLOSED_CLASSES for language in closed.forms]
)
def test_a_member_becomes_another_in_the_same_form(closed: ClosedClass, language: str) -> None:
    n = len(closed.tables[language][0])
    others = [(member + 1) % n for member in range(n)]
    for word, (form, member) in closed.places[language].items():
        assert closed.members(word, language) == [member]
        assert closed.exchanged(word, language, others) == closed.tables[language][form][others[member]]


@pytest.mark.parametrize(
    ("row", "languages", "one"),
    [
        (
            Row("We met on Sunday.", "私たちは日曜日に会った。"),
            "en ja",
            Row("We met on Thursday.", "私たちは木曜日に会った。"),
        ),
        (Row("Three dogs.", "犬が３匹。"), "en ja", Row("Nine dogs.", "犬が９匹。")),
        (Row("In May.", "五月に。"), "en ja", Row("In December.", "十二月に。")),
        (Row("Во вторник.", "On Tuesday."), "ru en", Row("В воскресенье.", "On Sunday.")),
        (Row("Montags um drei.", "Mondays at three."), "de en", Row("Dienstags um acht.", "Tuesdays at eight.")),
        (
            Row("Mardi, fin avril.", "Tuesday, end of April."),
            "fr en",
            Row("Jeudi, fin août.", "Thursday, end of August."),
        ),
    ],
)
def test_both_sides_say_the_same_other_member(row: Row, languages: str, one: Row) -> None:
    source, target = languages.split()
    assert one in variants(row, source, target)


@pytest.mark.parametrize(
    ("row", "languages"),
    [
        (Row("It rains.", "雨が降る。"), "en ja"),
        (Row("Sunday is the day.", "月曜日です。"), "en ja"),  # another day
        (Row("Four of four.", "四つ。"), "en ja"),  # said twice
        (Row("Three or four days.", "三、四日。"), "en ja"),  # a range, which has an order
        (Row("They are a couple, the two.", "二人は恋人だ。"), "en ja"),
        (Row("Twenty-four people.", "二十四人。"), "en ja"),
        (Row("Four o'clock.", "14時。"), "en ja"),
        (Row("Nine hundred and ninety-nine.", "Девятьсот девяносто девять."), "en ru"),
        (Row("The four seasons.", "四季。"), "en ja"),
        (Row("A five minute walk.", "歩いて５分。"), "en ja"),  # a eight minute walk
        (Row("February.", "十二月。"), "en ja"),
        (Row("It may rain.", "5月に雨。"), "en ja"),
    ],
)
def test_a_row_that_others_would_spoil_stays(row: Row, languages: str) -> None:
    source, target = languages.split()
    assert variants(row, source, target) == set()


def test_members_take_the_places_of_those_they_agree_with() -> None:
    days = {row.right for row in variants(Row("this Friday", "эта пятница"), "en", "ru")}
    assert days == {"эта среда", "эта суббота"}
    counts = {row.right for row in variants(Row("five sisters", "пять сестёр"), "en", "ru")}
    assert counts == {f"{number} сестёр" for number in ("шесть", "семь", "восемь", "девять")}
    months = {row.right for row in variants(Row("in early April", "au début d'avril"), "en", "fr")}
    assert months == {"au début d'août", "au début d'octobre"}


def test_two_members_stay_two() -> None:
    for row in variants(Row("from Monday to Friday", "月曜日から金曜日まで"), "en", "ja"):
        first, last = row.left.removeprefix("from ").split(" to ")
        assert first != last
        assert row.right.index(WEEKDAYS.tables["ja"][0][WEEKDAYS.places["en"][first][1]]) == 0


def test_it_is_a_rewriting_of_translations() -> None:
    rows = [Row("On Friday.", "金曜日に。"), Row("It rains.", "雨が降る。")]
    new = rewritten(rows, "closed_classes", np.random.default_rng(1), ("en", "ja"))
    assert 0 < len(new) == len(set(new)) <= VARIANTS
    assert all(row.left.startswith("On ") and row not in rows for row in new)


@pytest.mark.parametrize(("languages", "these"), [(("en", "es"), "en to es"), (None, "no translation")])
def test_languages_without_a_table_are_refused_in_words(languages: tuple[str, str] | None, these: str) -> None:
    with pytest.raises(DataError, match=f"knows the words of de, en, fr, ja, ru: it is not for {these}"):
        rewritten([], "closed_classes", np.random.default_rng(1), languages)


def test_training_rewrites_in_the_languages_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "days.tsv").write_text("On Friday.\tLe vendredi.\n", encoding="utf-8")
    corpus = {"file": "days.tsv", "licence": "none"}
    data = {"max_tokens": 60, "validation_fraction": 0.0, "train": [corpus, corpus | {"rewrite": "closed_classes"}]}
    plain, other = prepare(configured(TRANSLATOR | {"vocab_size": 300}, data=data), tmp_path, None)[0].pools
    assert len(plain.examples) == 1 <= len(other.examples)
