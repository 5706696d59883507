import codecs

import pytest
import srt
from hypothesis import example, given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.subtitles import subrip
from tests.service.documents.translating import Opened, translated

FILM = """1
00:00:01,000 --> 00:00:02,500
I never thought that
we would come

2
00:00:02,600 --> 00:00:04,000 X1:40 X2:600
back to <i>this</i> place.

7
00:00:05,000 --> 00:00:06,000
- Tom & Jerry: 1 < 3?
- Yes.

8
0:00:07.0 --> 0:00:08.0
{\\an8}<i>He said</i>

9
00:00:08,000 --> 00:00:09,000
<i>that it works.</i>

10
00:00:12,000 --> 00:00:13,000
♪ A song ♪
42
"""


def test_sentences_that_go_on_in_the_next_cue_are_read_whole() -> None:
    assert Opened(subrip.rewrite, FILM.encode()).texts == [
        "I never thought that we would come back to <i>this</i> place.",
        "- Tom &amp; Jerry: 1 &lt; 3?",
        "- Yes.",
        "<i>He said that it works.</i>",
        "♪ A song ♪",
        "42",
    ]


def test_cues_keep_their_numbers_times_places_and_tags() -> None:
    expected = "\n".join(line if "-->" in line else line.upper() for line in FILM.splitlines())
    expected = expected.replace("<I>", "<i>").replace("</I>", "</i>").replace("{\\AN8}", "{\\an8}") + "\n"
    assert translated(Opened(subrip.rewrite, FILM.encode())).decode() == expected


def test_a_translation_is_cut_in_proportion_and_tags_end_with_their_cue() -> None:
    contents = Opened(subrip.rewrite, FILM.encode())
    new = [*contents.texts]
    new[0] = "Ich hätte nie gedacht, dass wir <i>an diesen Ort zurückkommen</i> würden, nein, nie."
    new[3] = "Fertig."
    cues = [*srt.parse(contents.write(new).decode())]
    assert [cue.content for cue in cues[:2]] == [
        "Ich hätte nie gedacht,\ndass wir <i>an diesen Ort</i>",
        "<i>zurückkommen</i> würden, nein, nie.",
    ]
    assert [cue.content for cue in cues[3:5]] == ["{\\an8}Fertig.", ""]
    before = [*srt.parse(FILM)]
    assert [(cue.index, cue.start, cue.end) for cue in cues] == [(cue.index, cue.start, cue.end) for cue in before]


def cue(text: str) -> str:
    return f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<i>- Where to?\n- Home.</i>", "<i>- WHERE TO?</i>\n<i>- HOME.</i>"),
        ("<i>♪ I love you ♪\n♪ Every day ♪</i>", "<i>♪ I LOVE YOU ♪</i>\n<i>♪ EVERY DAY ♪</i>"),
        (
            '<font color="#ff0">- Yes.\n- No, I am <i>not.</i></font>',
            '<font color="#ff0">- YES.</font>\n<font color="#ff0">- NO, I AM <i>NOT.</i></font>',
        ),
        ("<i>- 1, 2.\n- Home.</i>", "<i>- 1, 2.</i>\n<i>- HOME.</i>"),
        ("<i>- 1, 2.\n- 3!</i>", "<i>- 1, 2.\n- 3!</i>"),
        ("- <i>Yes\n- No.\n\n2\n0:0:3 --> 0:0:4\n- Oh.", "- <i>YES</i>\n<i>- NO.</i>\n\n2\n0:0:3 --> 0:0:4\n- OH."),
    ],
)
def test_each_speaker_has_the_tags_around_all_of_them(before: str, after: str) -> None:
    assert translated(Opened(subrip.rewrite, cue(before).encode())).decode() == cue(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [("Hello\ndog", "Hund"), ("Hello\n{\\an8}dog", "Hund\n{\\an8}"), ("{\\an8}Hello\n{\\an8}dog", "{\\an8}Hund")],
)
def test_a_place_stays_without_words_enough(before: str, after: str) -> None:
    assert Opened(subrip.rewrite, cue(before).encode()).write(["Hund"]).decode() == cue(after)


@pytest.mark.parametrize(
    "apart",
    [
        "1\n00:00:01,000 --> 00:00:02,000\nThe first\n\n2\n00:00:05,000 --> 00:00:06,000\nhas a long pause.\n",
        "1\n00:00:01,000 --> 00:00:02,000\nThe end.\n\n2\n00:00:02,000 --> 00:00:03,000\nIt ends.\n",
        "1\n00:00:01,000 --> 00:00:02,000\nHe said\n\n2\n00:00:02,000 --> 00:00:03,000\n- No!\n",
        "1\n00:00:01,000 --> 00:00:02,000\n[music]\nAnd now.\n",
        "1\n00:00:01,000 --> 00:00:02,000\n犬は\n\n2\n00:00:02,000 --> 00:00:03,000\n走る。\n",
        "".join(f"{i}\n00:00:0{i},000 --> 00:00:0{i + 1},000\nno marks at all\n\n" for i in range(2)),
    ],
)
def test_cues_are_read_apart_where_nothing_tells_that_they_belong_together(apart: str) -> None:
    assert len(Opened(subrip.rewrite, apart.encode()).texts) == 2


