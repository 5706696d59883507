"""Subtitles (SubRip, .srt): a sentence over several lines and cues is one text; its translation is cut in proportion.

Numbers, times and everything else stay unchanged.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import chain, groupby, islice

from service.base.errors import InvalidDocument
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.encodings import decode
from service.documents.wrapping import balance_tags, visible_text, wrap
from service.text.scripts import is_unspaced

LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|$)")
_TIME = r"(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.,](\d{0,3}))?"
TIMING = re.compile(rf"\s{{0,9}}{_TIME}\s{{0,9}}-{{1,3}}>\s{{0,9}}{_TIME}(?:\s.*)?")
NUMBER = re.compile(r"\s{0,9}\d{1,9}\s{0,9}")
TAG = re.compile(r"(</?(?:[ibu]|font)(?:\s[^<>]*)?>)", re.IGNORECASE)
PLACE = re.compile(r"\s*(?:\{\\[^{}]*\})*")
"""The position of a cue on the screen: {\\an8}."""
REOPENED = re.compile(r"</([ibu])> <\1>", re.IGNORECASE)
"""A tag that is closed at the end of a line and opened again on the next line."""
BEGINS_SPEECH = re.compile(r"(?:<[^<>]*>|\s)*(?:[-–—‐♪♫\[(]|>>)")  # noqa: RUF001
"""Signs that begin a new speaker's words, a song or a sound."""
ENDS_SOUND = re.compile(r"[\])♪♫](?:</\w+>|\s)*$")
ENDS_SENTENCE = re.compile(r"[.!?…。！？♪♫\])](?:[\"'”’»」』\s]|</\w+>)*$")  # noqa: RUF001

MAX_CUES, MAX_PAUSE_S = 4, 2.0
"""The limits of one sentence: the number of its cues, and the pause between two of them."""
MAX_SPEECHES = 8
"""The limit of speeches in one exchange. Each may repeat all open tags, so a small file could otherwise become huge."""


@dataclass(frozen=True)
class _Line:
    """A line of text in a cue, with the characters before and after the text."""

    cue: int
    place: str
    text: str
    end: str


_Speech = list[_Line]
"""Lines that are translated together as one text."""
_Exchange = list[_Speech]
"""Speeches that share cues: each begins in the cue where the last one ends. An element may span several speeches."""


