"""Words that touch a sign, as in door/window and red,green: models read the sign with blanks, as in most of their text.
The translation is written without them."""

import re
from collections.abc import Iterator, Sequence

from service.text.scripts import LETTER
from service.text.spans import Span

_WORD = rf"(?!\d)(?:{LETTER}(?<![\d_])){{2}}"
_DASHES = "\u2013\u2014"
_BEFORE_WORDS = f"-[{_DASHES}"
TOUCHING = re.compile(
    rf"(?=[/|+=&→,:;.…{re.escape(_BEFORE_WORDS)}])(?:"  # it rules out most characters at once
    rf"(?<={LETTER}{LETTER})(?<![\d_])(?:(?P<between>[/|+=&→{_DASHES}])|(?P<behind>[,:;]|\.{{2,}}|…))(?={_WORD})"
    rf"|(?<!\S)(?P<before>[{re.escape(_BEFORE_WORDS)}])(?={_WORD}))"
)
"""A sign that touches the word behind it: between two words, at the end of the word before it, or before a word."""
_BLANK = r"[ \u00a0\u202f]"


def apart(text: str) -> Iterator[tuple[Span, str]]:
    """Yield the signs that touch words with the form that a model reads instead, which has blanks."""
    for match in TOUCHING.finditer(text):
        yield Span(*match.span()), f"{' ' * (match.lastgroup == 'between')}{match.group()} "


def excess_blanks(target: str, source: str, signs: Sequence[str]) -> list[Span]:
    """Return the blanks of a translated sentence beside signs that touch words in the original, in order. All stay
    where the source has the sign with blanks too, or the translation has it more or less often.

    Args:
        source: the sentence as it was read.
        signs: what was read for the signs that touch words in the original, with blanks.
    """
    of_pattern: dict[str, list[str]] = {}
    for read in signs:
        sign = read.strip(" ")
        if read[0] in _BEFORE_WORDS:
            pattern = rf"(?<!\w){re.escape(sign)}({_BLANK}+)(?=\w)"
        elif sign in _DASHES:
            pattern = rf"({_BLANK}+)[-{_DASHES}]({_BLANK}+)(?=\w)"
        else:
            pattern = rf"({_BLANK}*){re.escape(sign)}({_BLANK}*)(?=\w)"
        of_pattern.setdefault(pattern, []).append(sign)
    blanks: list[Span] = []
    for pattern, alike in of_pattern.items():
        matches = [*re.finditer(pattern, target)]
        if sum(map(source.count, {*alike})) == len(alike) == len(matches):
            sides = ((match, side) for match in matches for side in range(1, len(match.groups()) + 1))
            blanks += [Span(*match.span(side)) for match, side in sides if match[side]]
    return sorted(blanks, key=lambda span: span.pair)