def test_no_sentence_goes_on_for_ever() -> None:
    cues = [
        f"{i}\n00:00:{i:02},000 --> 00:00:{i + 1:02},000\nand so on{'.' * (i % 3 == 2 and i > 30)}\n" for i in range(50)
    ]
    assert max(text.count("and") for text in Opened(subrip.rewrite, "\n".join(cues).encode()).texts) <= 4


def test_the_words_of_a_sound_are_translated_without_its_brackets() -> None:
    data = cue("<i>[door\nopens]</i>\n(laughs)\n[a] b").encode()
    contents = Opened(subrip.rewrite, data)
    assert contents.texts == ["door opens", "laughs", "[a] b"]
    assert contents.write(contents.texts) == data
    assert contents.write(["Tür auf", "lacht", "b"]).decode() == cue("<i>[Tür\nauf]</i>\n(lacht)\nb")


LINES = st.sampled_from(
    [
        "1",
        "2",
        "00:00:01,000 --> 00:00:02,000",
        "0:1:1.5 -> 0:1:2,5 x",
        "a <i>b",
        "c</i>.",
        "- d &amp; e",
        "",
        " ",
        "{\\an8}f ",
    ]
)


@given(st.lists(LINES), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
@example(["00:00:01,000 --> 00:00:02,000"], "\n", "utf-16")
def test_without_a_translation_a_file_comes_out_byte_for_byte(lines: list[str], end: str, encoding: str) -> None:
    data = end.join(["1", "00:00:01,000 --> 00:00:02,000", "x", *lines]).encode(encoding)
    contents = Opened(subrip.rewrite, data)
    assert contents.write(contents.texts) == data
    assert all(text.strip() for text in contents.texts)


@given(st.lists(LINES), st.booleans())
def test_times_stay_whatever_the_translation(lines: list[str], backwards: bool) -> None:
    text = "\n".join(["1", "00:00:01,000 --> 00:00:02,000", "x", *lines])
    new = translated(Opened(subrip.rewrite, text.encode()), backwards).decode()
    assert [line for line in new.splitlines() if ">" in line and ":" in line] == [
        line for line in text.splitlines() if ">" in line and ":" in line
    ]


@pytest.mark.parametrize("data", [b"", b"Only a text.\n", b"WEBVTT\n", codecs.BOM_UTF8])
def test_a_file_without_cues_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(subrip.rewrite, data)


def test_a_file_made_to_take_long_does_not() -> None:
    for line in ("\n" * 10, "<i" * 10, "{\\an8" * 10, "-->" * 10, "</i>" * 10, '."' * 10):
        data = f"1\n00:00:01,000 --> 00:00:02,000\n{line * 20_000}x".encode()
        contents = Opened(subrip.rewrite, data)
        contents.write(["y " * 100 for _ in contents.texts])


def test_tags_that_nothing_ends_do_not_make_a_file_huge() -> None:
    data = cue("- <i>y\n" * 2_000).encode()
    assert len(translated(Opened(subrip.rewrite, data))) < 20 * len(data)


YOUTUBE = """0:00:00.599,0:00:04.160
>> ALICE: I never thought[br]that
we would come

0:00:04.160,0:00:06.770
back here.

00:00:07.000,00:00:08.000
[music]
"""


def test_cues_of_youtube_keep_their_times_and_line_breaks() -> None:
    contents = Opened(subrip.rewrite_youtube, YOUTUBE.encode())
    assert contents.texts == ["&gt;&gt; ALICE: I never thought that we would come back here.", "music"]
    expected = YOUTUBE.upper().replace("[BR]", "[br]")
    assert translated(contents).decode() == expected
    assert contents.write(contents.texts) == YOUTUBE.encode()
    assert contents.write(["Hund", "Musik"]).decode() == (
        "0:00:00.599,0:00:04.160\nHund\n\n0:00:04.160,0:00:06.770\n\n\n00:00:07.000,00:00:08.000\n[Musik]\n"
    )


@given(
    st.lists(st.sampled_from(["0:00:03.000,0:00:04.000", "a[br]b", "[br]", "c[br]", "", "1", "- d.", "<i>e"])),
    st.sampled_from(["\n", "\r\n"]),
)
def test_without_a_translation_a_file_of_youtube_comes_out_byte_for_byte(lines: list[str], end: str) -> None:
    data = end.join(["0:00:01.000,0:00:02.000", *lines]).encode()
    contents = Opened(subrip.rewrite_youtube, data)
    assert contents.write(contents.texts) == data
    assert all(text.strip() for text in contents.texts)
    times = [line for line in lines if line.startswith("0:")]
    assert [line for line in translated(contents).decode().splitlines() if line.startswith("0:")][1:] == times


def test_a_file_without_cues_of_youtube_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="no line such as"):
        Opened(subrip.rewrite_youtube, FILM.encode())
