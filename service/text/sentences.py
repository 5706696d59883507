"""Split texts into sentences, and join their translations. White space between sentences stays unchanged.

A line break always ends a sentence, because a translated sentence has none; so does the end of a column. The mark
before an entry of a list is not part of a sentence. Offsets count characters (Unicode code points).
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import sentencex

from service.text.abbreviations import BEGINS_SENTENCE, ENDINGS, join_parts
from service.text.scripts import JAPANESE, LETTER, is_unspaced
from service.text.spans import Span

CLAUSE_END = re.compile(r"[,;:)\]–—]\s+|[、，；：]")  # noqa: RUF001
WORD_END = re.compile(r"\s+")
CELLS = re.compile(r"(?<=\t)(?!\t)|(?<=\s)(?=\|(?:\s|$))|(?<=[^\W\d_]\s)(?=>\s[^\W\d_a-zß-öø-ÿа-яё])")
"""The start of a column: after a tab, before a line between spaces, and before the arrow in Settings > Network."""
CELL_SIGNS = "\t|>"
"""Signs of which a line with such a column has at least one."""
GAP = re.compile(r"(?<=\S)\s{2,}(?=\S)")
"""White space that may separate two columns, follow a sentence, or be a mistake."""
WIDE_GAP = 3
"""Number of spaces that separate columns, whatever the lines around have."""
_MARK_LETTER = r"[^\W\d_\u3400-\U0010ffff]"
"""A letter of a mark. Kanji are excluded: (株) is a company."""
_CAPITAL = "[A-ZÀ-ÖØ-ÞА-ЯЁ]"
_COUNTED = (
    "Uhr|Euro|Dollar|Franken|EUR|USD|CHF|Prozent|Grad|Milli(?:on|arde)n|Mio|Mrd|(?:Kilo)?Meter|Kilo|Liter"
    "|[KMGT]B|[KMG]Hz"
)
"""Units, counted by the number before them: such a number does not begin a heading."""
_TIMING = r"(?:\d{2,4}:)?\d\d:\d\d[.,]\d{3}"
MARK = re.compile(
    rf"""
    \s*{_TIMING}[ \t]+-->[ \t]+{_TIMING}(?!\S).*  # the timing of a subtitle, to the end of the line
    | \s*
      (?: (?:[-–—*+•·‣◦▪>|]+ | \#{{1,6}} | \[![A-Za-z][\w-]*\][-+]?
             | \(?(?:\d{{1,3}}|{_MARK_LETTER}|[ivx]{{2,4}})\))(?:\s+|$)
        | \(?\d{{1,3}}\)(?=[^\W\d_])
        | (?: [・※①-⑳] | （(?:\d{{1,3}}|{_MARK_LETTER})） | (?:\d{{1,3}}|[ア-ン])．(?!\d) )\s*
        | (?!\d{{1,3}}(?:\.\d{{3}})+\s)  # "1.1 Overview", but neither "1.5 million", "3.000 Menschen" nor "10.30 Uhr"
          \d{{1,3}}(?:\.\d{{1,3}})+\.?\s+(?={_CAPITAL})(?!(?:{_COUNTED})\b)
        | [\#№§][ ]?\d{{1,3}}\.?\s+(?={_CAPITAL}(?!{_CAPITAL})) )+""",  # "§ 1 Scope", but not "§ 1 BGB"  # noqa: RUF001
    re.VERBOSE,
)
"""The mark before an entry of a list, a heading or a quoted line."""
SPEAKER = re.compile(
    rf"""\s*(?P<name>{_CAPITAL}[\w'’.-]{{0,30}}(?:[ ][\w'’.-]{{1,30}}){{0,2}}|[{JAPANESE}・]{{1,12}})
    [ \u00a0\u202f]?[:：](?:(?<=：)|[ \u00a0])[ ]*
    (?=[\"'«“„‘「『¿¡(]*+(?:{_CAPITAL}|[{JAPANESE}]).*[.!?…。！？][\"'»”’」』)]*\s*$)""",  # noqa: RUF001
    re.VERBOSE,
)
"""The name of a speaker before a sentence, at the start of a line. It is read alone."""
_COLONS = {"fr": " : ", **dict.fromkeys(("ja", "yue", "zh"), "：")}
"""A colon after a name, where that is not ": "."""
LETTER_MARK = re.compile(r"\s*([^\W\d_]|[ivxlc]{2,8}|[IVXLC]{2,8})\.\s+(?=\S)")
"""A letter or Roman numeral: a mark if the line before or after has the next one. "A. Einstein" alone is a name."""
_TENS, _ONES = " X XX XXX XL L LX LXX LXXX XC", " I II III IV V VI VII VIII IX"
_NUMERALS = frozenset(pairwise(tens + ones for tens in _TENS.split(" ") for ones in _ONES.split(" ")))
"""Pairs of each Roman numeral and the next."""
NOTE_MARK = re.compile(r"[*†‡¹²³⁰⁴-⁹]++(?:\s+|$)")
"""The mark of a footnote. After a full stop it belongs to the sentence before it."""
WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
"""White space of more than one byte. sentencex panics if it stands between a capital letter and a full stop."""
QUOTATION_MARKS = str.maketrans("『』", "「」")
"""sentencex ends sentences inside the former marks, but not inside the latter."""
WIDE_END = re.compile(rf"(?<=[。！？])(?={LETTER})")
"""The end of a sentence without a space, which sentencex misses."""
_HEART_OR_TINT = (
    r"\u2764\U0001f493-\U0001f49f\U0001f5a4\U0001f90d\U0001f90e\U0001f9e1\U0001fa75-\U0001fa77"
    r"\ufe0f\u200d\u2640\u2642\U0001f3fb-\U0001f3ff"
)
_FEELING = (
    r"\u2639\u263a\u2728\u270a-\u270d\U0001f389\U0001f38a\U0001f440-\U0001f450\U0001f4aa\U0001f4af\U0001f525"
    r"\U0001f600-\U0001f64f\U0001f90c-\U0001f93a\U0001f970-\U0001f97a\U0001fae0-\U0001fae9\U0001faf0-\U0001faf8"
)
EMOJI_END = re.compile(
    rf"(?<=\s)[{_HEART_OR_TINT}]*+[{_FEELING}][{_FEELING}{_HEART_OR_TINT}]*+\s+"
    rf"(?={_CAPITAL}(?!{_CAPITAL}))"
)
"""An emoji that may end a sentence: a face or a hand. A heart may stand for a verb, and other emoji before the thing
that they name, so these end no sentence."""
WINDOW = 2_000
"""Number of characters that are split at a time. Among quotation marks the time grows at least with the square of the
characters, and the event loop waits: 50,000 took ten seconds."""
UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "yue", "zh"})
"""Languages without spaces between sentences."""
_WIDE = {language: dict(zip(".!?", "。！？", strict=True)) for language in ("ja", "yue", "zh")}
"""Wide marks at the end of a sentence, in languages without spaces after them."""
_ENDED = re.compile(r"[.!?](?=[\"'”’)\]]*$)")  # noqa: RUF001
_IS_SPEAKER = re.compile(r"\s?[:：]\s*\S")
_MORE_THAN_NAME = re.compile(r"[,;:!?…、！？：；]")  # noqa: RUF001
_NEW_STOP = re.compile(r"(?<![.…])(?<!\.\w)\s?[.。]$")
_LAST_MARKS = re.compile(r"(?<![.!?])(?:\.|[!?]+)(?=[\"'”’)\]」』）]*$)")  # noqa: RUF001


