"""Find spans that stay byte for byte in a translation: URLs, {name}, %s, signs that the model cannot write.

Slots carry the spans through the model (placeholders.py), and restoration.py puts them back.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import starmap

from service.kept.icu_messages import icu_messages
from service.kept.kept_kinds import KINDS, OPEN, Role
from service.kept.shortcuts import shortcuts
from service.kept.unwritable import CanWrite, unwritable
from service.text.scripts import LETTER, foreign_words
from service.text.sentences import cells
from service.text.spans import Span, overlapping, replace_spans

WORDS_ALONE = re.compile(
    r"(?:[A-Za-zÀ-ÖØ-öø-ÿ ,;?'’\"\n\t]|[.:](?!\S)|!(?!\w)|(?<![A-Za-z])\((?=[A-Za-z])|(?<=[A-Za-z])\)"
    r"|(?<![\w:])[0-9]{1,3}(?![\w:]|\W*\d))*"
)
"""A text without anything to keep, in any language, is not searched. It may have small numbers."""
_UNIT = re.compile(rf"(?:[bcdfghjklmnpqrstvwxz]{{1,3}}|em|rem|min|sec|[kKMGT]i?B|\d{{1,4}})(?!{LETTER}|['’]{LETTER})")
"""Small letters and digits right after a span that are not a word: {n}px, {n}th, %dMB."""
_JOINT = re.compile(r"[!-/:-@\[-`{-~–—−‐‑×·…→]{1,2}")
"""Characters that join two spans to one: {a}/{b}, {host}:{port}; "{a} {b}" is two."""
_SIGNS = re.compile(rf"{OPEN}[-+<>~±−$€£#@≤≥]{{1,2}}$")
"""Signs right before a span that belong to it: -5 °C, +{n}, $%d; 5-10 °C is a range."""
_DIALOGUE = re.compile(r"(?<![^\n])-")
"""A dash before a name at the start of a line; before a number it is a minus."""
_AMOUNT = re.compile(r"(?<![\w$])\$(\d\w*(?:[.,]\d\w*)*)")
_CLOSING = re.compile(r"[<{\[]/|\{\\")
"""An end tag, or a tag of subtitles, which is not a word of a sentence."""
_TAGS_AT_END = re.compile(rf"\s*+(?:{LETTER}++#\s*+)+")
"""Tags at the end of a line, matched from right to left: from left to right each tag could be the first of them."""
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#0{0,4}(?:34|38|39|60|62)|#[xX]0{0,4}(?:2[267]|3[cCeE]));")
"""Signs of tags, written as in HTML."""
_ABBREVIATION = re.compile(rf"(?<!{LETTER})(?:[A-Z]{{1,4}}&amp;)+[A-Z]{{1,4}}(?!{LETTER})")
"""An abbreviation with an escaped sign, such as R&amp;D."""
_READ_AS_OTHER = re.compile(r"(?<=\w)(?:\\'|[‐‑‒–])(?=\w)")


@dataclass(frozen=True)
class KeptSpan:
    """A span, and its role in its sentence."""

    span: Span
    role: Role = "word"
    written: str | None = None
    """The text that replaces it in the translation: a glossary's term; None: the span itself."""
    at_start: str | None = None
    """The text that replaces it at the beginning of a sentence, as long as `written`; None: the same."""


def kept_spans(
    text: str,
    keep: Sequence[Span] = (),
    language: str = "",
    can_write: CanWrite = lambda _: True,
    terms: Sequence[KeptSpan] = (),
) -> list[KeptSpan]:
    """Return the kept spans of a text in order. No two of them touch.

    Args:
        keep: spans that are always kept.
        terms: terms of the request. Of two terms that overlap the first is kept. A term inside a longer kept span is
            not.
        language: the language of the text. Words in letters of other scripts are kept if its script is known.
        can_write: returns whether the vocabulary has the characters of a text.
    """
    if text.isascii() and not keep and not terms and WORDS_ALONE.fullmatch(text):
        return []
    if "&" in text and (entities := [Span(*match.span()) for match in _ENTITY.finditer(text)]):
        shown, edits = replace_spans(text, [(span, unescape(span.of(text))) for span in entities])
        shown_terms = [replace(term, span=edits.after(term.span)) for term in terms]
        kept = _kept_spans(shown, [edits.after(span) for span in keep], language, can_write, shown_terms)
        return _with_entities(text, [replace(item, span=edits.before(item.span)) for item in kept], entities)
    return _kept_spans(text, keep, language, can_write, terms)


