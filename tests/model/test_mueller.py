import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation.mueller import DIGITS, entries, mueller_pairs, phrase_pairs, translations
from model.data import DataError, Row, read_tsv

SPOON = """spoon
   _I  [spʊ:n]
      1. _n.
         1) ложка
         2) широкая изогнутая лопасть (весла)
         3) _уст. простак; to be born with a silver spoon in one's mouth
         родиться в сорочке
         4) блесна; soup-
spoon for the host столовая ложка для хозяина, большая ложка; to eat (или to drink) something
         with a spoon есть что-л. ложкой
      2. _v.
         1) черпать ложкой (обыкн. spoon up)
         2) зачерпывать, черпать; a spoon ложка
"""
SCOOP = """scoop
   [sku:p]
   1. _n. совок, ложка; _уст. мера
   2. _v. черпать; he scoops, so that it hurts он черпает, что вредно
"""
ABBREVIATION = "_a.\n   adjective имя прилагательное\n"
COMMON = "I have a spoon.\tУ меня есть ложка.\n" * 4 + "A scoop.\tСовок.\n" * 5 + "Well.\tНу.\n" * 1000


def digits(number: int) -> str:
    return (digits(number // 64) if number >= 64 else "") + DIGITS[number % 64]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    texts = {"00-database-short": "A dictionary.\n", "spoon": SPOON, "scoop": SCOOP, "a": ABBREVIATION}
    lines, content = [], b""
    for headword, text in texts.items():
        lines.append(f"{headword}\t{digits(len(content))}\t{digits(len(text.encode()))}\n")
        content += text.encode()
    (tmp_path / "small.dict.dz").write_bytes(gzip.compress(content))
    path = tmp_path / "small.index"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text(COMMON, encoding="utf-8")
    return path


def test_entries_are_where_the_index_says(index: Path) -> None:
    found = dict(entries(index))
    assert list(found) == ["spoon", "scoop"]  # neither what is said of the dictionary, nor its abbreviations
    assert found["scoop"].startswith("[sku:p] 1. _n. совок, ложка;")
    assert "soup-spoon for the host" in found["spoon"]  # a word that two lines shared


def test_a_word_of_one_word_is_worth_less_for_its_sense_and_place(index: Path) -> None:
    found = {(new.english, new.russian): new.penalty for new in translations("spoon", dict(entries(index))["spoon"])}
    # A sense that few people use is none: "блесна" is the third.
    assert found == {("spoon", "ложка"): 0.0, ("spoon", "блесна"): 2.0, ("to spoon", "зачерпывать"): 2.0}


@pytest.mark.parametrize(
    ("body", "russian"),
    [
        ("_n. дом, жилище; здание", ["дом", "жилище", "здание"]),
        ("1. _a. старый; _разг. милый 2. _adv. давно", ["старый", "милый", "давно"]),
        ("_n. {см. тж. 2} мир (во всём мире) [wɜ:ld]", ["мир"]),
        ("_n. самка волка, лисы; нора", ["нора"]),  # a fox is not what the headword is
        ("1. _n. мир; to make peace а) заключать; б) мирить 2. _v. мириться", ["мир", "мириться"]),
        ("_v. водить; за руку, отметки; вести", ["водить", "вести"]),  # no infinitive
        ("_n. 1) булавка 2) _pl. ноги", ["булавка"]),
        *((f"_n. 1) дом 2) _{label}. хата", ["дом"]) for label in ("австрал", "груб", "диал", "поэт", "редк", "шотл")),
        ("_n. стул; at the chair за стулом; кафедра", ["стул"]),  # of the phrase
        ("_n. 1) дом 2) сад 3) лес 4) луг", ["дом", "сад", "лес"]),  # later senses are seldom meant
    ],
)
def test_single_words_of_a_headword(body: str, russian: list[str]) -> None:
    assert [translation.russian for translation in translations("word", body)] == russian


def test_each_russian_word_has_its_most_usual_translation_and_the_common_come_first(index: Path, corpus: Path) -> None:
    words = [row for row in mueller_pairs(index, [corpus]) if " " not in row.right]
    assert words[:2] == [Row("scoop", "совок"), Row("spoon", "ложка")], "five sentences have a scoop, four a spoon"
    assert Row("to scoop", "черпать") in words
    assert len({row.right for row in words}) == len(words)


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("false key отмычка для замков", Row("false key", "отмычка для замков")),
        ("at the door, у двери", Row("at the door", "у двери")),
        ("to run away убежать прочь, спастись бегством", Row("to run away", "убежать прочь")),
        ("he knows, where it is он знает, где это", Row("he knows, where it is", "он знает, где это")),
        ("he says it is so он говорит, что это так", Row("he says it is so", "он говорит, что это так")),
        ("he came at once он пришёл тут же, сразу", None),  # the same in other words?
        ("so they say , etc. так говорят , и т.п.", Row("so they say", "так говорят")),
        ("to meet smb. встретить кого-л. здесь", Row("to meet somebody", "встретить кого-то здесь")),
        ("easier said than done легче сказать, чем сделать", None),
        ("to stand trial, to be on trial быть под судом", None),
        ("E. wind is cold восточный ветер", None),
        ("a shy man застенчивый или смущённый человек", None),
        ("a table laden with food стол", None),
    ],
)
def test_phrases(part: str, row: Row | None) -> None:
    assert phrase_pairs([f"_n. слово; {part}"]) == ([row] if row else [])


def test_words_that_hardly_any_sentence_has_or_too_many_are_left_out(index: Path, tmp_path: Path) -> None:
    for n_with, n_without in ((2, 1000), (20, 1000)):
        path = tmp_path / "corpus.tsv"
        path.write_text("A spoon.\tЛожка.\n" * n_with + "Well.\tНу.\n" * n_without, encoding="utf-8")
        assert not [row for row in mueller_pairs(index, [path]) if " " not in row.right]


def test_phrases_have_their_first_translation_and_no_asides(index: Path, corpus: Path) -> None:
    phrases = [row for row in mueller_pairs(index, [corpus]) if " " in row.right]
    assert phrases == [
        Row("to eat something with a spoon", "есть что-то ложкой"),
        Row("he scoops, so that it hurts", "он черпает, что вредно"),
    ]


def test_the_command_writes_a_corpus(index: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "dictionary.en-ru.tsv.xz"
    result = CliRunner().invoke(app, ["dictionary", str(index), str(corpus), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == list(mueller_pairs(index, [corpus]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("small.dict.dz", None, r"small\.index and small\.dict\.dz cannot be read: .*No such file"),
        ("small.dict.dz", b"no gzip", r"small\.dict\.dz cannot be read: Not a gzipped file"),
        ("small.dict.dz", gzip.compress(SPOON.encode())[:-20], r"small\.dict\.dz cannot be read"),
        ("small.index", b"\xff", r"small\.index and small\.dict\.dz cannot be read: .*utf-8"),
        ("small.index", b"spoon with no place\n", r"small\.index, line 1: no headword with a place in the dictionary"),
        ("small.index", b"spoon\tA\t!\n", r"small\.index, line 1: no headword with a place in the dictionary"),
    ],
)
def test_a_dictionary_that_cannot_be_read_is_named(
    index: Path, corpus: Path, name: str, content: bytes | None, message: str
) -> None:
    path = index.with_name(name)
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(mueller_pairs(index, [corpus]))