def sentence_spans(text: str, language: str) -> list[Span]:
    """Return the spans of the sentences of a text in order, without white space around them."""
    spans = []
    for cell in cells(text):
        start = cell.begins
        for length in _lengths(text[start : cell.end], language):
            spans.append(strip_span(text, Span(start, start + length)))
            start += length
    return [span for span in spans if span is not None]


class Cell(NamedTuple):
    """A column of a line, the name of a speaker, or a whole line. Its text begins after marks or a colon."""

    start: int
    begins: int
    end: int


def cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a text, in order and without gaps."""
    lines, start = text.splitlines(keepends=True), 0
    marked = _lines_with_letters(lines) if len(lines) > 1 else set()
    gaps = _gaps(lines) if GAP.search(text) else None
    for i, line in enumerate(lines):
        position = 0
        has_cells = any(sign in line for sign in CELL_SIGNS)
        ends = [match.end() for match in CELLS.finditer(line)] if has_cells else []
        for end in [*(sorted(gaps[i].union(ends)) if gaps else ends), len(line)]:
            if end <= position:  # the end is inside the white space before a mark
                continue
            mark = MARK.match(line, position) or (LETTER_MARK.match(line, position) if i in marked else None)
            begins = mark.end() if mark else position
            end = max(begins, end)
            if speaker := SPEAKER.match(line, begins, end):
                yield Cell(start + position, start + begins, start + speaker.end("name"))
                position, begins = speaker.end("name"), speaker.end()
            yield Cell(start + position, start + begins, start + end)
            position = end
        start += len(line)


def ends_of(text: str, language: str) -> set[int]:
    """Return the ends of the sentences of a text, and of the marks before them."""
    spans = sentence_spans(text, language)
    before = (Span(last.end, span.start) for last, span in pairwise([Span(0, 0), *spans]))
    marks = (gap.start + len(gap.of(text).rstrip()) for gap in before)
    return {span.end for span in spans}.union(marks)


def _gaps(lines: Sequence[str]) -> list[set[int]]:
    """Return the starts of columns in each line: after many spaces, or two if a line beside it has a start there."""
    widths = [{match.end(): len(match.group()) for match in GAP.finditer(line)} for line in lines]
    return [
        {end for end, width in ends.items() if width >= WIDE_GAP or end in before or end in behind}
        for before, ends, behind in zip([{}, *widths], widths, [*widths[1:], {}], strict=False)
    ]


def _lines_with_letters(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines that begin with "a." or "I." next to a line with "b." or "II.", and so on."""
    letters = [(i, LETTER_MARK.match(line)) for i, line in enumerate(lines) if not line.isspace()]
    marked = set()
    for (i, this), (j, following) in pairwise(letters):
        if this and following and _are_in_order(this[1], following[1]):
            marked |= {i, j}
    return marked


