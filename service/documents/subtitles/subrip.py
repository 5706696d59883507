"""Subtitles of SubRip (.srt) and of YouTube (.sbv): numbers, times and everything else stay unchanged."""

import re
from functools import partial

from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.encodings import decode
from service.documents.subtitles.cues import LINE, Line, Times, contents_of, escape_text, seconds, unescape_text
from service.documents.wrapping import visible_text

_TIME = r"(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.,](\d{0,3}))?"
SUBRIP = re.compile(rf"\s{{0,9}}{_TIME}\s{{0,9}}-{{1,3}}>\s{{0,9}}{_TIME}(?:\s.*)?")
YOUTUBE = re.compile(rf"\s{{0,9}}{_TIME},{_TIME}\s{{0,9}}")
NUMBER = re.compile(r"\s{0,9}\d{1,9}\s{0,9}")
TAG = re.compile(r"(</?(?:[ibu]|font)(?:\s[^<>]*)?>)", re.IGNORECASE)
BEGINS_LINE = re.compile(r"(?P<mark>\[br\])?(?P<place>\s*(?:\{\\[^{}]*\})*)")
"""Before the text: a line break within a line, in YouTube's format, and the position on the screen: {\\an8}."""
BREAK = re.compile(r"(?=\[br\])")


def read_file(data: bytes, _: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read a SubRip file. Raises InvalidDocument: the file is not text, or has no cue."""
    return _read(data, SUBRIP, "00:00:01,000 --> 00:00:02,500")


def read_youtube_file(data: bytes, _: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read a file in YouTube's format. Raises InvalidDocument: the file is not text, or has no cue."""
    return _read(data, YOUTUBE, "0:00:01.000,0:00:02.500")


def _read(data: bytes, timing: re.Pattern[str], example: str) -> Contents:
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
            parts += (_line(len(times) - 1, one, "") for one in shown[:-1])
            parts.append(_line(len(times) - 1, shown[-1], end))
    return contents_of(parts, times, encoding, example)


def _line(cue: int, line: str, line_end: str) -> str | Line:
    found = BEGINS_LINE.match(line)
    assert found is not None, "it may be empty"
    before, text = found.group(), line[found.end() :].rstrip()
    if not visible_text(text).strip():
        return line + line_end
    end = line[len(before) + len(text) :] + line_end
    dropped = line_end if found["mark"] else ""
    return Line(
        cue, escape_text(text, TAG), line + line_end, partial(_written, before, end), found["place"].strip(), dropped
    )


def _written(before: str, end: str, html: str) -> str:
    return before + unescape_text(html, TAG) + end
