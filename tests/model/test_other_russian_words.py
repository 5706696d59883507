from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation.other_russian_words import with_other_russian_words
from model.data import DataError, Row, read_tsv

GLOVE, SPOON, UMBRELLA, TABLE = ("glove", "перчатка"), ("spoon", "ложка"), ("umbrella", "зонтик"), ("table", "стол")
BLUE, CARRY, WASH = ("blue", "синий"), ("to carry", "нести"), ("to wash", "мыть")
QUICKLY, SLOWLY = ("quickly", "быстро"), ("slowly", "медленно")


def made(english: str, russian: str, *dictionary: tuple[str, str]) -> set[Row]:
    return set(with_other_russian_words([Row(english, russian)], [Row(*pair) for pair in dictionary]))


@pytest.mark.parametrize(
    ("pair", "dictionary", "new"),
    [
        (("She lost a glove.", "Она потеряла перчатку."), (SPOON, GLOVE), ("She lost a spoon.", "Она потеряла ложку.")),
        (("My rooms.", "Мои комнаты."), (GLOVE, ("room", "комната")), ("My gloves.", "Мои перчатки.")),
        (("Gloves!", "Перчатки!"), (SPOON, GLOVE), ("Spoons!", "Ложки!")),
        (("Under a table.", "Под столом."), (UMBRELLA, TABLE), ("Under an umbrella.", "Под зонтиком.")),
        (("An umbrella.", "Зонтик."), (("honour", "почёт"), UMBRELLA), ("An honour.", "Почёт.")),
        (("An umbrella.", "Зонтик."), (("university", "университет"), UMBRELLA), ("A university.", "Университет.")),
        (("An umbrella.", "Зонтик."), (("unit", "блок"), UMBRELLA), ("A unit.", "Блок.")),
        (("A blue glove.", "Синяя перчатка."), (("old", "старый"), BLUE), ("An old glove.", "Старая перчатка.")),
        (
            ("I see a blue table.", "Вижу синий стол."),
            (("old", "старый"), BLUE),
            ("I see an old table.", "Вижу старый стол."),
        ),
        (
            ("He was washing the spoons.", "Он мыл ложки."),
            (CARRY, WASH),
            ("He was carrying the spoons.", "Он нёс ложки."),
        ),
        (("You wash the spoons.", "Ты моешь ложки."), (CARRY, WASH), ("You carry the spoons.", "Ты несёшь ложки.")),
        (("They wash the spoons.", "Они моют ложки."), (CARRY, WASH), ("They carry the spoons.", "Они несут ложки.")),
        (("Wash the spoons!", "Мойте ложки!"), (CARRY, WASH), ("Carry the spoons!", "Несите ложки!")),
        (
            ("Wash the cup!", "Вымой чашку!"),
            (("to grip", "сжать"), ("to wash", "вымыть")),
            ("Grip the cup!", "Сожми чашку!"),
        ),
        (("He sleeps.", "Он спит."), (("to fly", "лететь"), ("to sleep", "спать")), ("He flies.", "Он летит.")),
        (
            ("He did it quickly.", "Он сделал это быстро."),
            (SLOWLY, QUICKLY),
            ("He did it slowly.", "Он сделал это медленно."),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_a_word_takes_the_place_of_another_in_its_form(
    pair: tuple[str, str], dictionary: tuple[tuple[str, str], ...], new: tuple[str, str]
) -> None:
    assert made(*pair, *dictionary) == {Row(*new)}


@pytest.mark.parametrize(
    ("pair", "dictionary"),
    [
        (("A glove.", "Перчатка."), (UMBRELLA, GLOVE)),  # feminine and masculine: adjectives and verbs would not agree
        (("I see a table.", "Я вижу стол."), (("boy", "мальчик"), TABLE)),  # animate: мальчика
        (("A glove.", "Бокрётка."), (SPOON, ("glove", "бокрётка"))),  # whose forms are guesses
        (("A glove.", "Ложка."), (SPOON, GLOVE)),  # no translation of each other
        (("A glove on a glove.", "Перчатка на перчатке."), (SPOON, GLOVE)),  # which is which?
        (("Gloves for sale.", "Перчатка на продажу."), (SPOON, GLOVE)),  # one and many
        (("I see a door.", "Я вижу дверь."), (SPOON, ("door", "дверь"))),  # nominative or accusative: ложка, ложку?
        # Did it put him, or does it?
        (("It put him there.", "Это его туда клало."), (CARRY, ("to put", "класть"))),
        (("All questions.", "Все вопросы."), (("run", "бег"), ("question", "вопрос"))),  # the other has no plural
        (("A glove.", "Перчатка."), (("anger", "злость"), GLOVE)),  # nor has this, in English
        (("The Blue Glove is a cinema.", "«Синяя перчатка» — кинотеатр."), (SPOON, GLOVE)),  # in a name
        (("With a table.", "Со столом."), (UMBRELLA, TABLE)),  # the preposition would be another
        (("In a hurry, often.", "Часто второпях."), (SLOWLY, ("often", "часто"))),  # an adverb with a place of its own
        (("Next table.", "Следующий стол."), (BLUE, ("next", "следующий"))),  # the table after this one
        (("I sleep badly.", "Я сплю плохо."), (("to fly", "лететь"), ("to sleep", "спать"))),  # what follows may differ
        (("We defeat him.", "Мы его победим."), (("to arrive", "прибыть"), ("to defeat", "победить"))),  # has no object
        (("He washed the cup.", "Он мыл чашку."), (("to bring", "принести"), WASH)),  # was washing, not has brought
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_a_pair_that_would_go_wrong_stays_as_it_is(
    pair: tuple[str, str], dictionary: tuple[tuple[str, str], ...]
) -> None:
    assert not made(*pair, *dictionary)


@pytest.mark.parametrize("after", ["at", "away", "off", "into", "in", "that he is", "to", "who", "Tom"])
def test_a_verb_is_exchanged_with_its_object_after_it_alone(after: str) -> None:
    wash = ("I wash {} cups.", "Я мою что-то.")
    assert made(wash[0].format("the"), wash[1], CARRY, WASH)
    assert not made(wash[0].format(after), wash[1], CARRY, WASH)


def test_common_words_come_more_often_and_the_same_each_time() -> None:
    nouns = ("ложка", "spoon"), ("кружка", "mug"), ("шапка", "cap"), ("лодка", "boat"), ("комната", "room")
    dictionary = [Row(english, russian) for russian, english in nouns]
    rows = [Row(f"Spoon {place}.", f"Ложка {place}.") for place in range(200)]
    new = list(with_other_russian_words(rows, dictionary))
    assert new == list(with_other_russian_words(rows, dictionary))
    assert len(new) == len(set(new))
    first, last = (sum(row.left.startswith(word) for row in new) for word in ("Mug", "Room"))
    assert first > 1.5 * last > 0


def test_the_command_writes_a_corpus_or_says_what_is_wrong(tmp_path: Path) -> None:
    dictionary, corpus, out = (tmp_path / name for name in ("d.tsv", "c.tsv", "o.tsv.xz"))
    dictionary.write_text("glove\tперчатка\nspoon\tложка\na long spoon\tдлинная ложка\n", encoding="utf-8")
    corpus.write_text("A glove.\tПерчатка.\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["other-words", str(dictionary), str(corpus), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == [Row("A spoon.", "Ложка.")]
    result = CliRunner().invoke(app, ["other-words", str(dictionary), str(corpus), "--out", str(tmp_path / "o.tsv")])
    assert isinstance(result.exception, DataError)
    assert "must end in .xz" in str(result.exception)