def _are_in_order(mark: str, following: str) -> bool:
    if len(mark) == len(following) == 1 and ord(following) - ord(mark) == 1:
        return True
    return mark.isupper() == following.isupper() and (mark.upper(), following.upper()) in _NUMERALS


def _lengths(line: str, language: str) -> Iterator[int]:
    is_ascii, start = line.isascii(), 0
    if not is_ascii:
        line = WIDE_SPACE.sub(" ", line).translate(QUOTATION_MARKS)
    while start < len(line):
        window = line[start : start + WINDOW]
        parts = sentencex.segment(language, window)
        if not is_ascii:
            parts = [part for parts in parts for part in WIDE_END.split(parts)]
        if endings := ENDINGS.get(language):
            parts = [part for parts in parts for part in _parted(parts, endings)]
        if not is_ascii:
            parts = [part for parts in parts for part in _parted_by_emoji(parts, language)]
        parts = _with_note_marks(parts)
        lengths = join_parts(parts, language) if len(parts) > 1 else [*map(len, parts)]
        if start + WINDOW < len(line):
            lengths.pop()  # the last sentence may continue after the window
            # A sentence that is longer than any model reads is cut at a word.
            lengths = lengths or [max((match.end() for match in WORD_END.finditer(window)), default=len(window))]
        yield from lengths
        start += sum(lengths)


def _with_note_marks(parts: list[str]) -> list[str]:
    marked = parts[:1]
    for part in parts[1:]:
        mark = NOTE_MARK.match(part) if not marked[-1][-1:].isspace() else None
        end = mark.end() if mark else 0
        marked[-1] += part[:end]
        marked += [part[end:]] if part[end:] else []
    return marked


def _parted(part: str, ends: re.Pattern[str]) -> Iterator[str]:
    cuts = [0, *(match.end() for match in ends.finditer(part)), len(part)]
    return (part[start:end] for start, end in pairwise(cuts) if start < end)


def _parted_by_emoji(part: str, language: str) -> Iterator[str]:
    """Cut a part after emoji that end a sentence. Two words follow, and two precede or the next word begins one."""
    start, begins = 0, BEGINS_SENTENCE.get(language)
    for match in EMOJI_END.finditer(part):
        is_start = begins.match(part, match.end()) if begins else _has_words(part[start : match.start()])
        if is_start and _has_words(part[match.end() :]):
            yield part[start : match.end()]
            start = match.end()
    yield part[start:]


def _has_words(part: str) -> bool:
    return len(part.split(None, 1)) == 2


