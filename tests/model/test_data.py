import lzma
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from model.data import DataError, Row, load_rows, read_tsv
from model.recipe import DataSource, HubSource


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.xz"])
def test_rows_are_read_plain_and_compressed(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "A dog.\tUn chien.\nHi!\tSalut\u202f!\n".encode())
    assert list(read_tsv(path)) == [Row("A dog.", "Un chien."), Row("Hi!", "Salut\u202f!")]


def test_the_mark_with_which_editors_begin_a_file_is_no_text(tmp_path: Path) -> None:
    assert list(read_tsv(write(tmp_path / "a.tsv", b"\xef\xbb\xbfA dog.\tUn chien.\n"))) == [Row("A dog.", "Un chien.")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a\.tsv: empty file"),
        (b"a\tb\nno tab\n", r"a\.tsv, line 2: 1 columns instead of 2"),
        (b"a\tb\tc\n", r"a\.tsv, line 1: 3 columns instead of 2"),
        (b"a\tb\na\t \n", r"a\.tsv, line 2: column 2 is empty"),
        (b"\tb\n", r"a\.tsv, line 1: column 1 is empty"),
        (b"a\tb\na\t\xff\n", r"a\.tsv, line 2: not UTF-8 at byte 2"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_tsv(write(tmp_path / "a.tsv", content)))


def test_two_columns_are_chosen_by_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"en\tfr\tde\ndog\tchien\tHund\n")
    source = DataSource(file="a.tsv", licence="", columns=("en", "de"), swap=True)

    assert load_rows(source, tmp_path) == [Row("Hund", "dog")]
    with pytest.raises(DataError, match=r"a\.tsv: no column ja; its first line names en, fr, de"):
        list(read_tsv(path, ("en", "ja")))
    write(path, b"en\tfr\tde\ndog\tchien\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: 2 columns instead of 3"):
        list(read_tsv(path, ("en", "fr")))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.tsv: no such file"):
        list(read_tsv(tmp_path / "absent.tsv"))


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.xz"
    path.write_bytes(lzma.compress(b"a\tb\n" * 1000)[:-20])
    with pytest.raises(DataError, match=r"a\.tsv\.xz: damaged after line \d+"):
        list(read_tsv(path))


def test_labels_get_the_models_names_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    source = DataSource(file="a.tsv", licence="", labels={"pos": "positive", "neg": "negative"})
    write(tmp_path / "a.tsv", b"pos\tGood.\nneg\tBad.\n")
    assert load_rows(source, tmp_path) == [Row("positive", "Good."), Row("negative", "Bad.")]
    write(tmp_path / "a.tsv", b"pos\tGood.\nmixed\tSo so.\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: label 'mixed' must be one of pos, neg"):
        load_rows(source, tmp_path)


def test_a_label_that_stands_for_several_gives_a_row_for_each(tmp_path: Path) -> None:
    labels = {"pos": "positive", "any": ("negative", "positive")}
    write(tmp_path / "a.tsv", b"any\tThe shop opens at nine.\npos\tGood.\n")
    assert load_rows(DataSource(file="a.tsv", licence="", labels=labels), tmp_path) == [
        Row("negative", "The shop opens at nine."),
        Row("positive", "The shop opens at nine."),
        Row("positive", "Good."),
    ]


def test_corpora_of_our_own_need_no_data_directory(tmp_path: Path) -> None:
    source = DataSource(file="remarks.tsv", own=True, licence="MIT")
    rows = load_rows(source, None)
    assert rows == load_rows(source, tmp_path)
    assert {row.left for row in rows} == {"neg", "pos", "any"}


def test_swapped_files_have_their_source_second(tmp_path: Path) -> None:
    (tmp_path / "a.en-fr.tsv").write_text("A dog.\tUn chien.\n", encoding="utf-8")
    source = DataSource(file="a.en-fr.tsv", licence="", swap=True)
    assert load_rows(source, tmp_path) == [Row("Un chien.", "A dog.")]


class FakeHub(SimpleNamespace):
    """Stand-in for `datasets`, which would use the network; it records its arguments."""

    def __init__(self, records: list[dict[str, Any]] | Exception) -> None:
        super().__init__(records=records, asked=[])

    def load_dataset(self, path: str, name: str | None, split: str) -> list[dict[str, Any]]:
        self.asked.append((path, name, split))
        if isinstance(self.records, Exception):
            raise self.records
        return self.records


def hub_source(**columns: Any) -> DataSource:
    return DataSource(
        file="a.tsv", licence="", hub=HubSource(path="owner/corpus", name="en-fr", split="train", **columns)
    )


def test_a_hub_corpus_gives_the_rows_of_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub([{"translation": {"en": "A  dog.", "fr": "Un chien.\n"}}])
    monkeypatch.setitem(sys.modules, "datasets", hub)  # type: ignore[arg-type]
    assert load_rows(hub_source(columns=("translation.en", "translation.fr")), None) == [Row("A dog.", "Un chien.")]
    assert hub.asked == [("owner/corpus", "en-fr", "train")]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "hub corpus owner/corpus: empty split train"),
        ([{"text": "a"}], "hub corpus owner/corpus: no column label"),
        (ConnectionError("no network"), "hub corpus owner/corpus: no network"),
    ],
)
def test_an_unusable_hub_corpus_is_named(
    monkeypatch: pytest.MonkeyPatch, records: list[dict[str, Any]] | Exception, message: str
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", FakeHub(records))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        load_rows(hub_source(columns=("label", "text")), None)


@pytest.mark.slow
def test_the_datasets_library_reads_a_local_corpus_as_it_would_a_hubs(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "train.jsonl").write_text('{"en": "A dog.", "fr": "Un chien."}\n')
    hub = HubSource(path=str(tmp_path), split="train", columns=("en", "fr"))
    assert load_rows(DataSource(file="a.tsv", licence="", hub=hub), None) == [Row("A dog.", "Un chien.")]
