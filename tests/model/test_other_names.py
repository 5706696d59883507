import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation import other_names as module
from model.augmentation.edict import Entry
from model.augmentation.other_names import Name, attested_names, foreign_names, other_name_rows, renamed
from model.data import Row, read_tsv

NAMES = """　？？？ /ENAMDICT - Japanese Proper Name Dictionary File/
中村 [なかむら] /(p,s) Nakamura/
中村 [おかむら] /(s) Okamura/
京都 [きょうと] /(p,s,f) Kyouto/
先生 [せんじょう] /(s) Senjou/
健二 [けんじ] /(m) Kenji/
花子 [はなこ] /(f) Hanako/
アンナ /(f) Anna/Ana/
パウロ /(g) Paulo/
ペルー /(p) Peru/
ピエピエ /(g) Piepie/
"""
ATTESTING = """Mr. NAKAMURA left Kyoto.	中村は京都を去った。
Nakamura came.	中村が来た。
Okamura, of Nakamura.	中村の岡村。
Kenji saw Hanako.	健二は花子に会った。
Kenji and Hanako's dog.	健二と花子の犬。
Kyōto is old.	京都は古い。
"""
TEACHERS = "The teacher left.\t先生は帰った。\n" * 20 + "Senjo left.\t先生は帰った。\n" * 2
CORPUS = """Tom likes Boston.	トムはボストンが好きだ。
Mary and Tom ate.	メアリーとトムは食べた。
Dr. Tom is here.	トム先生がここにいます。
Anna, Paulo, Peru!	あら！
Tom left.	彼は去った。
Tommy left.	トムソンは去った。
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    dictionary, attesting, corpus = (tmp_path / name for name in ("enamdict", "attesting.tsv", "corpus.tsv"))
    dictionary.write_text(NAMES, encoding="euc_jp")
    attesting.write_text(ATTESTING + TEACHERS, encoding="utf-8")
    corpus.write_text(CORPUS, encoding="utf-8")
    return dictionary, attesting, corpus


def test_a_name_is_read_as_it_mostly_is_in_a_corpus() -> None:
    def entry(kanji: str, kana: str, kinds: str, reading: str) -> Entry:
        return Entry(kanji, kana, f"({kinds})", [reading])

    names = [entry("中村", "なかむら", "p,s", "Nakamura"), entry("中村", "おかむら", "s", "Okamura")]
    rows = [Row("Nakamura left Okamura.", "中村は去った。"), Row("NAKAMURA came.", "中村が来た。")]
    name = Name("Nakamura", "中村")
    assert attested_names(names, rows) == {"p": Counter({name: 2}), "s": Counter({name: 2})}
    assert not attested_names(names, rows[:1]), "once may be chance"
    assert not attested_names(names, rows + [Row("He left.", "中村は去った。")] * 9), "mostly something else"
    assert attested_names([entry("京都", "きょうと", "p", "Kyouto")], [Row("Kyōto", "京都"), Row("Kyoto", "京都")]) == {
        "p": Counter({Name("Kyoto", "京都"): 2})
    }


def test_names_are_in_an_order_of_their_own() -> None:
    """In that of a set, which differs between processes, the same command made other rows."""
    kanji = ["健二", "中村", "花子", "京都", "大阪", "奈良", "佐藤", "鈴木"]
    names = [Entry(word, "", "(s)", [f"Name{letter}"]) for word, letter in zip(kanji, "abcdefgh", strict=True)]
    rows = [Row(" ".join(name.glosses[0] for name in names), "と".join(kanji))] * 2
    assert [name.japanese for name in attested_names(names, rows)["s"]] == sorted(kanji)


def test_a_foreign_name_is_one_that_english_texts_have() -> None:
    names = [Entry("アンナ", "アンナ", "(f,p)", ["Anna", "Ana"]), Entry("ピエピエ", "ピエピエ", "(g)", ["Piepie"])]
    assert foreign_names(names, {"Anna", "Ana"}) == {"f": [Name("Anna", "アンナ")], "p": [Name("Anna", "アンナ")]}


def test_names_come_first_and_others_stand_where_they_stood(files: tuple[Path, Path, Path]) -> None:
    dictionary, attesting, corpus = files
    rows = list(other_name_rows(dictionary, [attesting], [corpus]))
    names, sentences = rows[:7], rows[7:]
    assert names[0] == Row("Nakamura", "中村")
    assert set(names) == {
        *(Row("Nakamura", "中村"), Row("Kyoto", "京都"), Row("Kenji", "健二"), Row("Hanako", "花子")),
        *(Row("Anna", "アンナ"), Row("Paulo", "パウロ"), Row("Peru", "ペルー")),
    }, "neither Senjo, which is mostly a teacher, nor Piepie, of whom no English text tells"
    assert len(sentences) == 3 * module.VARIANTS, "those with a name on both sides"
    written = [*names, *(Row(name, name) for name in ("Anna", "Paulo", "Peru"))]
    for row in sentences:
        assert not re.search("Tom|Mary|Boston", row.left)
        assert not re.search("トム|メアリー|ボストン", row.right)
        assert any(name.left in row.left and name.right in row.right for name in written)


def test_a_surname_has_its_title_in_both_languages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KATAKANA_SHARE", 0.0)
    monkeypatch.setattr(module, "POLITE_SHARE", 1.0)
    rows = [Row("Tom ate.", "トムは食べた。"), Row("Dr. Tom ate.", "トム先生は食べた。")] * 50
    attested = {"s": Counter({Name("Sato", "佐藤"): 4}), "m": Counter({Name("Kenji", "健二"): 1})}
    assert set(renamed(rows, attested, {})) == {
        *(Row("Mr. Sato ate.", "佐藤さんは食べた。"), Row("Dr. Sato ate.", "佐藤先生は食べた。")),
        *(Row("Kenji ate.", "健二は食べた。"), Row("Dr. Kenji ate.", "健二先生は食べた。")),
    }


def test_some_foreign_names_keep_their_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KATAKANA_SHARE", 1.0)
    rows = [Row("Tom ate.", "トムは食べた。")] * 50
    found = set(renamed(rows, {}, {"g": [Name("Paulo", "パウロ")]}))
    assert found == {Row("Paulo ate.", "パウロは食べた。"), Row("Paulo ate.", "Pauloは食べた。")}


def test_a_name_that_has_no_other_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LATIN_SHARE", 0.0)
    assert not list(renamed([Row("Tom ate.", "トムは食べた。")] * 20, {}, {}))


def test_the_command_writes_a_corpus(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    dictionary, attesting, corpus = files
    out = tmp_path / "names.en-ja.tsv.xz"
    arguments = [str(dictionary), str(corpus), "--attesting", str(attesting), "--out", str(out)]
    result = CliRunner().invoke(app, ["other-names", *arguments])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == list(other_name_rows(dictionary, [attesting], [corpus]))
