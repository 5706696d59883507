"""Files of text: plain text, HTML, Markdown, subtitles and tables."""

from random import Random

from tests.fuzz.documents import ALLOWED, grown, mutate_document, nested, read_document, seed
from tests.fuzz.mutation import mutate_lines, mutate_xml
from tests.fuzz.target import MutateBytes, Target
from tests.service.documents import test_html, test_subrip, test_substation, test_table, test_webvtt

MARKDOWN = """---
title: a
---
# Title
A [link][a] and **bold** `code`.

> - a list
>   1. [ ] task

| a | b\\|c |
|---|---|
| *d* | e |

[a]: <http://a.b> "t"
"""
TEXT = "One sentence. Another one!\r\n\r\n- an entry\r\n\tTwo\tcells\r\n犬が走る。"


def _seeds() -> list[bytes]:
    return [
        seed("txt fr signs", TEXT),
        seed("txt ja", "\ufeff".encode("utf-16") + TEXT.encode("utf-16-le")),
        seed("html fr", test_html.PAGE),
        seed("html fr backwards", '<meta charset="shift_jis"><p title="a b">one <b>two</b></p>'),
        seed("html fr signs", '<?xml version="1.0" encoding="koi8-r"?><p lang="en">a <i>b</i><br/>c'),
        seed("md fr signs", MARKDOWN),
        seed("srt fr signs", test_subrip.FILM),
        seed("srt ja backwards", test_subrip.FILM),
        seed("sbv fr", test_subrip.YOUTUBE),
        seed("vtt fr signs", test_webvtt.FILM),
        seed("ass fr", test_substation.FILM),
        seed("csv fr signs", test_table.TABLE),
        seed("csv fr column=text missing", "id,text,fr\n1,a dog,\n2,\"b, c\",x\n"),
        seed("csv fr column=en=fr", "en;note\na dog;n\n"),
        seed("tsv fr", "en\tfr\na dog\t\n"),
    ]  # fmt: skip