def strip_span(text: str, span: Span) -> Span | None:
    """Trim the white space at both ends of a span; None if nothing else is left."""
    piece = span.of(text)
    start = span.start + len(piece) - len(piece.lstrip())
    end = span.end - (len(piece) - len(piece.rstrip()))
    return Span(start, end) if start < end else None


def halves(text: str, span: Span) -> tuple[Span, Span] | None:
    """Cut a sentence that is too long in two: at the clause end nearest to its middle, otherwise at the end of a word,
    or between two characters. None for a single character."""
    quarter = (span.end - span.start) // 4
    middle = (span.start + span.end) // 2
    for boundary in (CLAUSE_END, WORD_END):
        matches = boundary.finditer(text, span.start + quarter, span.end - quarter)
        ends = [match.end() for match in matches if match.end() < span.end]
        if ends:
            middle = min(ends, key=lambda end: abs(end - middle))
            break
    left, right = strip_span(text, Span(span.start, middle)), strip_span(text, Span(middle, span.end))
    return (left, right) if left and right else None


def with_wide_marks(target: str, source: str, language: str) -> str:
    """Return a translated sentence with wide end marks, if its language uses them and its source ends with such marks.
    Its length stays the same. An ellipsis stays unchanged, and so does a sentence in Latin letters."""
    if language not in _WIDE or not is_unspaced(target) or not _ENDED.search(source):
        return target
    return _LAST_MARKS.sub(lambda marks: "".join(_WIDE[language][mark] for mark in marks.group()), target)


def is_speaker(text: str, sentence: Span) -> bool:
    """Return whether a sentence is the name of the speaker of the next one, or another label before a colon."""
    return _IS_SPEAKER.match(text, sentence.end) is not None


def speaker_name(target: str, source: str) -> str | None:
    """Return the translation of a speaker's name, with a capital; None if it is more than a name."""
    name = target.rstrip(" .。:：")
    if not name or len(name.split()) > len(source.split()) + 1 or _MORE_THAN_NAME.search(name):
        return None
    return name[0].upper() + name[1:]


def without_new_stop(target: str, source: str) -> str:
    """Return a translated sentence without the full stop at its end, if its source ends in a letter or digit."""
    return _NEW_STOP.sub("", target) if source[-1:].isalnum() else target


class Before(NamedTuple):
    """The last characters of the text and of the translation before a piece of a text."""

    source: str
    target: str


NOTHING_BEFORE = Before("", "")


def join_sentences(
    text: str,
    sources: Sequence[Span],
    targets: Iterable[str],
    source_language: str,
    target_language: str,
    before: Before = NOTHING_BEFORE,
    left_out: Sequence[int] = (),
) -> tuple[str, list[Span]]:
    """Return the text with each source span replaced by its target, and the spans of the targets in the result. The
    characters of the text at the positions `left_out`, in order, are not written between sentences. If only the target
    language writes spaces between sentences, they are inserted. If only the source language does, they are removed, but
    not those between columns, and a mark is inserted between two sentences that would touch without one."""

    def between(start: int, end: int) -> str:
        cuts = left_out[bisect_left(left_out, start) : bisect_left(left_out, end)]
        return "".join([text[before + 1 : cut] for before, cut in pairwise([start - 1, *cuts, end])])

    space = " " if source_language in UNSPACED and target_language not in UNSPACED else ""
    wide = _WIDE.get(target_language, {}) if source_language not in UNSPACED else {}
    pieces: list[str] = []
    spans, position, length = [], 0, 0
    for source, target in zip(sources, targets, strict=True):
        last_source, last_target = (text[position - 1], pieces[-1][-1:]) if pieces else before
        gap = text[position : source.start] or (space if pieces or before.target else "")
        are_sentences = not gap.strip(" ") and (len(gap) < WIDE_GAP or last_source in wide)
        if wide and (pieces or last_target) and are_sentences and is_unspaced(last_target + target[:1]):
            gap = wide.get(last_source, "") if last_target.isalnum() else ""
        if left_out and len(written := between(position, source.start)) < source.start - position:
            gap = written
        elif last_source and gap.strip(" ") in (":", "："):
            colons = [_COLONS.get(language, ": ") for language in (source_language, target_language)]
            gap = gap if colons[0] == colons[1] else colons[1]
        spans.append(Span(length + len(gap), length + len(gap) + len(target)))
        pieces += [gap, target]
        position, length = source.end, spans[-1].end
    return "".join([*pieces, between(position, len(text)) if left_out else text[position:]]), spans