def _kept_spans(
    text: str, keep: Sequence[Span], language: str, can_write: CanWrite, terms: Sequence[KeptSpan]
) -> list[KeptSpan]:
    taken = _add_free([], [KeptSpan(span) for span in keep])
    matched = _find(text, taken)
    if named := _add_free([], terms):
        matched = _find(text, _add_free(_add_free(taken, _spans_around(named, matched)), named))
    taken = _add_free(matched, (KeptSpan(span, "shortcut") for span in shortcuts(text)))
    lines = _lines(text, matched)
    strange = [KeptSpan(span) for span in foreign_words(text, language)]
    strange += starmap(KeptSpan, unwritable(_blank(lines, _marks(lines)), can_write))
    written = [kept.span for kept in matched if kept.written is not None]
    taken += (kept for kept in strange if len(set(overlapping(written, kept.span))) == 1)
    joined = _join_spans(text, sorted(taken, key=lambda kept: kept.span.pair))
    tags = _tags_at_end(text) if "#" in text else ()
    return [replace(kept, role=_role(text, kept, kept.span.start in tags)) for kept in joined]


def _with_entities(text: str, spans: Sequence[KeptSpan], entities: Sequence[Span]) -> list[KeptSpan]:
    taken = [kept for kept in spans if kept.role != "shortcut" or kept.span not in entities]
    taken = _add_free(taken, (KeptSpan(Span(*match.span())) for match in _ABBREVIATION.finditer(text)))
    taken = _add_free(taken, (KeptSpan(span, "sign" if _is_conjunction(text, span) else "mark") for span in entities))
    return _join_spans(text, taken)


def _is_conjunction(text: str, entity: Span) -> bool:
    before, after = text[max(0, entity.start - 2) : entity.start], text[entity.end : entity.end + 2]
    is_between = before.rstrip()[-1:].isalnum() and after.lstrip()[:1].isalnum()
    return is_between and unescape(entity.of(text)) == "&" and before[-1:].isalnum() == after[:1].isalnum()


def _find(text: str, taken: list[KeptSpan]) -> list[KeptSpan]:
    taken = _add_free(taken, starmap(KeptSpan, icu_messages(text)))
    matched = _add_free(taken, _find_kinds(_lines(text, taken)))
    if len(breaks := _breaks(matched)) > len(_breaks(taken)):  # a new line begins after each of them
        matched = _add_free(taken, breaks)
        matched = _add_free(matched, _find_kinds(_lines(text, matched)))
    return matched


def _spans_around(terms: list[KeptSpan], spans: Iterable[KeptSpan]) -> Iterator[KeptSpan]:
    """Yield spans that contain terms and are longer: a name inside an address is not a term."""
    terms_at = [term.span for term in terms]
    for kept in spans:
        inside, (start, end) = terms_at[slice(*overlapping(terms_at, kept.span))], kept.span.pair
        if inside and start <= inside[0].start and inside[-1].end <= end and kept.span not in inside:
            yield kept


def _tags_at_end(text: str) -> set[int]:
    """Return the starts of tags (#tag) that no word of their line follows."""
    places, end = set[int](), -1
    for line in text.split("\n"):
        end += 1 + len(line)
        tags = _TAGS_AT_END.match(line[::-1])
        places.update(range(end - tags.end(), end) if tags else ())
    return places


def read_as_other(text: str) -> Iterator[tuple[Span, str]]:
    """Yield signs with a plain form that models read better: apostrophes with the escape of program text (Don\\'t), and
    dashes between two letters or digits."""
    return ((Span(*match.span()), "'" if match.group()[0] == "\\" else "-") for match in _READ_AS_OTHER.finditer(text))


def _breaks(taken: list[KeptSpan]) -> list[KeptSpan]:
    return [kept for kept in taken if kept.role == "break"]


def _lines(text: str, taken: list[KeptSpan]) -> str:
    """Return the text with line ends in place of breaks, since no kept span continues on the next line."""
    return _blank(text, [kept.span for kept in _breaks(taken)])


