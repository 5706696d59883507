import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidGlossary
from service.glossaries import entries
from service.glossaries.entries import MAX_ENTRIES, MAX_TERM_CHARACTERS, check_entries, format_tsv, parse_csv, parse_tsv

TERMS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@given(st.dictionaries(TERMS, TERMS, min_size=1))
def test_entries_written_as_tsv_are_read_again(given: dict[str, str]) -> None:
    assert parse_tsv(format_tsv(given)) == given
    assert check_entries(given) == given


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog\tchien\ncat\tchat", {"dog": "chien", "cat": "chat"}),
        ("\ufeffdog \t chien\r\n\r\ncat\tchat\r\n", {"dog": "chien", "cat": "chat"}),
        ('a "b"\tc', {'a "b"': "c"}),
    ],
)
def test_tsv(text: str, expected: dict[str, str]) -> None:
    assert parse_tsv(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('dog,chien\n"a, b","c ""d"""\n', {"dog": "chien", "a, b": 'c "d"'}),
        ("dog;chien\r\ncat, big;chat", {"dog": "chien", "cat, big": "chat"}),
        ('"dog, small";chien\ncat;"chat, gros"', {"dog, small": "chien", "cat": "chat, gros"}),
        ("dog\tchien\ncat\tchat, gros", {"dog": "chien", "cat": "chat, gros"}),
        ("dog,chien,\ncat,chat,,,,", {"dog": "chien", "cat": "chat"}),
        ("\ufeffdog,chien,en,fr\r\n\r\ncat,chat,en,fr", {"dog": "chien", "cat": "chat"}),
    ],
)
def test_csv(text: str, expected: dict[str, str]) -> None:
    assert parse_csv(text) == expected


@pytest.mark.parametrize(
    ("read", "text", "part"),
    [
        (parse_tsv, "", "empty"),
        (parse_tsv, " \n", "empty"),
        (parse_tsv, "a\tb\nc", "line 2 .* 2 columns .* 1$"),
        (parse_tsv, "a\tb\tc", "line 1 .* 2 columns .* 3$"),
        (parse_tsv, "a\tb\n\n \tc", "line 3: the term .*empty"),
        (parse_tsv, "a\t ", "line 1: the translation .*empty"),
        (parse_tsv, "a\tb\na\tc", "line 2 .* 'a'$"),
        (parse_tsv, "a\0\tb", "line 1: the term .*character"),
        (parse_tsv, f"a\t{'b' * (MAX_TERM_CHARACTERS + 1)}", "line 1: the translation .* 201 .* 200$"),
        (parse_csv, "a,b,c", "line 1 .* 2 columns .* 3$"),
        (parse_csv, 'a,b\n"c,d', "line 2 .* CSV: unexpected end of data"),
        (parse_csv, '"a\nb",c', "line 2: the term .*line end"),
    ],
)
def test_invalid_entries_are_refused_with_their_line(read: object, text: str, part: str) -> None:
    with pytest.raises(InvalidGlossary, match=f"^`entries` .*{part}"):
        read(text)  # type: ignore[operator]


def test_a_dictionary_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_ENTRIES == 10_000
    monkeypatch.setattr(entries, "MAX_ENTRIES", 2)
    assert len(parse_tsv("a\tb\nc\td")) == 2
    with pytest.raises(InvalidGlossary, match="at most 2 "):
        parse_tsv("a\tb\nc\td\ne\tf")
