from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation.other_japanese_words import with_other_japanese_words
from model.data import Row, read_tsv

HEADER = "　？？？ /EDICT Japanese-English Electronic Dictionary Files/"
GLOVE, SPOON, TABLE = "手袋 [てぶくろ] /(n) glove/(P)/", "匙 [さじ] /(n) spoon/(P)/", "テーブル /(n) table/(P)/"
APPLE, MELON = "林檎 [りんご] /(n) (uk) apple/(P)/", "蜜瓜 [メロン] /(n) (uk) melon/(P)/"
EAT, FORGET = "食べる [たべる] /(v1,vt) (1) to eat/(P)/", "忘れる [わすれる] /(v1,vt) to forget/(P)/"
WRITE, BAKE = "書く [かく] /(v5k,vt) to write/(P)/", "焼く [やく] /(v5k,vt) to bake/(P)/"
SLEEP, FADE = "寝る [ねる] /(v1,vi) to sleep/(P)/", "消える [きえる] /(v1,vi) to fade/(P)/"
NEW, OLD = "新しい [あたらしい] /(adj-i) new/(P)/", "古い [ふるい] /(adj-i) old/(P)/"
NOUNS = Row("A glove, a spoon, a table, an apple.", "？")
QUIET, ABLE = "静か [しずか] /(adj-na) quiet/(P)/", "有能 [ゆうのう] /(adj-na) able/(P)/"


def made(folder: Path, english: str, japanese: str, *words: str) -> set[Row]:
    (folder / "edict").write_text("\n".join([HEADER, *words]) + "\n", encoding="euc_jp")
    return set(with_other_japanese_words([Row(english, japanese), NOUNS], folder / "edict"))


