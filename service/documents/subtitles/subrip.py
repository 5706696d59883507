"""Subtitles of SubRip (.srt) and of YouTube (.sbv): numbers, times and everything else stay unchanged."""

import re
from functools import partial
from html import unescape

from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.inline_tags import escaped, mapped
from service.documents.subtitles.cues import LINE, Line, Times, rewrite_subtitles, seconds
from service.documents.wrapping import visible_text

_TIME = r"(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.,](\d{0,3}))?"
SUBRIP = re.compile(rf"\s{{0,9}}{_TIME}\s{{0,9}}-{{1,3}}>\s{{0,9}}{_TIME}(?:\s.*)?")
YOUTUBE = re.compile(rf"\s{{0,9}}{_TIME},{_TIME}\s{{0,9}}")
NUMBER = re.compile(r"\s{0,9}\d{1,9}\s{0,9}")
TAG = re.compile(r"(</?(?:[ibu]|font)(?:\s[^<>]*)?>)", re.IGNORECASE)
BEGINS_LINE = re.compile(r"(?P<mark>\[br\])?(?P<place>\s*(?:\{\\[^{}]*\})*)")
"""Before the text: a line break within a line, in YouTube's format, and the position on the screen: {\\an8}."""
BREAK = re.compile(r"(?=\[br\])")


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite a SubRip file. Raises InvalidDocument: the file is not text, or has no cue."""
    return _rewrite(data, SUBRIP, "00:00:01,000 --> 00:00:02,500")


def rewrite_youtube(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite a file in YouTube's format. Raises InvalidDocument: the file is not text, or has no cue."""
    return _rewrite(data, YOUTUBE, "0:00:01.000,0:00:02.500")


def _rewrite(data: bytes, timing: re.Pattern[str], example: str) -> Rewriting:
    text, encoding = decode(data)
    lines = [match.groups() for match in LINE.finditer(text)]
    timings = {i: match for i, (line, _) in enumerate(lines) if ":" in line and (match := timing.fullmatch(line))}
    parts: list[str | Line] = []
    times: list[Times] = []
    for i, (line, end) in enumerate(lines):
        is_number = timing is SUBRIP and i + 1 in timings and NUMBER.fullmatch(line)
        if i in timings:
            values = timings[i].groups()
            times.append((seconds(*values[:4]), seconds(*values[4:])))
        if not times or i in timings or is_number:
            parts.append(line + end)
        else:
            shown = BREAK.split(line) if timing is YOUTUBE else [line]
            parts += (_line(len(times) - 1, line, "") for line in shown[:-1])
            parts.append(_line(len(times) - 1, shown[-1], end))
    return rewrite_subtitles(data, parts, times, encoding, example)


def _line(cue: int, line: str, line_end: str) -> str | Line:
    begin = BEGINS_LINE.match(line)
    assert begin is not None, "it may be empty"
    before, text = begin.group(), line[begin.end() :].rstrip()
    if not visible_text(text).strip():
        return line + line_end
    write = partial(_written, before, line[len(before) + len(text) :] + line_end)
    html, dropped = mapped(text, escaped, tags=TAG), line_end if begin["mark"] else ""
    return Line(cue, html, line + line_end, write, begin["place"].strip(), dropped)


def _written(before: str, end: str, html: str) -> str:
    return before + mapped(html, unescape, tags=TAG) + end
