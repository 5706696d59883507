from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.data import Row, read_tsv
from model.other_words import app, with_other_words

GLOVE, SPOON, UMBRELLA, TABLE = ("glove", "перчатка"), ("spoon", "ложка"), ("umbrella", "зонтик"), ("table", "стол")


def made(english: str, russian: str, *dictionary: tuple[str, str]) -> set[Row]:
    return set(with_other_words([Row(english, russian)], [Row(*pair) for pair in dictionary]))


@pytest.mark.parametrize(
    ("pair", "dictionary", "new"),
    [
        (("She lost a glove.", "Она потеряла перчатку."), (SPOON, GLOVE), ("She lost a spoon.", "Она потеряла ложку.")),
        (("Gloves!", "Перчатки!"), (SPOON, GLOVE), ("Spoons!", "Ложки!")),
        (("Under a table.", "Под столом."), (UMBRELLA, TABLE), ("Under an umbrella.", "Под зонтиком.")),
        (("An umbrella.", "Зонтик."), (("hour", "час"), UMBRELLA), ("An hour.", "Час.")),
        (("An umbrella.", "Зонтик."), (("university", "университет"), UMBRELLA), ("A university.", "Университет.")),
        (
            ("He was washing spoons.", "Он мыл ложки."),
            (("to carry", "нести"), ("to wash", "мыть")),
            ("He was carrying spoons.", "Он нёс ложки."),
        ),
        (
            ("An old table.", "Старый стол."),
            (("blue", "синий"), ("old", "старый")),
            ("A blue table.", "Синий стол."),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_a_word_takes_the_place_of_another_in_its_form(
    pair: tuple[str, str], dictionary: tuple[tuple[str, str], ...], new: tuple[str, str]
) -> None:
    assert Row(*new) in made(*pair, *dictionary)


@pytest.mark.parametrize(
    ("pair", "dictionary"),
    [
        (("A glove.", "Перчатка."), (UMBRELLA, GLOVE)),  # feminine and masculine: adjectives and verbs would not agree
        (("A glove.", "Ложка."), (SPOON, GLOVE)),  # no translation of each other
        (("A glove on a glove.", "Перчатка на перчатке."), (SPOON, GLOVE)),  # which is which?
        (("I see a door.", "Я вижу дверь."), (SPOON, ("door", "дверь"))),  # nominative or accusative: ложка, ложку?
        (("Look at a table!", "Смотри на стол!"), (("to carry", "нести"), ("to look", "смотреть"))),  # to look at
        # Did it put him, or does it?
        (("It put him there.", "Это его туда клало."), (("to carry", "нести"), ("to put", "класть"))),
        (("All questions.", "Все вопросы."), (("run", "бег"), ("question", "вопрос"))),  # the other has no plural
        (("Rose went.", "Роза ушла."), (SPOON, ("rose", "роза"))),  # a name
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_a_pair_that_would_go_wrong_stays_as_it_is(
    pair: tuple[str, str], dictionary: tuple[tuple[str, str], ...]
) -> None:
    assert not made(*pair, *dictionary)


def test_common_words_come_more_often_and_the_same_each_time() -> None:
    nouns = ("ложка", "spoon"), ("кружка", "mug"), ("шапка", "cap"), ("лодка", "boat"), ("комната", "room")
    dictionary = [Row(english, russian) for russian, english in nouns]
    rows = [Row(f"Spoon {place}.", f"Ложка {place}.") for place in range(200)]
    new = list(with_other_words(rows, dictionary))
    assert new == list(with_other_words(rows, dictionary))
    assert len(new) == len(set(new))
    first, last = (sum(row.left.startswith(word) for row in new) for word in ("Mug", "Room"))
    assert first > 1.5 * last > 0


def test_the_command_writes_a_corpus_or_says_what_is_wrong(tmp_path: Path) -> None:
    dictionary, corpus, out = (tmp_path / name for name in ("d.tsv", "c.tsv", "o.tsv.xz"))
    dictionary.write_text("glove\tперчатка\nspoon\tложка\na long spoon\tдлинная ложка\n", encoding="utf-8")
    corpus.write_text("A glove.\tПерчатка.\n", encoding="utf-8")
    result = CliRunner().invoke(app, [str(dictionary), str(corpus), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == [Row("A spoon.", "Ложка.")]
    result = CliRunner().invoke(app, [str(dictionary), str(corpus), "--out", str(tmp_path / "o.tsv")])
    assert result.exit_code == 1
    assert "must end in .xz" in result.stderr
