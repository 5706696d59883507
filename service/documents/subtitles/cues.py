"""Sentences over several lines and cues, in every kind of subtitles: each is a text, whose translation is cut again."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice

from service.base.errors import InvalidDocument
from service.documents.contents import Contents, Rewriting
from service.documents.encodings import Encoding
from service.documents.wrapping import balance_tags, visible_text, wrap
from service.text.scripts import is_unspaced

LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|$)")
REOPENED = re.compile(r"</([a-z]\d*)> <\1>", re.IGNORECASE)
"""A tag that is closed at the end of a line and opened again on the next line."""
BEGINS_SPEECH = re.compile(r"(?:<[^<>]*>|\s)*(?:[-–—‐♪♫\[(]|(?:>|&gt;){2})")  # noqa: RUF001
"""Signs that begin a new speaker's words, a song or a sound."""
SOUND = re.compile(r"((?:<\w[^<>]*>)*[\[(])([^\[\]()<>\s][^\[\]()<>]*)([\])](?:</\w+>)*)")
ENDS_SOUND = re.compile(r"[\])♪♫](?:</\w+>|\s)*$")
ENDS_SENTENCE = re.compile(r"[.!?…。！？♪♫\])](?:[\"'”’»」』\s]|</\w+>)*$")  # noqa: RUF001
MAX_CUES, MAX_PAUSE_S = 4, 2.0
"""The limits of one sentence: the number of its cues, and the pause between two of them."""
MAX_SPEECHES = 8
"""The limit of speeches in one exchange. Each may repeat all open tags, so a small file could otherwise become huge."""
Times = tuple[float, float]
"""The start and the end of a cue, in seconds."""


@dataclass(frozen=True)
class Line:
    """A line of text in a cue.

    Args:
        cue: the index of its cue.
        html: the text as HTML. An element may begin on one line of a cue and end on another, unless `is_balanced`.
        raw: the line as the file has it.
        write: returns the line with another text.
        place: the position on the screen that the line names; it stays if there are too few words for the line.
        dropped: the rest of the line if there are too few words for it.
        speaker: the speaker, if the file tells.
        is_balanced: whether elements that begin on this line end on it.
    """

    cue: int
    html: str
    raw: str
    write: Callable[[str], str]
    place: str = ""
    dropped: str = ""
    speaker: str = ""
    is_balanced: bool = False


_Speech = list[Line]
"""Lines that are translated together as one text."""
_Exchange = list[_Speech]
"""Speeches that share cues: each begins in the cue where the last speech ends. An element may span several speeches."""


def rewrite_subtitles(
    data: bytes, parts: Sequence[str | Line], times: Sequence[Times], encoding: Encoding, timing: str
) -> Rewriting:
    """Rewrite a file of `parts`: lines of text and everything between them. `times` are the times of each cue, and
    `timing` is an example of a line that begins a cue. Raises InvalidDocument: there is no cue."""
    if not times:
        raise InvalidDocument(f'The file has no subtitles: it has no line such as "{timing}"')
    exchanges = _exchanges(_speeches([part for part in parts if isinstance(part, Line)], times))
    speeches = [balance_tags(map(_html, exchange)) for exchange in exchanges]
    framed = [_unframed(speech) for speech in chain.from_iterable(speeches)]
    texts = [text for _, text, _ in framed]
    translations = yield Contents(texts, "html")
    if translations == texts:
        return data
    remaining = iter(f"{before}{new}{after}" for (before, _, after), new in zip(framed, translations, strict=True))
    pairs = zip(exchanges, speeches, strict=True)
    by_exchange = (_exchange_lines(lines, before, [*islice(remaining, len(before))]) for lines, before in pairs)
    lines = chain.from_iterable(by_exchange)
    return encoding.encode("".join(part if isinstance(part, str) else next(lines) for part in parts))


def _unframed(text: str) -> tuple[str, str, str]:
    """Return a text between the brackets of a sound, with which its words would be read as a name."""
    sound = SOUND.fullmatch(text)
    return (sound[1], sound[2], sound[3]) if sound else ("", text, "")


def seconds(*values: str | None) -> float:
    """Return the seconds of hours, minutes, seconds and a fraction of a second, each in digits."""
    hours, minutes, whole, fraction = (value or "0" for value in values)
    return int(hours) * 3600 + int(minutes) * 60 + float(f"{whole}.{fraction}")


def _speeches(lines: list[Line], times: Sequence[Times]) -> list[_Speech]:
    last_lines = [[*cue][-1] for _, cue in groupby(lines, key=lambda line: line.cue)]
    # If few cues end in a punctuation mark, a missing mark does not mean that the sentence continues.
    are_marked = 3 * sum(ENDS_SENTENCE.search(line.html) is not None for line in last_lines) >= len(last_lines)
    speeches: list[_Speech] = []
    for line in lines:
        if speeches and _goes_on(speeches[-1], line, times, are_marked):
            speeches[-1].append(line)
        else:
            speeches.append([line])
    return speeches


def _goes_on(speech: _Speech, line: Line, times: Sequence[Times], are_marked: bool) -> bool:
    last = speech[-1]
    if BEGINS_SPEECH.match(line.html) or ENDS_SOUND.search(last.html) or line.speaker != last.speaker:
        return False
    if line.cue == last.cue:
        return True
    pause_s = times[line.cue][0] - times[last.cue][1]
    is_open = are_marked and not ENDS_SENTENCE.search(last.html) and not is_unspaced(visible_text(last.html)[-1:])
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


def _html(speech: _Speech) -> str:
    return REOPENED.sub(" ", " ".join(line.html for line in speech))


def _exchange_lines(exchange: _Exchange, texts: list[str], translations: list[str]) -> Iterator[str]:
    """Yield the lines of an exchange. A speech that is not translated stays unchanged, unless an element spans it and a
    translated speech: then it gets balanced tags."""
    for speech, text, translation in zip(exchange, texts, translations, strict=True):
        if translations == texts or translation == text == _html(speech):
            yield from (line.raw for line in speech)
        else:
            yield from _speech_lines(speech, translation)


def _speech_lines(speech: _Speech, translation: str) -> Iterator[str]:
    """Yield as many lines as before. The translation is cut into cues first, and then into lines. If there are too few
    words, the last lines of a cue are dropped, but never its only line, nor the only line with a screen position."""
    cues = [[*cue] for _, cue in groupby(speech, key=lambda line: line.cue)]
    shares = [sum(_size(line) for line in cue) for cue in cues]
    for cue, html in zip(cues, balance_tags(wrap(translation, shares)), strict=True):
        parts = wrap(html, [*map(_size, cue)])
        if cue[0].is_balanced:
            parts = balance_tags(parts)
        for i, (line, part) in enumerate(zip(cue, parts, strict=True)):
            stays = part or i == 0 or line.place not in cue[0].place
            yield line.write(part) if stays else line.dropped


def _size(line: Line) -> int:
    return max(1, len(visible_text(line.html)))
