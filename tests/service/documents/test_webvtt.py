import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.subtitles import webvtt
from tests.service.documents.translating import Opened, translated

FILM = """WEBVTT - A film
Kind: captions

STYLE
::cue(.y) { color: yellow }

REGION
id:fred

NOTE a remark
00:00.000 --> 00:01.000

intro
00:01.000 --> 00:02.500 align:start line:0
<v Roger Bingham>I never thought that
we would <c.y.b>come</c></v>

00:00:02.600 --> 01:00:04.000
<v Roger Bingham>back to <i>this <01:00:03.000>place &amp; that.

00:05.000 --> 00:06.000
- Tom &lt; Jerry: 1 &gt; 3?
<v Mary>Well yes.
"""


def test_only_the_text_of_cues_is_read_and_sentences_whole() -> None:
    assert Opened(webvtt.rewrite, FILM.encode()).texts == [
        "I never thought that we would <x0>come</x0> back to <x1>this place &amp; that.</x1>",
        "- Tom &lt; Jerry: 1 &gt; 3?",
        "Well yes.",
    ]


def test_only_the_words_change() -> None:
    expected = FILM.replace("<01:00:03.000>", "").replace("that.", "that.</i>")
    for words in ("I never thought that", "we would ", ">come<", "back to ", "this place", " that.", " Tom ", " Jerry"):
        expected = expected.replace(words, words.upper())
    expected = expected.replace("Well yes", "WELL YES")
    assert translated(Opened(webvtt.rewrite, FILM.encode())).decode() == expected


def cue(text: str) -> str:
    return f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<i>a\nb</i>", "<i>A\nB</i>"),
        ("<c>a</c> <c>b</c>", "A B"),
        ("<00:01.100>a <00:01.200>b", "A B"),
        ("<ruby>a<rt>b</rt></ruby> c", "A C"),
        ("<v A>a</v> <v B>b</v>", "<v A>A</v> <v B>B</v>"),
        ("<lang fr>a</lang>&nbsp;b", "<lang fr>A</lang>&nbsp;B"),
        ("a < b & c", "A &lt; B &amp; C"),
        (">> a", ">> A"),
        ("a</i> </b>b", "A B"),
        ("<b><i>a</b> b</i>", "<b><i>A B</i></b>"),
    ],
)
def test_tags_go_with_their_words(before: str, after: str) -> None:
    assert translated(Opened(webvtt.rewrite, cue(before).encode())).decode() == cue(after)


def test_a_line_of_spaces_ends_no_cue() -> None:
    assert translated(Opened(webvtt.rewrite, cue(" \na<00:01.100><c> b</c>").encode())).decode() == cue(" \nA B")


def test_the_header_names_the_language_of_the_translation() -> None:
    data = cue("a").replace("VTT", "VTT\nLanguage: en").encode()
    contents = Opened(webvtt.rewrite, data, ReadOptions(source="en", target="fr"))
    assert translated(contents) == data.replace(b": en", b": fr").replace(b"a\n", b"A\n")
    assert contents.write(contents.texts) == data


def test_a_tag_ends_with_its_cue() -> None:
    data = (cue("<i>a") + "\n00:02.000 --> 00:03.000\nb.\n").encode()
    assert Opened(webvtt.rewrite, data).texts == ["<x0>a</x0> b."]


TIMINGS = ["00:01.000 --> 00:02.000", "1:00:00.000 --> 1:00:01.000 line:0"]
LINES = st.sampled_from(
    ["NOTE", "1", "", *TIMINGS, "a <i>b", "c</i></v>.", "<v T>d", "<c.x>e</c", "<", "<rt>", "&lt; &am", "<v A><v B>f"]
)


@given(st.lists(LINES), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_times_stay_and_without_a_translation_every_byte(lines: list[str], end: str, backwards: bool) -> None:
    text = end.join(["WEBVTT", "", "00:01.000 --> 00:02.000", "x", *lines])
    contents = Opened(webvtt.rewrite, text.encode())
    assert contents.write(contents.texts) == text.encode()
    assert all(text.strip() for text in contents.texts)
    new = translated(contents, backwards).decode()
    assert [line for line in new.splitlines() if "-->" in line] == [line for line in text.splitlines() if "-->" in line]


@pytest.mark.parametrize("data", [b"", b"WEBVTT\n", b"WEBVTT\n\nNOTE\n00:01.000 --> 00:02.000\nx\n", codecs.BOM_UTF8])
def test_a_file_without_cues_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="no line such as"):
        Opened(webvtt.rewrite, data)


def test_a_file_made_to_take_long_does_not() -> None:
    for line in ("<i", "<i>", "</b>", "<v A>", "</v>", " ", "<rt>", "<1:", "&", "-->", "<v A></v>", "\n<i>x"):
        data = (cue("<b>x") + "y" + line * 20_000 + "x").encode()
        data += (cue(line * 20_000 + "x")).encode()
        contents = Opened(webvtt.rewrite, data)
        assert len(contents.write(["y " * 100 for _ in contents.texts])) < 20 * len(data)