def read_file(data: bytes, _: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read a subtitle file. Raises InvalidDocument: the file is not text, or has no cue."""
    text, encoding = decode(data)
    parts, times = _parse(text)
    if not times:
        raise InvalidDocument('The file has no subtitles: it has no line such as "00:00:01,000 --> 00:00:02,500"')
    exchanges = _exchanges(_speeches([part for part in parts if isinstance(part, _Line)], times))
    texts = [_texts(exchange) for exchange in exchanges]

    def write(translations: Sequence[str]) -> bytes:
        remaining = iter(translations)
        lines = iter(
            line
            for exchange, before in zip(exchanges, texts, strict=True)
            for line in _exchange_lines(exchange, before, [*islice(remaining, len(before))])
        )
        return encoding.encode("".join(part if isinstance(part, str) else next(lines) for part in parts))

    return Contents([*chain.from_iterable(texts)], "html", write)


def _parse(text: str) -> tuple[list[str | _Line], list[tuple[float, float]]]:
    """Return the text lines and everything between them, in order, and the start and end time of each cue."""
    lines = [match.groups() for match in LINE.finditer(text)]
    timings = {i: match for i, (line, _) in enumerate(lines) if "-" in line and (match := TIMING.fullmatch(line))}
    parts: list[str | _Line] = []
    times: list[tuple[float, float]] = []
    for i, (line, end) in enumerate(lines):
        is_number = i + 1 in timings and NUMBER.fullmatch(line)
        if i in timings:
            times.append(_times(timings[i]))
        if not times or i in timings or is_number or not visible_text(line).strip():
            parts.append(line + end)
        else:
            place = PLACE.match(line)
            assert place is not None, "it may be empty"
            shown = line[place.end() :]
            text_end = len(shown.rstrip())
            parts.append(_Line(len(times) - 1, place.group(), shown[:text_end], shown[text_end:] + end))
    return parts, times


def _times(timing: re.Match[str]) -> tuple[float, float]:
    values = [float(value or 0) for value in timing.groups()]
    seconds = [h * 3600 + m * 60 + s + ms / 1000 for h, m, s, ms in (values[:4], values[4:])]
    return seconds[0], seconds[1]


def _speeches(lines: list[_Line], times: list[tuple[float, float]]) -> list[_Speech]:
    """Group the lines that belong to one sentence or one speaker."""
    last_lines = [[*cue][-1] for _, cue in groupby(lines, key=lambda line: line.cue)]
    # If few cues end in a punctuation mark, a missing mark does not mean that the sentence continues.
    are_marked = 3 * sum(ENDS_SENTENCE.search(line.text) is not None for line in last_lines) >= len(last_lines)
    speeches: list[_Speech] = []
    for line in lines:
        if speeches and _goes_on(speeches[-1], line, times, are_marked):
            speeches[-1].append(line)
        else:
            speeches.append([line])
    return speeches


def _goes_on(speech: _Speech, line: _Line, times: list[tuple[float, float]], are_marked: bool) -> bool:
    last = speech[-1]
    if BEGINS_SPEECH.match(line.text) or ENDS_SOUND.search(last.text):
        return False
    if line.cue == last.cue:
        return True
    pause_s = times[line.cue][0] - times[last.cue][1]
    is_open = are_marked and not ENDS_SENTENCE.search(last.text) and not is_unspaced(visible_text(last.text)[-1:])
    return is_open and line.cue - speech[0].cue < MAX_CUES and -MAX_PAUSE_S <= pause_s <= MAX_PAUSE_S


def _exchanges(speeches: list[_Speech]) -> list[_Exchange]:
    exchanges: list[_Exchange] = []
    for speech in speeches:
        last = exchanges[-1] if exchanges else []
        if last and last[-1][-1].cue == speech[0].cue and len(last) < MAX_SPEECHES:
            last.append(speech)
        else:
            exchanges.append([speech])
    return exchanges


def _texts(exchange: _Exchange) -> list[str]:
    """Return each speech as HTML with balanced tags."""
    return balance_tags(map(_html, exchange))


def _html(speech: _Speech) -> str:
    """Join lines as HTML. Only the tags of subtitles are read as tags."""
    parts = TAG.split(" ".join(line.text for line in speech))
    html = "".join(part if i % 2 else escape(part, quote=False) for i, part in enumerate(parts))
    return REOPENED.sub(" ", html)


def _exchange_lines(exchange: _Exchange, texts: list[str], translations: list[str]) -> Iterator[str]:
    """Yield the lines of an exchange. A speech that is not translated stays unchanged, unless an element spans it and a
    translated one: then it gets balanced tags."""
    for speech, text, translation in zip(exchange, texts, translations, strict=True):
        if translations == texts or translation == text == _html(speech):
            yield from (line.place + line.text + line.end for line in speech)
        else:
            yield from _speech_lines(speech, translation)


def _speech_lines(speech: _Speech, translation: str) -> Iterator[str]:
    """Yield as many lines as before. The translation is cut into cues first, and then into lines. If there are too few
    words, the last lines of a cue are dropped, but never its only line, nor the only line with a screen position."""
    cues = [[*cue] for _, cue in groupby(speech, key=lambda line: line.cue)]
    shares = [sum(_size(line) for line in cue) for cue in cues]
    for cue, html in zip(cues, balance_tags(wrap(translation, shares)), strict=True):
        for i, (line, part) in enumerate(zip(cue, wrap(html, [*map(_size, cue)]), strict=True)):
            stays = part or i == 0 or line.place.strip() not in cue[0].place
            yield line.place + _without_escapes(part) + line.end if stays else ""


def _size(line: _Line) -> int:
    return max(1, len(visible_text(line.text)))


def _without_escapes(html: str) -> str:
    return "".join(part if i % 2 else unescape(part) for i, part in enumerate(TAG.split(html)))
