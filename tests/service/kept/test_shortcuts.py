"""Marks of keyboard shortcuts are not read, and one is written; signs of sentences are none."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kept.restoration import keep_original
from service.kept.shortcuts import shortcuts
from service.text.aligned_words import AlignedWords
from service.text.spans import Span
from tests.service.stand_ins import protect, restore


@pytest.mark.parametrize(
    ("text", "read", "translation", "expected"),
    [
        ("&Open the file", "Open the file", "Ouvrez le fichier", "&Ouvrez le fichier"),
        ("_Open the file", "Open the file", "Открой файл", "_Открой файл"),
        ("&Hilfe", "Hilfe", "Help", "&Help"),
        ("&File", "File", "Datei", "&Datei"),
        ("Save &As...", "Save As...", "Enregistrer sous...", "&Enregistrer sous..."),
        ("E&xit", "Exit", "Quitter", "&Quitter"),
        ("E&xit now", "Exit now", "Exit jetzt", "E&xit jetzt"),
        ("&Replace", "Replace", "Ersetzen: replace", "Ersetzen: &replace"),
        ("ファイル(&F)", "ファイル", "File", "&File"),
        ("Open (&O)", "Open", "Ouvrir ", "&Ouvrir "),
        ("&File", "File", "ファイル", "ファイル(&F)"),
        ("&Open...", "Open...", "開く...", "開く(&O)..."),
        ("Hello.\n&Open {name}", "Hello.\nOpen Tom", "Salut.\nOuvre Tom", "Salut.\n&Ouvre {name}"),
    ],
)
def test_labels_are_read_without_and_written_with_marks(text: str, read: str, translation: str, expected: str) -> None:
    protected = protect(text)
    assert protected.text.rstrip() == read.rstrip()
    sentences = []
    for source, target in zip(lines(protected.text), lines(translation), strict=True):
        sentences.append(
            AlignedWords([source], words(translation, target), np.ones((len(words(translation, target)), 1)))
        )
    assert restore(protected, translation, sentences).text == expected
    assert keep_original(protected).text == text


def lines(text: str) -> list[Span]:
    return [Span(*match.span()) for match in re.finditer(".+", text)]


def words(text: str, line: Span) -> list[Span]:
    return [Span(*match.span()) for match in re.compile(r"\w+|[^\w\s]+").finditer(text, *line.pair)]


def test_a_mark_goes_to_the_translation_of_its_word_if_no_letter_is_the_same() -> None:
    protected = protect("Нажмите &Сохранить")
    source, target = [Span(0, 7), Span(8, 17)], [Span(0, 5), Span(6, 10)]
    assert restore(protected, "Press Push", [AlignedWords(source, target, np.eye(2))]).text == "Press &Push"


@pytest.mark.parametrize(
    "text",
    [
        "AT&T", "R&D, Q&A and rock&roll", "just you&me tonight", "a & b && c", "&nbsp; &amp;x",
        "snake_case _italic_ __init__ and _very italic_", "&Tom &Jerry",
        "This is a long sentence that has the sign &here", "f(&x, _y)", "(&) (_) & _ 5_a", "a=1&b=2",
    ],
)  # fmt: skip
def test_signs_in_prose_and_in_names_are_none(text: str) -> None:
    assert [span.of(text) for span in shortcuts(text)] == []


@given(st.lists(st.sampled_from(["Save", "as", "the", "файл", "A"]), min_size=1, max_size=5), st.data())
def test_one_mark_before_any_word_is_found(labels: list[str], data: st.DataObject) -> None:
    n, sign = data.draw(st.integers(0, len(labels) - 1)), data.draw(st.sampled_from("&_"))
    text = " ".join(sign * (i == n) + word for i, word in enumerate(labels))
    assert [span.of(text) for span in shortcuts(text)] == [sign]
    assert protect(text).text == " ".join(labels)
