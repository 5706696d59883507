import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import ReadOptions
from service.documents.tables import table_cells
from service.documents.tables.table import rewrite_csv, rewrite_tsv
from tests.service.documents.translating import Opened, in_capitals, translated

FRENCH = ReadOptions(source="en", target="fr")


def columns(*names: str, only_missing: bool = False) -> ReadOptions:
    return ReadOptions(source="en", target="fr", columns=names, only_missing=only_missing)


TABLE = """\ufeffid;"text";note\r
7;a dog;"a ""big""; dog"\r
\r
8;"two\r
lines";\r
9;=A1;"5" ;x\r
"""


def test_cells_are_translated_and_all_else_stays() -> None:
    expected = TABLE.replace("a dog", "A DOG").replace('a ""big""; dog', 'A ""BIG""; DOG').replace("two", "TWO")
    expected = expected.replace("lines", "LINES").replace(";x", ";X")
    assert translated(Opened(rewrite_csv, TABLE.encode(), FRENCH)).decode() == expected


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        (["text"], "id,text\na,b\n", "id,text\na,B\n"),
        (["text", "id"], "id,text\na,b\nc\n", "id,text\nA,B\nC\n"),
        (["en=fr"], "fr,en\na,b\n", "fr,en\nB,b\n"),
        (["en=fr"], "en,x\na,b\n\nc\n", "en,x,fr\na,b,A\n\nc,,C\n"),
        (["en=fr"], 'en\n"a, b"', 'en,fr\n"a, b","A, B"'),
        (["en = fr", "en=de"], "en,z\na,b,c,d\n", "en,z,,,fr,de\na,b,c,d,A,A\n"),
        (["a=b"], "a=b,c\nd,e\n", "a=b,c\nD,e\n"),
        ([], "key,en,fr\na,b,c\n", "key,en,fr\na,b,B\n"),
        ([], "key,EN-us\na,b\n", "key,EN-us,fr\na,b,B\n"),
        ([], "key,English,French\na,b,\n", "key,English,French\na,b,B\n"),
        ([], "key,English\na,b\n", "key,English,French\na,b,B\n"),
        ([], ",text\n0,a\n", ",text\n0,A\n"),
        ([], "A dog.,b\nc,d\n", "A DOG.,B\nC,D\n"),
        ([], "text\nc, d\ne\nf\n", "text\nC, D\nE\nF\n"),
        ([], "sep=|\na|b\nc|d,e\n", "sep=|\na|b\nC|D,E\n"),
    ],
)
def test_columns_are_chosen_by_name(wanted: list[str], before: str, after: str) -> None:
    assert translated(Opened(rewrite_csv, before.encode(), columns(*wanted))).decode() == after


def test_filled_cells_stay_if_only_missing_ones_are_asked_for() -> None:
    data = b"en,fr\na,x\nb, \nc\n"
    assert translated(Opened(rewrite_csv, data, columns("en=fr", only_missing=True))) == b"en,fr\na,x\nb,B\nc,C\n"
    assert translated(Opened(rewrite_csv, data, columns("en=fr"))) == b"en,fr\na,A\nb,B\nc,C\n"


def test_a_column_that_does_not_exist_is_told_with_those_that_do() -> None:
    for wanted in ("txt", "txt=fr"):
        with pytest.raises(InvalidDocument, match="no column txt; available: id, text"):
            Opened(rewrite_csv, b"id,text\n1,a\n", columns(wanted))


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_no_translation_begins_a_formula(sign: str) -> None:
    contents = Opened(rewrite_csv, f"text\na\n{sign}1 b\n".encode(), columns("text"))
    written = contents.write([f"{sign}A" for _ in contents.texts]).decode()
    assert written == f"text\n {sign}A\n" + ("=1 b\n" if sign == "=" else f"{sign}A\n")


def test_a_translation_is_quoted_if_it_must_be() -> None:
    contents = Opened(rewrite_csv, b"a,b\nc,d\n", FRENCH)
    assert contents.write(['x, "y"', "z\n"]) == b'a,b\n"x, ""y""","z\n"\n'
    assert Opened(rewrite_tsv, b'a\tb\nc\t5" d\n', FRENCH).write(["x, y", '5" z']) == b'a\tb\nx, y\t5" z\n'


CELLS = st.text(st.characters(exclude_categories=["C"]) | st.sampled_from(',;"\n\t='), max_size=8)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=3), min_size=2, max_size=5),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
@example([["", "\t"], ["", "", "\t"], ["", "", "\t"]], "|", "\n", "utf-8")
def test_files_of_csv_are_read_and_vice_versa(rows: list[list[str]], mark: str, end: str, encoding: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=mark, lineterminator=end).writerows([["key", "en"], *rows])
    data = file.getvalue().encode(encoding)
    contents = Opened(rewrite_tsv if mark == "\t" else rewrite_csv, data, columns("en"))
    assert contents.write(contents.texts) == data
    written = csv.reader(io.StringIO(translated(contents).decode(encoding), newline=""), delimiter=mark)
    for [_, before, *_], [_, after, *_] in zip(rows, [*written][1:], strict=True):
        assert after == (before if before.startswith("=") else in_capitals(before, "text"))


def test_a_table_that_is_too_large_or_would_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"en" + b"\t" * 1_000 + b"fr" + b"\na" * 1_001
    for wanted in ("en=fr", "en=de"):
        with pytest.raises(TooLarge, match="would add 100"):
            Opened(rewrite_tsv, data, columns(wanted))
    monkeypatch.setattr(table_cells, "MAX_CELLS", 2_000)
    with pytest.raises(TooLarge, match="more than 2000 cells"):
        Opened(rewrite_tsv, data, FRENCH)


@pytest.mark.parametrize("part", ['"a,', 'a"', '""', '"\n', ",", "\n", '"a"b,', "ab,\n", ",aa-Bb"])
def test_a_large_file_is_read_and_written_in_time(part: str) -> None:
    data = "a" + part * (60_000 // len(part))
    contents = Opened(rewrite_csv, data.encode(), FRENCH)
    assert contents.write([f"{text}x" for text in contents.texts])


def test_a_file_without_a_cell_stays() -> None:
    assert Opened(rewrite_csv, b"", FRENCH).write([]) == b""
