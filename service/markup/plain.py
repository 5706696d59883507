"""Marks in plain text: **word**, _word_, ~~word~~, ==word==, [word](address), and pairs of tags: <b>word</b>,
{b}word{/b}, [b]word[/b]. They are removed and put back like tags of HTML.

The rules of marks are CommonMark's, and a little stricter, since people who write plain text mean marks less often.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from service.kept.kept_spans import kept_spans
from service.markup.flanking import SIGNS
from service.markup.inline_marks import PAIRS, marks
from service.markup.passages import Element, Notation, ParsedText, Passage
from service.markup.pieces import PieceKind, ends_of_elements
from service.text.scripts import LETTER
from service.text.sentences import MARK
from service.text.spans import Span, overlapping, replace_spans

HINT = re.compile(rf"\*\S|_\S|~~\S|([{SIGNS}])\1\S|\(\(|\]\(|(?:<|&lt;|\{{|\[)/")
"""Every text with marks has one of these."""
INSIDE = re.compile(rf"[\\/=@#$%^&+`]|(?!_){LETTER}")
"""Characters beside which a mark is part of something else: a*b*c, src/**/*.py."""
AFTER_NAME = re.compile(rf"\.{LETTER}|\(")
"""The characters after a name such as __init__ or __main__."""
TAG = re.compile(
    r"(<|&lt;|\{|\[)(/?)([A-Za-z][\w-]{0,40}|\d{1,3})((?:[\s=:][^<>{}\[\]\n]{0,200}?)?)(>|&gt;|\}|\])", re.ASCII
)
"""What may be a tag: its first sign, whether it is an end tag, its name, its attributes and its last sign."""
LAST_SIGNS = {"<": (">",), "&lt;": (">", "&gt;"), "{": ("}",), "[": ("]",)}
NOTATION = Notation({}, has_marks=True)


def parse(text: str, terms: Iterable[Span] = ()) -> ParsedText:
    """Read a plain text. No mark inside a kept span is removed, nor in the spans of `terms`, which are in order."""
    units = [*_units(text)]
    pairs = [pair for unit in units for pair in _pairs(text, unit)]
    if tags := [pair for unit in units for pair in tag_pairs(unit.of(text), unit.start)]:
        around = _blank_marks(text, tags)
        kept = [span.span for span in kept_spans(around)]
        tags = [pair for pair in tags if _are_around_words(around, pair, kept)]
    if pairs:
        kept = [span.span for span in kept_spans(_blank_marks(text, pairs, "*~"))]
        around = _blank_marks(text, [*pairs, *tags])
        pairs = [pair for pair in pairs if _is_meant(text, around, pair, kept)]
    pairs = _nested([*pairs, *tags]) if tags else pairs
    if pairs:
        whole = [*terms]
        pairs = [pair for pair in pairs if all(len({*overlapping(whole, mark)}) == 1 for mark in pair)]
    taken_out = sorted((mark for pair in pairs for mark in pair), key=lambda span: span.pair)
    bare, edits = replace_spans(text, [(span, "") for span in taken_out])
    position = {old: new.start for old, new in zip(edits.old, edits.new, strict=True)}
    elements: list[Element] = []
    inside: list[tuple[int, int]] = []
    for start, end in sorted(pairs, key=lambda pair: pair[0].pair):
        while inside and inside[-1][1] <= start.start:
            inside.pop()
        parent = inside[-1][0] if inside else None
        inside.append((len(elements), end.start))
        elements.append(Element(Span(position[start], position[end]), start.of(text), end.of(text), parent))
    return ParsedText([Passage(bare, bare, "", "", elements, notation=NOTATION)], is_plain=True)


def tag_pairs(text: str, base: int = 0) -> Iterator[tuple[Span, Span]]:
    """Yield the spans of a start tag and its end tag, properly nested, of a text that starts at `base`."""
    if not HINT.search(text):
        return
    tags = [tag for tag in TAG.finditer(text) if tag[5] in LAST_SIGNS[tag[1]] and not (tag[2] and tag[4])]
    tags = [tag for tag in tags if not tag[4].endswith("/")]
    kinds = ((PieceKind.END if tag[2] else PieceKind.START, f"{tag[1]}{tag[3]}") for tag in tags)
    for start, end in ends_of_elements(kinds).items():
        yield Span(*tags[start].span()).moved(base), Span(*tags[end].span()).moved(base)


def _are_around_words(around: str, pair: tuple[Span, Span], kept: Sequence[Span]) -> bool:
    """Return whether tags, which `around` lacks, have words between them and are outside kept spans, such as code."""
    if any(len({*overlapping(kept, tag)}) == 2 for tag in pair):
        return False
    position = pair[0].end
    for span in [*kept[slice(*overlapping(kept, Span(position, pair[1].start)))], pair[1]]:
        if any(map(str.isalpha, around[position : span.start])):
            return True
        position = span.end
    return False


def _nested(pairs: Iterable[tuple[Span, Span]]) -> list[tuple[Span, Span]]:
    """Leave out pairs that cross an earlier pair."""
    nested: list[tuple[Span, Span]] = []
    ends: list[int] = []
    for start, end in sorted(pairs, key=lambda pair: pair[0].pair):
        while ends and ends[-1] <= start.start:
            ends.pop()
        if not ends or end.end <= ends[-1]:
            nested.append((start, end))
            ends.append(end.start)
    return nested


def _units(text: str) -> Iterator[Span]:
    """Yield the spans in which two marks may form a pair: paragraphs and entries of lists."""
    start = position = 0
    for line in text.splitlines(keepends=True):
        mark = MARK.match(line)
        if mark or not line.strip():
            yield Span(start, position)
            start = position + (mark.end() if mark else len(line))
        position += len(line)
    yield Span(start, position)


def _pairs(text: str, unit: Span) -> Iterator[tuple[Span, Span]]:
    if not HINT.search(text, *unit.pair):
        return
    inside = unit.of(text)
    if "](" not in inside:
        inside = inside.replace("[", "(")  # no bracket begins a link, and the search for its end takes long
    opened: list[Span] = []
    for mark in marks(inside, {}, unit.start):
        if mark.name in PAIRS and mark.kind is PieceKind.START:
            opened.append(mark.span)
        elif mark.name in PAIRS and mark.kind is PieceKind.END:
            yield opened.pop(), mark.span


def _blank_marks(text: str, pairs: list[tuple[Span, Span]], signs: str = "") -> str:
    """Return the text with spaces for marks of these signs, or for all marks. Asterisks and tildes would otherwise be
    kept spans, alone or in an address."""
    characters = [*text]
    for mark in (mark for pair in pairs for mark in pair if not signs or mark.of(text)[0] in signs):
        characters[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(characters)


def _is_meant(text: str, around: str, pair: tuple[Span, Span], kept: Sequence[Span]) -> bool:
    """Return whether a pair of marks is meant as such: not in a word, a formula, a path, *|TAG|* or a kept span.
    `around` is the text without any marks."""
    start, end = pair
    inside, before = text[start.end : end.start], around[max(0, start.start - 1) : start.start]
    behind = around[end.end : end.end + 2]
    is_part = INSIDE.match(before) or INSIDE.match(behind) or AFTER_NAME.match(behind) or inside.startswith("|")
    if is_part or not any(map(str.isalnum, inside)):
        return False
    whole = Span(start.start, end.end)
    is_word = start.of(text)[0] in "*_~" and inside.isalpha() and not inside.isupper()  # __word__, not __NAME__
    return not any(
        (span.start < start.start and start.end < span.end)
        or (span.start < end.start and end.end < span.end)
        or (span.start <= start.start and end.end <= span.end and not (span == whole and is_word))
        for span in kept[slice(*overlapping(kept, whole))]
    )