@pytest.mark.parametrize(
    ("pair", "words", "new"),
    [
        (("Here is a glove.", "手袋です。"), (GLOVE, SPOON), ("Here is a spoon.", "匙です。")),
        (("The gloves!", "手袋！"), (GLOVE, TABLE), ("The tables!", "テーブル！")),
        (("My spoon.", "私の匙"), (SPOON, APPLE), ("My apple.", "私のりんご")),
        (("A spoon.", "匙だ。"), (SPOON, APPLE), ("An apple.", "りんごだ。")),
        (("I see the apple.", "私はりんごを見る。"), (APPLE, GLOVE), ("I see the glove.", "私は手袋を見る。")),
        (("He ate it.", "彼はそれを食べました。"), (EAT, FORGET), ("He forgot it.", "彼はそれを忘れました。")),
        (("He wrote a book.", "本を書いた。"), (WRITE, BAKE), ("He baked a book.", "本を焼いた。")),
        (("I slept.", "寝ました。"), (SLEEP, FADE), ("I faded.", "消えました。")),
        (("A new house.", "新しい家"), (NEW, OLD), ("An old house.", "古い家")),
        (("It is new.", "新しかった。"), (NEW, OLD), ("It is old.", "古かった。")),
        (("My old table.", "私の古いテーブル"), (TABLE, SPOON), ("My old spoon.", "私の古い匙")),
        (
            ("He wrote it.", "それを書いた。"),
            ("書 [しょ] /(n) letter/(P)/", WRITE, BAKE),
            ("He baked it.", "それを焼いた。"),
        ),
        (("A quiet man.", "静かな人"), (QUIET, ABLE), ("An able man.", "有能な人")),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_a_word_takes_the_place_of_another_with_its_endings(
    tmp_path: Path, pair: tuple[str, str], words: tuple[str, ...], new: tuple[str, str]
) -> None:
    assert made(tmp_path, *pair, *words) == {Row(*new)}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("A glove.", "匙だ。"), (GLOVE, SPOON)),  # no translation of each other
        (("A glove, a glove.", "手袋、手袋。"), (GLOVE, SPOON)),  # which is which?
        (("A glove box.", "手袋箱だ。"), (GLOVE, SPOON)),  # part of another word
        (("A glove.", "革手袋だ。"), (GLOVE, SPOON)),
        (("A table.", "サイドテーブルだ。"), (TABLE, SPOON)),
        (("An apple.", "大りんごだ。"), (APPLE, MELON)),  # where hiragana begin a word is seen behind particles alone
        (("Gloves.", "手袋。"), (GLOVE, SPOON)),  # may be the verb
        (("I spoon it.", "匙で食べる。"), (SPOON, GLOVE)),  # the verb
        (("The Glove is open.", "手袋が開く。"), (GLOVE, SPOON)),  # a name
        (("He ate with him.", "彼と食べた。"), (EAT, FORGET)),  # without an object
        (("I ate the cake in bed.", "寝床で食べた。"), (EAT, FORGET)),  # what comes after may not fit the other
        (("I sleep in it.", "そこで寝る。"), (SLEEP, FADE)),
        (("I eat it.", "それを食べせる。"), (EAT, FORGET)),  # no form of it
        (("There is a glove.", "手袋がある。"), (GLOVE, SPOON)),  # the other may be somebody, who いる
        (("He has two gloves.", "手袋を２枚持つ。"), (GLOVE, SPOON)),  # the other may be counted otherwise
        (("I slept.", "寝入った。"), (SLEEP, FADE)),  # another verb
        (("He ate it.", "彼はそれを食べました。"), (EAT, BAKE)),  # whose endings differ
        (("A new house.", "新しい家"), (NEW, "早い [はやい] /(adj-i) fast/(P)/")),  # an adverb too
        (("It is new to me.", "新しい。"), (NEW, OLD)),
        (("A glove.", "手袋だ。"), (GLOVE, "良 [りょう] /(n) good/(P)/")),  # hardly ever a noun
        (("A glove.", "手袋だ。"), (GLOVE, "匙 [さじ] /(n) spoon/")),  # not common
        (("A glove.", "手袋だ。"), (GLOVE, "匙 [さじ] /(n,vs) spoon/(P)/")),  # makes a verb too
        (("A glove.", "手袋だ。"), (GLOVE, "羊 [ひつじ] /(n) sheep/(P)/")),  # its plural is the same
        (("A glove.", "手袋だ。"), (GLOVE, "駒鳥 [こまどり] /(n) (arch) robin/(P)/")),
        (("A robin.", "こまだ。"), (GLOVE, "駒 [こま] /(n) (uk) robin/(P)/")),  # two kana may be anything
        (("A glove, a table.", "手袋だ。"), ("手袋 [てぶくろ] /(n) glove/table/(P)/", SPOON)),  # which of them?
        (("Is that glove?", "手袋か。"), (GLOVE, SPOON)),  # without an article
        (("A car, glove.", "手袋だ。"), (GLOVE, SPOON)),
    ],
    ids=lambda value: value[1] if isinstance(value[0], str) else None,
)
def test_a_pair_that_would_go_wrong_stays_as_it_is(
    tmp_path: Path, pair: tuple[str, str], words: tuple[str, ...]
) -> None:
    assert not made(tmp_path, *pair, *words)


@pytest.mark.parametrize(
    ("word", "usual", "other"),
    [
        (
            "発端 [ほったん] /(n) start/(P)/",
            "Start. A start.",
            "We start. They start. Start. Start. Start. The start.",
        ),
        ("知識 [ちしき] /(n) knowledge/(P)/", "A knowledge.", "The knowledge." + " Knowledge, knowledge." * 9),
        ("良 [りょう] /(n) robin/(P)/", "A robin, many robins.", "The robin."),
    ],
)
def test_nouns_are_what_texts_have_behind_articles(tmp_path: Path, word: str, usual: str, other: str) -> None:
    (tmp_path / "edict").write_text("\n".join([HEADER, GLOVE, word]) + "\n", encoding="euc_jp")
    glove = Row("A glove.", "手袋だ。")
    assert [*with_other_japanese_words([glove, Row(usual, "？")], tmp_path / "edict")]
    assert not [*with_other_japanese_words([glove, Row(other, "？")], tmp_path / "edict")]


def test_the_command_reads_edict(tmp_path: Path) -> None:
    dictionary, corpus, out = tmp_path / "edict", tmp_path / "c.tsv", tmp_path / "o.tsv.xz"
    dictionary.write_text("\n".join([HEADER, GLOVE, SPOON]) + "\n", encoding="euc_jp")
    corpus.write_text("A glove.\t手袋だ。\nA spoon.\t？\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["other-words", str(dictionary), str(corpus), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == [Row("A spoon.", "匙だ。")]
