"""Line breaks within sentences: a sentence is read without them, and its translation is cut into lines anew.

Only the lines tell whether a break is within a sentence. Other breaks end a text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from service.documents.wrapping import visible_text, wrap
from service.text.languages import subtag
from service.text.scripts import is_unspaced
from service.text.sentences import MARK

BREAK = re.compile(r'<br id="(\d+)">')
BEGINS_ELEMENT, ENDS_ELEMENT = re.compile(r"<(?:ins|span)\b[^<>]*>\s*$"), re.compile(r"\s*</(?:ins|span)>")
"""A break at the edge of an element, such as an insertion, belongs to it."""
FIRST_WORD = re.compile(r"[\"'“„«‘(]*([^\W\d_]+(?:['’-][^\W\d_]+)*)(?=[\s,;.!?)\"'”»’]|$)")  # noqa: RUF001
"""The first word of a line, unless it is an address such as www.example.org or a@example.org."""
ENDS_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»」』)]*$")  # noqa: RUF001
ENDS_READING = re.compile(rf"[:：]$|{ENDS_SENTENCE.pattern}")
LABEL = re.compile(r"[^\s:：]+(?: [^\s:：]+){0,2} ?(?::(?=\s|$)|：)")
"""A label at the start of a line: "Phone: 123"."""
JOINING_KANA = re.compile(r".{3}[をにへのはがとでも、，]$")
"""The end of a Japanese line with a particle or a comma, after which the sentence goes on."""
CAPITALIZED = {"de", "lb"}
"""Languages whose nouns begin with capitals: after a small word, a capital at the start of a line begins nothing."""
MAX_SHORT = 3
"""A word with at most this many letters is mostly an article, a preposition or the like."""
AMOUNT = re.compile(r"[^\w\s]?\d")
"""A number at the start of a line, perhaps with a sign of a currency."""
FULL_LINE, FULL_JAPANESE_LINE = 40, 15
"""A line with at least as many characters may end because it is full."""
MIN_WORDS, MEAN_WORDS = 2, 3
"""The least number of words in each line of a title, and the least mean of three lines or more. Others are a list."""


@dataclass
class Lines:
    """Lines that are read as one: the numbers of the breaks between them, and their lengths."""

    numbers: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)


def join_lines(html: str, is_layout: Callable[[int], bool], language: str | None = None) -> tuple[str, list[Lines]]:
    """Return a text without the breaks (<br id="0">) within sentences, and the lines between its other breaks.
    `is_layout` returns whether the break with a number may be within a sentence."""
    parts = BREAK.split(html)
    shown = [visible_text(part).strip() for part in parts[::2]]
    layout = [
        is_layout(int(number)) and not (BEGINS_ELEMENT.search(before) or ENDS_ELEMENT.match(after))
        for before, number, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False)
    ]
    joined, lines = [parts[0]], [Lines(lengths=[len(shown[0])])]
    for i, is_within in enumerate(_within_sentences(shown, layout, subtag(language or "") in CAPITALIZED)):
        number, line = parts[2 * i + 1 : 2 * i + 3]
        if is_within:
            space = "" if is_unspaced(shown[i][-1] + shown[i + 1][0]) else " "
            joined[-1] = joined[-1].rstrip()  # it has a text
            joined += [space, line.lstrip()]
            lines[-1].numbers.append(int(number))
        else:
            joined += [f'<br id="{number}">', line]
            lines.append(Lines())
        lines[-1].lengths.append(len(shown[i + 1]))
    return "".join(joined), lines


def part_lines(translation: str, lines: Sequence[Lines]) -> str:
    """Return the translation of a text with all of its breaks. If it has lost a break, joined lines stay joined."""
    parts = BREAK.split(translation)
    if len(parts[::2]) != len(lines):
        return translation
    for i, joined in enumerate(lines):
        if joined.numbers:
            inside = parts[2 * i].strip()
            before, after = parts[2 * i].split(inside) if inside else (parts[2 * i], "")
            first, *others = wrap(inside, joined.lengths, between_phrases=True)
            breaks = (f'<br id="{number}">{line}' for number, line in zip(joined.numbers, others, strict=True))
            parts[2 * i] = "".join([before, first, *breaks, after])
        if 2 * i + 1 < len(parts):
            parts[2 * i + 1] = f'<br id="{parts[2 * i + 1]}">'
    return "".join(parts)


def _within_sentences(lines: Sequence[str], layout: Sequence[bool], has_capitals: bool) -> list[bool]:
    """Return for each break whether it is within a sentence. A line that begins with a small letter continues the line
    before it, in a sentence or a title. If a full stop ends the last line, so do numbers, nouns with capitals, and
    lines after a full line or a short word."""
    pairs = [*zip(pairwise(lines), layout, strict=True)]
    continues = [may_be and _continues(*pair) for pair, may_be in pairs]
    may_continue = [may_be and _may_continue(*pair, has_capitals) for pair, may_be in pairs]
    within = [False] * len(pairs)
    for first, last in _runs(may_continue):
        if ENDS_SENTENCE.search(lines[last]):
            within[first:last] = [True] * (last - first)
    for first, last in _runs(continues):
        if _is_title(lines[first : last + 1]):
            within[first:last] = [True] * (last - first)
    return within


def _may_continue(before: str, after: str, has_capitals: bool) -> bool:
    if _are_apart(before, after):
        return False
    is_full = len(before) >= (FULL_JAPANESE_LINE if is_unspaced(before[-1]) else FULL_LINE)
    could_be_name = before.split()[-1][0].islower() and (has_capitals or _ends_with_short_word(before))
    return is_full or could_be_name or AMOUNT.match(after) is not None or _continues(before, after)


def _ends_with_short_word(line: str) -> bool:
    """No sentence ends with a word such as "of", "für" or "в", but a name may follow. After a number it is a unit."""
    *others, last = line.split()
    return bool(others) and last.isalpha() and len(last) <= MAX_SHORT and not others[-1][-1].isdigit()


def _continues(before: str, after: str) -> bool:
    word = FIRST_WORD.match(after)
    is_within = JOINING_KANA.search(before) is not None or (word is not None and word[1][0].islower())
    return is_within and not _are_apart(before, after)


def _are_apart(before: str, after: str) -> bool:
    return not before or not after or bool(ENDS_READING.search(before) or MARK.match(after) or LABEL.match(after))


def _is_title(lines: Sequence[str]) -> bool:
    if is_unspaced(lines[0]):
        return True
    words = [len(line.split()) for line in lines]
    enough = min(words) >= MIN_WORDS and (len(lines) == 2 or sum(words) >= MEAN_WORDS * len(lines))
    return enough and not lines[0][0].islower()


def _runs(joined: Sequence[bool]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for i, is_joined in enumerate(joined):
        if is_joined and runs and runs[-1][1] == i:
            runs[-1] = runs[-1][0], i + 1
        elif is_joined:
            runs.append((i, i + 1))
    return runs