def _blank(text: str, spans: Sequence[Span]) -> str:
    return replace_spans(text, [(span, "\n" * (span.end - span.start)) for span in spans])[0] if spans else text


def _find_kinds(text: str) -> Iterator[KeptSpan]:
    if WORDS_ALONE.fullmatch(text):
        return
    marks = _marks(text)
    spans = [
        KeptSpan(Span(*match.span()), kind.role)
        for kind in KINDS
        if any(hint in text for hint in kind.hint)
        for match in kind.pattern.finditer(text)
        if not _is_inside(Span(*match.span()), marks)
    ]
    yield from sorted(spans, key=lambda kept: kept.span.start)
    yield from _parameters(text)


def _parameters(text: str) -> Iterator[KeptSpan]:
    """Yield $1, $2 and so on if the numbers count from 1; otherwise they are prices."""
    amounts = [*_AMOUNT.finditer(text)] if "$1" in text else []
    numbers = {match[1] for match in amounts}
    if len(numbers) > 1 and numbers == {str(number + 1) for number in range(len(numbers))}:
        yield from (KeptSpan(Span(*match.span())) for match in amounts)


def _marks(text: str) -> list[Span]:
    """Return the marks before an entry of a list ("1.2.3 Overview") or a column, which are outside the sentence."""
    return [Span(cell.start, cell.begins) for cell in cells(text) if cell.start < cell.begins]


def _is_inside(span: Span, marks: Sequence[Span]) -> bool:
    n = bisect_right(marks, span.start, key=lambda mark: mark.start) - 1
    return n >= 0 and span.end <= marks[n].end


def _add_free(taken: list[KeptSpan], spans: Iterable[KeptSpan]) -> list[KeptSpan]:
    """Add spans to taken ones, unless they overlap. Of two new spans that overlap, the first is added."""
    occupied = [kept.span for kept in taken]
    added, end = [], 0
    for kept in sorted(spans, key=lambda kept: kept.span.start):
        first, last = overlapping(occupied, kept.span)
        if kept.span.start >= end and first == last:
            added.append(kept)
            end = kept.span.end
    return sorted([*taken, *added], key=lambda kept: kept.span.pair) if added else taken


def _join_spans(text: str, spans: Iterable[KeptSpan]) -> list[KeptSpan]:
    """Extend spans by the signs before them and the unit after them, and join spans that touch."""
    joined: list[KeptSpan] = []
    for kept in spans:
        span, last = kept.span, joined[-1] if joined else None
        if last is not None and span.end <= last.span.end:
            continue
        if kept.role in ("word", "number") and kept.written is None:
            kept = replace(kept, span=_extend(text, kept, last.span.end if last else 0))
        if last is None or not _touch(text, last, kept):
            joined.append(kept)
        else:
            role = last.role if last.role != "mark" else kept.role
            joined[-1] = KeptSpan(Span(last.span.start, kept.span.end), role)
    return joined


def _extend(text: str, kept: KeptSpan, after: int) -> Span:
    start, end = kept.span.pair
    signs = _SIGNS.search(text, max(after, start - 3), start)
    unit = _UNIT.match(text, end)
    is_dialogue = kept.role == "word" and signs is not None and _DIALOGUE.match(text, signs.start())
    return Span(signs.start() if signs and not is_dialogue else start, unit.end() if unit else end)


def _touch(text: str, left: KeptSpan, right: KeptSpan) -> bool:
    if right.span.start < left.span.end:
        return True
    role = {left.role, right.role}
    if left.written is not None or right.written is not None or "shortcut" in role:
        return False
    if right.span.start == left.span.end:
        return "break" not in role
    return not role & {"mark", "break"} and _JOINT.fullmatch(text, left.span.end, right.span.start) is not None


def _role(text: str, kept: KeptSpan, is_tag_at_end: bool) -> Role:
    """Return the role of a span: a mark if it touches a word ({0}Files, {i}Je, [^1]) or is a tag at a line end."""
    if kept.role not in ("word", "number"):
        return kept.role
    start, end = kept.span.pair
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    touches_word = re.search(LETTER, around) is not None
    return "mark" if touches_word or is_tag_at_end or _CLOSING.match(text, start) else kept.role
