from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation.edict import FEWEST_SENTENCES, edict_pairs, entries
from model.data import DataError, Row, read_tsv

HEADER = "　？？？ /EDICT Japanese-English Electronic Dictionary Files/"
WORDS = [
    "食べる [たべる] /(v1,vt) (1) to eat/(2) to live on (e.g. a salary)/(P)/",
    "林檎 [りんご] /(n) (uk) apple (fruit of Malus pumila)/(P)/",
    "端 [はし] /(n) end/(P)/",
    "橋 [はし] /(n) bridge/(P)/",
    "テーブル /(n) table/(P)/",
    "犬掻き [いぬかき] /(n) dog paddle/",
    "犬小屋 [いぬごや] /(n) dog house/kennel/",
    "希土類 [きどるい] /(n) rare earths (rare metals)/(P)/",
    "汝 [なんじ] /(pn) (arch) thou/",
    "４° [しど] /",
    "俺様 [おれさま] /(pn) I, who is better than all other people of the world/myself/(P)/",
]


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    path = tmp_path / "edict"
    path.write_text("\n".join([HEADER, *WORDS]) + "\n", encoding="euc_jp")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("The dog is in the house.\tx\n" * FEWEST_SENTENCES + "A paddle.\tx\n", encoding="utf-8")
    return path


def test_an_entry_has_the_glosses_of_its_first_sense(dictionary: Path) -> None:
    found = list(entries(dictionary))
    assert len(found) == len(WORDS)
    assert found[0] == ("食べる", "たべる", "(v1,vt) (1) (P)", ["to eat"])
    assert found[1].glosses == ["apple"]
    assert found[4].reading == "テーブル"
    assert found[9].glosses == []


def test_words_have_their_first_gloss_and_common_ones_come_first(dictionary: Path, corpus: Path) -> None:
    pairs = list(edict_pairs(dictionary, [corpus]))
    assert pairs[:7] == [
        Row("to eat", "食べる"),
        Row("apple", "りんご"),  # usually written so
        Row("end", "端"),
        Row("bridge", "橋"),
        Row("table", "テーブル"),
        Row("rare earths", "希土類"),
        Row("myself", "俺様"),  # the first gloss explains
    ]
    assert Row("to eat", "たべる") in pairs
    assert list(edict_pairs(dictionary, [corpus], common_only=True)) == pairs[:-1]
    assert "はし" not in {row.right for row in pairs}, "two common words sound so"
    assert pairs[-1] == Row("dog house", "犬小屋"), "paddle is in one sentence, thou is said no more"


def test_the_command_writes_a_corpus(dictionary: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "edict.en-ja.tsv.xz"
    result = CliRunner().invoke(app, ["dictionary", str(dictionary), str(corpus), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(read_tsv(out)) == list(edict_pairs(dictionary, [corpus]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "edict cannot be read: .*No such file"),
        (b"\xff\xff", "edict cannot be read: .*euc_jp"),
        (f"{HEADER}\n食べる to eat\n".encode("euc_jp"), "edict, line 2: no headword with its senses between slashes"),
    ],
)
def test_what_is_no_dictionary_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "edict"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(entries(path))
