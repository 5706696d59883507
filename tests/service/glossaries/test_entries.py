import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import UnprocessableRequest
from service.glossaries import entries
from service.glossaries.entries import MOST_CHARACTERS, MOST_ENTRIES, as_tsv, checked, of_csv, of_tsv

TERMS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@given(st.dictionaries(TERMS, TERMS, min_size=1))
def test_what_is_written_as_tsv_is_read_again(given: dict[str, str]) -> None:
    assert of_tsv(as_tsv(given)) == given
    assert checked(given.items()) == given


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog\tchien\ncat\tchat", {"dog": "chien", "cat": "chat"}),
        ("\ufeffdog \t chien\r\n\r\ncat\tchat\r\n", {"dog": "chien", "cat": "chat"}),
        ('a "b"\tc', {'a "b"': "c"}),
    ],
)
def test_tsv(text: str, expected: dict[str, str]) -> None:
    assert of_tsv(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('dog,chien\n"a, b","c ""d"""\n', {"dog": "chien", "a, b": 'c "d"'}),
        ("\ufeffdog,chien,en,fr\r\n\r\ncat,chat,en,fr", {"dog": "chien", "cat": "chat"}),
    ],
)
def test_csv(text: str, expected: dict[str, str]) -> None:
    assert of_csv(text) == expected


@pytest.mark.parametrize(
    ("read", "text", "detail"),
    [
        (of_tsv, "", "entries: there are none"),
        (of_tsv, " \n", "entries: there are none"),
        (of_tsv, "a\tb\nc", "entries: line 2 has 1 columns, a term and its translation are 2"),
        (of_tsv, "a\tb\tc", "entries: line 1 has 3 columns, a term and its translation are 2"),
        (of_tsv, "a\tb\n\n \tc", "entries: line 3 has a term that is empty"),
        (of_tsv, "a\t ", "entries: line 1 has a translation that is empty"),
        (of_tsv, "a\tb\na\tc", "entries: line 2 has a term for the second time: 'a'"),
        (of_tsv, "a\0\tb", "entries: line 1 has a term with a tab, a line end or another character that is no text"),
        (of_tsv, f"a\t{'b' * (MOST_CHARACTERS + 1)}", "entries: line 1 has a translation of 201 characters, the limit"),
        (of_csv, "a,b,c", "entries: line 1 has 3 columns, a term and its translation are 2"),
        (of_csv, 'a,b\n"c,d', "entries: line 2 is no CSV: unexpected end of data"),
        (of_csv, '"a\nb",c', "entries: line 2 has a term with a tab, a line end"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_line(read: object, text: str, detail: str) -> None:
    with pytest.raises(UnprocessableRequest) as refused:
        read(text)  # type: ignore[operator]
    assert str(refused.value).startswith(detail)


def test_a_dictionary_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_ENTRIES == 10_000
    monkeypatch.setattr(entries, "MOST_ENTRIES", 2)
    assert len(of_tsv("a\tb\nc\td")) == 2
    with pytest.raises(UnprocessableRequest, match="there are more than 2, which is the limit"):
        of_tsv("a\tb\nc\td\ne\tf")
