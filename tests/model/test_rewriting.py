# ruff: noqa: RUF001  Russian letters

import re

import numpy as np
import pytest

from model.augmentation.rewriting import VARIANTS, rewrite_rows, romanized
from model.data import Row
from model.recipe import Rewrite

ROWS = [
    Row("Tom met Alice in 1987.", "Tom a rencontré Alice en 1987."),
    Row("It rains.", "Il pleut."),
    Row("Why?", "Pourquoi ?"),
    Row("...", "..."),
]


def rewrite(rows: list[Row], how: Rewrite) -> list[Row]:
    return rewrite_rows(rows, how, np.random.default_rng(1))


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


def test_names_are_drawn_in_the_order_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the order of sets, which differs between processes, a resumed run had other rows, and held out others."""
    names = ["Anna", "Boris", "Clara", "Dora", "Emil", "Fritz"]
    drawn: list[str] = []
    monkeypatch.setattr("model.augmentation.rewriting._name", lambda like, random: drawn.append(like) or like)
    rewrite([Row(" ".join(names), " ".join(reversed(names)))], "other_names")
    assert drawn == names * VARIANTS


def test_a_russian_name_is_written_in_the_letters_of_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.augmentation.rewriting.LATIN_SHARE", 0.0)
    rows = rewrite([Row("Ирина и Дмитрий ждут Мэри.", "Irina and Dmitry wait for Mary.")], "other_names")
    assert len(set(rows)) == VARIANTS
    for row in rows:
        russian = re.fullmatch(r"([А-ЯЁ][а-яё]+[ая]) и ([А-ЯЁ][а-яё]+[^ая]) ждут Мэри\.", row.left)
        assert russian, "each with the ending of its gender"
        assert row.right == f"{romanized(russian[1])} and {romanized(russian[2])} wait for Mary."
    assert rewrite([Row("Irina waits.", "Ирина ждёт.")], "other_names")[0].left.isascii()
    monkeypatch.setattr("model.augmentation.rewriting.LATIN_SHARE", 1.0)
    rows = rewrite([Row("Ирина ждёт.", "Irina waits.")], "other_names")
    assert len(rows) == VARIANTS
    for row in rows:
        assert row.left.removesuffix(" ждёт.") == row.right.removesuffix(" waits.")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Щукин", "Shchukin"), ("Маяковский", "Mayakovsky"), ("Юлия", "Yuliya"), ("Горький", "Gorky"), ("Tom", "Tom")],
)
def test_russian_names_are_romanized(name: str, expected: str) -> None:
    assert romanized(name) == expected


def test_a_name_in_both_scripts_is_another_where_both_sides_have_it() -> None:
    rows = rewrite([Row("Борис (Boris) ушёл.", "Boris left.")], "other_names")
    assert len(rows) == VARIANTS
    for row in rows:
        name = row.right.removesuffix(" left.")
        assert row.left == f"Борис ({name}) ушёл."


def test_a_name_inside_a_word_stays() -> None:
    (row, *_) = rewrite([Row("Tom and Tommy", "Tom et Tommy")], "other_names")
    first, second = row.left.split(" and ")
    assert row.right == f"{first} et {second}"
    assert not second.startswith(first)


def test_rows_lose_their_final_punctuation() -> None:
    assert rewrite(ROWS[1:], "no_final_punctuation") == [Row("It rains", "Il pleut"), Row("Why", "Pourquoi")]


def test_numbers_become_others_however_they_are_written() -> None:
    rows = [
        Row("At 17:45 it cost 3,600.50 on the 28th.", "À 17 h 45 cela coûtait 3 600,50 le 28."),
        Row("5 dogs", "cinq chiens"),
        Row("No number.", "Aucun nombre."),
        Row("On 3/14.", "Le 14/3."),
    ]
    found = rewrite(rows, "other_numbers")
    assert len(found) == VARIANTS, "rows whose numbers differ, or come in another order, are left out"
    for row in found:
        english = re.fullmatch(r"At (\d\d):(\d\d) it cost (\d),(\d{3})\.(\d\d) on the (\d\d)th\.", row.left)
        french = re.fullmatch(r"À (\d\d) h (\d\d) cela coûtait (\d) (\d{3}),(\d\d) le (\d\d)\.", row.right)
        assert english is not None
        assert french is not None
        assert english.groups() == french.groups()
        hour, minute, *_, day = map(int, english.groups())
        assert hour < 24 <= day < 32 <= minute < 60
    assert len({row.left for row in found}) == VARIANTS


def test_japanese_numbers_become_others_in_full_width_too() -> None:
    (row, *_) = rewrite([Row("９８７人いた。", "There were 987 people.")], "other_numbers")
    assert re.findall(r"\d+", row.left) == re.findall(r"\d+", row.right) != ["987"]
    assert row.left.removesuffix("人いた。").isascii(), "as most write them"


@pytest.mark.parametrize(
    ("number", "kanji"),
    [("1", "一"), ("10", "十"), ("34", "三十四"), ("110", "百十"), ("2018", "二千十八"), ("7000", "七千")],
)
def test_japanese_numbers_are_written_in_kanji(monkeypatch: pytest.MonkeyPatch, number: str, kanji: str) -> None:
    monkeypatch.setattr("model.augmentation.rewriting._like", lambda run, random: number)
    rows = [Row("５人と5.5時間。", "5 people, 5.5 hours."), Row("５人。", "5 people."), Row("5 gens.", "5 people.")]
    found = rewrite(rows, "kanji_numbers")
    assert found == [
        row
        for _ in range(VARIANTS)
        for row in (
            Row(f"{kanji}人と{number}.{number}時間。", f"{number} people, {number}.{number} hours."),
            Row(f"{kanji}人。", f"{number} people."),
        )
    ]


def test_wide_characters_become_usual_ones() -> None:
    rows = [Row("８月　Ｂ！", "August, B!"), Row("八月。", "August.")]
    assert rewrite(rows, "half_width") == [Row("8月 B!", "August, B!")]


def test_japanese_rows_lose_their_full_stops_and_are_joined_without_space() -> None:
    rows = [Row("行くよ。", "I go."), Row("本当？", "Really?")]
    assert rewrite(rows, "no_final_punctuation") == [Row("行くよ", "I go"), Row("本当", "Really")]
    (row,) = rewrite(rows, "joined")
    assert row in (Row("行くよ。本当？", "I go. Really?"), Row("本当？行くよ。", "Really? I go."))


def test_only_the_source_loses_its_capitals() -> None:
    assert rewrite([Row("Tom is in Paris.", "Tom est à Paris."), Row("ok", "ok")], "no_capitals") == [
        Row("tom is in paris.", "Tom est à Paris.")
    ]


def test_words_begin_with_a_capital_as_telephones_write_them() -> None:
    rows = [Row("red wine", "vin rouge"), Row("Monday", "lundi"), Row("dog", "犬")]

    assert rewrite(rows, "capitalized") == [Row("Red wine", "Vin rouge"), Row("Dog", "犬")]


def test_both_sides_are_written_in_capitals_where_the_source_is_not_yet() -> None:
    rows = [Row("Stop at the café!", "Arrêtez-vous au café !"), Row("OK", "D'accord"), Row("駅", "Station")]
    assert rewrite(rows, "capitals") == [Row("STOP AT THE CAFÉ!", "ARRÊTEZ-VOUS AU CAFÉ !")]


def test_each_row_is_joined_with_others_once_and_in_the_same_order() -> None:
    rows = [Row(f"a{i}", f"b{i}") for i in range(50)]
    found = rewrite(rows, "joined")
    assert all(row.left.replace("a", "b") == row.right for row in found)
    assert {len(row.left.split()) for row in found} == {2, 3, 4}
    words = [word for row in found for word in row.left.split()]
    assert len(set(words)) == len(words) >= len(rows) - 1


DICTIONARY = {"dog": "chien", "cat": "chat", "house": "maison", "green": "vert", "water": "eau", "karaoke": "karaoke"}


def sentences() -> list[Row]:
    """Two words per row, so that only both rows together tell them apart; and many rows without any."""
    pairs = [(a, b) for a in DICTIONARY for b in DICTIONARY if a != b]
    rows = [Row(f"The {a} and {b}.", f"Les {DICTIONARY[b]} avec {DICTIONARY[a]}.") for a, b in pairs]
    return rows + [Row("Yes.", "Oui.")] * 1000


def test_single_words_are_those_that_come_in_the_same_rows() -> None:
    found = rewrite(sentences(), "single_words")
    assert {(row.left, row.right) for row in found} == {pair for pair in DICTIONARY.items() if pair[0] != pair[1]}


def test_single_words_are_written_as_they_mostly_are_inside_sentences() -> None:
    rows = [Row(row.left.replace("cat", "Monday"), row.right.replace("chat", "Chat")) for row in sentences()]
    started = [Row("Dog it is.", "Chien, oui.")] * 3
    found = {row.left: row.right for row in rewrite(rows + started, "single_words")}
    assert found["Monday"] == "Chat"
    assert found["dog"] == "chien"


def test_lists_are_of_single_words() -> None:
    found = rewrite(sentences(), "lists")
    assert len(found) == len(sentences())
    for row in found[:100]:
        words = row.left.split(", ")
        assert 3 <= len(words) <= 8
        assert row.right.split(", ") == [DICTIONARY[word] for word in words]
    assert rewrite(ROWS, "lists") == []
