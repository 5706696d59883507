import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.subtitles import substation
from tests.service.documents.translating import Opened, translated

HEAD = """[Script Info]
; Dialogue: no event
Title: A film

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,a note
"""


def event(text: str, start: str = "0:00:01.00", end: str = "0:00:02.00", name: str = "") -> str:
    return f"Dialogue: 0,{start},{end},Default,{name},0,0,0,,{text}\n"


FILM = (
    HEAD
    + event(r"{\an8\i1}I never thought that\Nwe would come", "0:00:01.00", "0:00:02.50", "Tom")
    + event(r"back {\b1}to this{\b0} red place.", "0:00:02.60", "0:00:04.00", "Tom")
    + event(r"{\p1}m 0 0 l 100 0{\p0}")
    + event("Here I", "0:00:06.00", "0:00:07.00", "Tom")
    + event("am.", "0:00:07.00", "0:00:08.00", "Mary")
)


def test_sentences_are_read_whole_and_speakers_apart() -> None:
    assert Opened(substation.rewrite, FILM.encode()).texts == [
        "I never thought that we would come back <x0>to this</x0> red place.",
        "Here I",
        "am.",
    ]


def test_only_the_words_of_dialogue_change() -> None:
    expected = FILM
    for words in ("I never thought that", "we would come", "back ", "to this", " red place", "Here I", ",am"):
        expected = expected.replace(words, words.upper())
    assert translated(Opened(substation.rewrite, FILM.encode())).decode() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"{\i1}a{\i0}, b", r"{\i1}A{\i0}, B"),
        (r"a {\i1}bbbb\Ncccc{\i0} d", r"A {\i1}BBBB\NCCCC{\i0} D"),
        (r"a{\c&H0000FF&} b {\r}c", r"A {\c&H0000FF&}B{\c} C"),
        (r"a {\rAlt\b1}b{\r} c", r"A {\rAlt\b1}B{\r} C"),
        (r"{\fs20}a {\fs30\fnA B}b {\fs20\fn}c", r"{\fs20}A {\fnA B\fs30}B{\fn\fs20} C"),
        (r"{\k20}a{\k30}b {\kf9}c{\k1}", r"{\k20}AB C{\k1}"),
        (r"a{\pos(1,2)}b {note}c", r"{\pos(1,2)}{note}AB C"),
        (r"{\t(0,1,\fs9)\clip(1,2)}a {\t(0,1,\i1)}b", r"{\t(0,1,\fs9)\clip(1,2)}A B"),
        (r"a\hb & c < d {e", r"A\hB & C < D {E"),
        (r"\ha \Nb\n", r"\hA \NB\n"),
        (
            r"{\p1}m 0 0 l 9 0{\p0}a {\i1}b{\i0}\N{\p1\c&H1&}m 1 1",
            r"{\p1}m 0 0 l 9 0{\p0}A {\i1}B{\i0}\N{\p1\c&H1&}m 1 1",
        ),
        (r"a {\i1}b{\p2}m 0 0{\c&H1&}l 9 0{\p0\i0}", r"A {\i1}B{\p2}m 0 0{\c&H1&}l 9 0{\p0\i0}"),
        (r"a{\p1}m 0 0{\p0} b", r"a{\p1}m 0 0{\p0} b"),
        (r"{\p1\p0}a", r"{\p1\p0}A"),
    ],
)
def test_overrides_go_with_their_words(before: str, after: str) -> None:
    assert translated(Opened(substation.rewrite, (HEAD + event(before)).encode())).decode() == HEAD + event(after)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"{\i1}a b{\i0}, c", "<x0>a b</x0>, c"),
        (r"{\i1}a\Nb{\i0} c", "<x0>a b</x0> c"),
        (r"{\b1\i1}a{\i0} b\Nc", "<x0>a</x0> b c"),
        (r"{\fs20}a {\fs30}b{\fs20}\Nc", "a <x0>b</x0> c"),
        (r"{\i1}a\Nb{\i0}", "a b"),
    ],
)
def test_an_element_is_around_the_words_for_which_an_override_is_on(text: str, read: str) -> None:
    assert Opened(substation.rewrite, (HEAD + event(text)).encode()).texts == [read]


def test_words_that_change_places_keep_their_style() -> None:
    data = (HEAD + event(r"{\b1}a {\i1}b{\i0}\N{\an8}c {\i1}d{\i0}")).encode()
    new = translated(Opened(substation.rewrite, data), backwards=True).decode()
    assert new == HEAD + event(r"{\b1}{\i1}D{\i0} C\N{\an8}{\i1}B{\i0} A")


def test_too_few_words_lose_no_place_and_no_style_of_the_next_line() -> None:
    data = (HEAD + event(r"- a b\N{\an8}c {\i1}d\N- {\b1}e")).encode()
    new = Opened(substation.rewrite, data).write(["X", "<x0>-</x0> <x1>E</x1>"]).decode()
    assert new == HEAD + event(r"X{\an8}{\i1}\N-{\i0} {\b1\i1}E")


def test_fields_are_where_the_file_says() -> None:
    data = b"[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,a, b\n"
    assert Opened(substation.rewrite, data).texts == ["a, b"]
    data = b"[Events]\nDialogue: Marked=0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,a, b\n"
    assert Opened(substation.rewrite, data).texts == ["a, b"]


PIECES = st.lists(
    st.sampled_from(
        ["a", " b.", r"\N", r"\h", "{", "}", r"{\i1}", r"{\i0}", r"{\r}", r"{\k1}", r"{\fs9\pos(1)}", "{x}"]
    )
)


@given(st.lists(PIECES), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_fields_stay_and_without_a_translation_every_byte(texts: list[list[str]], end: str, encoding: str) -> None:
    text = (HEAD + "".join(event("".join(pieces)) for pieces in [["x"], *texts])).replace("\n", end)
    contents = Opened(substation.rewrite, text.encode(encoding))
    assert contents.write(contents.texts) == text.encode(encoding)
    assert all(text.strip() for text in contents.texts)
    new = translated(contents, backwards=True).decode(encoding)
    assert [line.split(",")[:9] for line in new.splitlines()] == [line.split(",")[:9] for line in text.splitlines()]


@pytest.mark.parametrize("data", [b"", HEAD.encode(), b"Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,x\n"])
def test_a_file_without_dialogue_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="no line such as"):
        Opened(substation.rewrite, data)


def test_a_file_made_to_take_long_does_not() -> None:
    for text in (
        r"{\i",
        r"{\i1}a{\i0}",
        r"a{\fs",
        r"{\t((",
        r"\N",
        r"\Na{\fs1}",
        r"\h",
        "{",
        r"{\t(\t(",
        ",",
        " ",
        r"a{\c",
        r"{\p1}m",
        r"{\p1",
    ):
        data = (HEAD + event(text * 20_000 + "x")).encode()
        contents = Opened(substation.rewrite, data)
        assert len(contents.write(["y " * 100 for _ in contents.texts])) < 20 * len(data)