def _mutate_file(file: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    is_xml = file.count(b"<") > 3
    return (mutate_xml if is_xml and random.random() < 0.5 else mutate_lines)(file, random, mutate_bytes)


CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
ASS = (
    "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n",
    "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,",
)
GROWN = {
    "text lines": grown("txt", "", "One sentence. "),
    "text of one word": grown("txt", "", "a"),
    "text of line ends": grown("txt", "", "\r\n"),
    "text of blanks": grown("txt", "", " "),
    "html paragraphs": grown("html", "", "<p>a dog</p>"),
    "html open": grown("html", "", "<b>a"),
    "html nested": nested("html", "", "<b>", "a", "</b>"),
    "html nested blocks": nested("html", "", "<div>", "a", "</div>"),
    "html images": grown("html", "<p>a", "<img alt='a dog'>", "b</p>"),
    "html one tag": grown("html", "<p ", "title='a dog' ", ">a</p>"),
    "html languages": grown("html", "", "<p lang=en>a"),
    "md blocks": grown("md", "", "A dog.\n\n"),
    "md links": grown("md", "[a]: b\n\n", "[a] "),
    "md definitions": grown("md", "", "[a§]: b\n"),
    "md labels": grown("md", "[a]: b\n\n", "[a\\"),
    "md quotes": grown("md", "", "> "),
    "md lists": grown("md", "", "- "),
    "md list of lines": grown("md", "", "- a\n"),
    "md deeper lists": lambda size: b"md ru\n" + b"".join(b" " * i + b"- a\n" for i in range(int((2 * size) ** 0.5))),
    "md front matter": grown("md", "---\na: b\n", "c: d\n"),
    "md front matter of comments": grown("md", "---\n", "# a\n"),
    "md table": grown("md", "| a |\n|---|\n", "| b |\n"),
    "md row": grown("md", "| a |\n|---|\n", "| b "),
    "md columns": lambda size: b"md ru\n" + b"|a" * (size // 6) + b"|\n" + b"|-" * (size // 6) + b"|\n" + b"|b" * (size // 6) + b"|\n",
    "srt cues": grown("srt", "", CUE + "a dog\n\n"),
    "srt lines": grown("srt", CUE, "a dog\n"),
    "srt one line": grown("srt", CUE, "a dog "),
    "srt speeches": grown("srt", CUE, "- a dog\n"),
    "srt tags": grown("srt", CUE, "<i>a "),
    "srt lines with tags": grown("srt", CUE, "<i>a\n"),
    "srt pairs": grown("srt", CUE, "<i>a</i> "),
    "srt nested": nested("srt", CUE, "<i>", "a", "</i>"),
    "srt places": grown("srt", CUE, "{\\an8}"),
    "srt braces": grown("srt", CUE, "{\\"),
    "srt less": grown("srt", CUE, "<"),
    "srt brackets": grown("srt", CUE, "[a "),
    "srt tags in brackets": grown("srt", CUE, "<i>["),
    "srt blank speeches": grown("srt", CUE, "- <b>"),
    "srt lines of tags in cues": grown("srt", "", CUE + "<i>a\n<b>b\n"),
    "sbv breaks": grown("sbv", "0:00:01.000,0:00:02.000\n", "a[br]"),
    "vtt cues": grown("vtt", "WEBVTT\n\n", "00:01.000 --> 00:02.000\na dog\n\n"),
    "vtt classes": grown("vtt", VTT, "<c.a§>a"),
    "vtt lines of classes": grown("vtt", VTT, "<c.a§>a\n"),
    "vtt voices": grown("vtt", VTT, "<v Anna>a\n"),
    "vtt voices in a line": grown("vtt", VTT, "<v Anna>a "),
    "vtt times": grown("vtt", VTT, "<00:01.000>a "),
    "vtt readings": grown("vtt", VTT, "<ruby>a<rt>b</rt></ruby>"),
    "vtt open readings": grown("vtt", VTT, "<rt "),
    "vtt header": grown("vtt", "WEBVTT\n", "Language: en\n", "\n00:01.000 --> 00:02.000\na"),
    "vtt arrows": grown("vtt", VTT, "--> \n"),
    "ass events": grown("ass", ASS[0], ASS[1] + "a dog\n"),
    "ass lines": grown("ass", ASS[0] + ASS[1], "a\\N"),
    "ass overrides": grown("ass", ASS[0] + ASS[1], "{\\i1}a"),
    "ass lines with overrides": grown("ass", ASS[0] + ASS[1], "{\\i1}a\\N"),
    "ass different overrides": grown("ass", ASS[0] + ASS[1], "{\\fs§}a\\N"),
    "ass fonts": grown("ass", ASS[0] + ASS[1], "{\\fn§}a"),
    "ass one block": grown("ass", ASS[0] + ASS[1] + "{", "\\i1", "}a"),
    "ass one block of brackets": grown("ass", ASS[0] + ASS[1] + "{", "\\t(", "}a"),
    "ass open braces": grown("ass", ASS[0] + ASS[1], "{"),
    "ass fields": grown("ass", ASS[0] + "Format: Start, End, ", "Text, ", "\n" + ASS[1] + "a"),
    "csv rows": grown("csv", "en,fr\n", "a dog,\n"),
    "csv columns": grown("csv", "", "a dog,"),
    "csv names": grown("csv", "", "name§,", "\n1"),
    "csv quotes": grown("csv", "", '"'),
    "csv open quotes": grown("csv", "", '"a,'),
    "csv open quotes on lines": grown("csv", "", '"a\n'),
    "csv quoted": grown("csv", "a,b\n", '"a ""b""",'),
    "csv ragged": lambda size: b"csv fr\nen,note\n" + b"a,b\n" * (size // 5) + b",".join([b"c"] * (size // 10)),
}  # fmt: skip

TARGET = Target(
    read=read_document,
    seeds=_seeds,
    allowed=ALLOWED,
    mutate=mutate_document(_mutate_file),
    words=[
        b"00:00:01,000 --> 00:00:02,500", b"0:00:01.000,0:00:02.500", b"[br]", b"{\\an8}", b"{\\i1}", b"{\\p1}", b"\\N",
        b"{\\k20}", b"{\\r}", b"{\\t(\\fs12)}", b"<v Anna>", b"</v>", b"<c.a>", b"</c>", b"<ruby>", b"<rt>", b"NOTE ",
        b"STYLE\n", b"<00:01.000>", b"&gt;", b"&nbsp;", b"- ", b"(music)", b"<font color=red>", b"sep=;\n", b'"', b'""',
        b"\t", b"\r", b"en,fr", b"=1+1", b"---\n", b"+++\n", b"[a]: b", b"[^1]: ", b"|---|\n", b"```\n", b"<!-- ", b"$$",
        b"<script>", b"<p lang=en>", b"<meta charset=utf-16>", b"translate=no", b"{{< a >}}", b"!!! note\n    ",
        b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b$B", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0c",
    ],
    grown=GROWN,
)  # fmt: skip
