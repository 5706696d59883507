"""Subtitles of the web (WebVTT, .vtt): only the text of the cues changes; notes, styles and regions stay.

Times within a cue (karaoke) are dropped from a cue that is translated, because its words change places.
"""

import re
from functools import partial
from html import escape, unescape

from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.inline_tags import Numbering, escaped, mapped
from service.documents.subtitles.cues import LINE, Line, Times, rewrite_subtitles, seconds
from service.documents.wrapping import visible_text

_TIME = r"(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
TIMING = re.compile(rf"\s{{0,9}}{_TIME}\s{{0,9}}-->\s{{0,9}}{_TIME}(?:\s.*)?")
HEADER = "WEBVTT"
LANGUAGE = re.compile(r"(Language:\s{0,9})([\w-]{2,35})")
"""The language of the captions, in the header."""
NOT_CUES = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
"""The first line of a block that is not a cue. A block ends at an empty line."""
TAG = re.compile(r"(<[^<>]*>?)")
NAME = re.compile(r"</?([a-z]*)")
LEFT_OUT = re.compile(r"<rt\b[^<>]*>[^<>]*(?:</rt>)?|</?ruby\b[^<>]*>|<[\d:.]*>|<c>")
"""Readings of words (ruby), times of words, and classes without a name: a translation has none."""
VOICE = re.compile(r"\s*<v(?:\.[^\s<>]*)?(?:\s[^<>]*)?>(?!.*</?v[\s.>].*\S)")
"""A speaker at the start of a line that has one speaker. The end tag may follow at the end of the line."""
NUMBERED = re.compile(r"(</?x\d+>)")


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite a WebVTT file. Raises InvalidDocument: the file is not text, or has no cue."""
    text, encoding = decode(data)
    lines = [match.groups() for match in LINE.finditer(text)]
    parts: list[str | Line] = []
    times: list[Times] = []
    markup = _Markup("&gt;" in text)
    block = HEADER  # the block of the line: "" between blocks, "cue" after a line of times
    for i, (line, end) in enumerate(lines):
        timing = TIMING.fullmatch(line) if "-->" in line and not NOT_CUES.match(block) else None
        if timing:
            values = timing.groups()
            times.append((seconds(*values[:4]), seconds(*values[4:])))
            block = "cue"
            markup.begin_cue()
        elif not line:
            block = ""
        elif block == "cue":
            is_last = i + 1 == len(lines) or not lines[i + 1][0] or "-->" in lines[i + 1][0]
            parts.append(markup.line(len(times) - 1, line, end, is_last))
            continue
        elif language := LANGUAGE.fullmatch(line) if block == HEADER else None:
            line = language[1] + options.translated_mark(language[2])
        else:
            block = block or line
        parts.append(line + end)
    return rewrite_subtitles(data, parts, times, encoding, "00:01.000 --> 00:02.500")


class _Markup:
    """Turns tags of WebVTT into elements of HTML and back. Each different tag has a separate element, <x0>."""

    def __init__(self, escapes_greater: bool) -> None:
        self._escapes_greater = escapes_greater
        self._tags = Numbering[str]()
        self.begin_cue()

    def begin_cue(self) -> None:
        """Forget the open tags and the speaker: a cue ends them."""
        self._open: list[str] = []
        self._speaker = ""

    def line(self, cue: int, line: str, line_end: str, is_last: bool) -> str | Line:
        """Return a line of a cue; a line without visible text stays as it is."""
        if voice := VOICE.match(line):
            self._speaker = voice.group().strip()
        start = len(line) - len(line.lstrip()) if voice is None else voice.end()
        text = line[start:].rstrip()
        if self._speaker and text.endswith("</v>") and not any(map(VOICE.match, self._open)):
            text = text.removesuffix("</v>").rstrip()
        html = mapped(LEFT_OUT.sub("", text), lambda part: escaped(unescape(part)), self._numbered, TAG)
        if is_last:
            html += "".join(f"</x{self._tags.of(tag)}>" for tag in reversed(self._open))
        if not visible_text(html).strip():
            return line + line_end
        write = partial(self._written, line[:start], line[start + len(text) :] + line_end)
        return Line(cue, html, line + line_end, write, speaker=self._speaker)

    def _numbered(self, tag: str) -> str:
        name = _name(tag)
        if not tag.endswith(">"):
            return escape(tag)
        if not tag.startswith("</"):
            self._open += [tag] * bool(name)
            return f"<x{self._tags.of(tag)}>" if name else ""
        if self._open and _name(self._open[-1]) == name:
            return f"</x{self._tags.of(self._open.pop())}>"
        return ""  # players ignore it, too

    def _written(self, before: str, end: str, html: str) -> str:
        return before + mapped(html, self._escaped, self._tag, NUMBERED) + end

    def _tag(self, numbered: str) -> str:
        tag = self._tags.codes[int(numbered.strip("</x>"))]
        return f"</{_name(tag)}>" if numbered.startswith("</") else tag

    def _escaped(self, html: str) -> str:
        text = unescape(html).replace("&", "&amp;").replace("<", "&lt;").replace("\xa0", "&nbsp;")
        return text.replace(">", "&gt;") if self._escapes_greater else text.replace("-->", "--&gt;")


def _name(tag: str) -> str:
    match = NAME.match(tag)
    return match[1] if match else ""
