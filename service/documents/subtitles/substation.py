"""Subtitles of SubStation Alpha (.ass, .ssa): only the text of dialogue changes; styles, comments and drawings stay.

Karaoke is dropped from a line that is translated, because its words change places.
"""

import re
from collections.abc import Iterator

from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.subtitles.cues import LINE, Line, Times, rewrite_subtitles, seconds
from service.documents.subtitles.substation_overrides import Overrides

EVENT = re.compile(r"\s{0,9}(Format|Dialogue)\s{0,9}:\s{0,9}", re.IGNORECASE)
TIME = re.compile(r"\s{0,9}(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.:](\d{1,3}))?\s{0,9}")
BREAK = re.compile(r"(\\[Nn])")
FIELDS: tuple[str, ...] = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""The fields of an event in a file that does not name them. The text is the last field, and may have commas."""
MAX_FIELDS = 32


def rewrite(data: bytes, _: ReadOptions) -> Rewriting:
    """Rewrite a SubStation file. Raises InvalidDocument: the file is not text, or has no dialogue."""
    text, encoding = decode(data)
    parts: list[str | Line] = []
    times: list[Times] = []
    overrides = Overrides()
    is_in_events = False
    fields = FIELDS
    for match in LINE.finditer(text):
        line, end = match.groups()
        if line.startswith("["):
            is_in_events = line.strip().lower() == "[events]"
        event = EVENT.match(line) if is_in_events else None
        if event and event[1].lower() == "format":
            fields = tuple(name.strip().lower() for name in line[event.end() :].split(",", MAX_FIELDS))
        values = line[event.end() :].split(",", len(fields) - 1) if event else []
        named = dict(zip(fields, values, strict=False))
        start, stop = (TIME.fullmatch(named.get(name, "")) for name in ("start", "end"))
        if start and stop and "text" in named and fields[-1] == "text":
            times.append((seconds(*start.groups()), seconds(*stop.groups())))
            speaker = ",".join(named.get(name, "").strip() for name in ("style", "name", "actor"))
            parts.append(line.removesuffix(named["text"]))
            parts += _lines(named["text"], overrides, len(times) - 1, speaker)
        else:
            parts.append(line)
        parts.append(end)
    return rewrite_subtitles(data, parts, times, encoding, "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,Text")


def _lines(text: str, overrides: Overrides, cue: int, speaker: str) -> Iterator[str | Line]:
    first, *others = BREAK.split(text)
    overrides.begin_event([first, *others[1::2]])
    yield overrides.line(cue, "", first, speaker)
    for line_break, line in zip(others[::2], others[1::2], strict=True):
        yield overrides.line(cue, line_break, line, speaker)
