"""Words that touch a sign, as in door/window and red,green: models read the sign with blanks, as in most of their text.
The translation is written without them."""

import re
from collections.abc import Iterator, Sequence

from service.text.scripts import LETTER
from service.text.spans import Span

_WORD = rf"(?!\d)(?:{LETTER}(?<![\d_])){{2}}"
_DASHES = "\u2013\u2014"
_BEFORE_WORDS = rf"-\[{_DASHES}"
TOUCHING = re.compile(
    rf"(?<={LETTER}{LETTER})(?<![\d_])(?:(?P<between>[/|+=&→{_DASHES}])|(?P<behind>[,:;]|\.{{2,}}|…))(?={_WORD})"
    rf"|(?<!\S)(?P<before>[{_BEFORE_WORDS}])(?={_WORD})"
)
"""A sign that touches the word behind it: between two words, at the end of the word before it, or before a word."""
_BLANKS = r"[ \u00a0\u202f]*"


def apart(text: str) -> Iterator[tuple[Span, str]]:
    """Yield the signs that touch words with the form that a model reads instead, which has blanks."""
    for match in TOUCHING.finditer(text):
        yield Span(*match.span()), f"{' ' * (match.lastgroup == 'between')}{match.group()} "


def added_blanks(target: str, source: str, signs: Sequence[str]) -> list[Span]:
    """Return the blanks of a translated sentence beside signs that touch words in the original, in order. A sign that
    the source has with blanks elsewhere keeps them.

    Args:
        source: the sentence as it was read.
        signs: what was read for the signs that touch words in the original, with blanks.
    """
    blanks: list[Span] = []
    for read in {*signs}:
        sign = read.strip(" ")
        if source.count(sign) == signs.count(read):
            written = f"[-{_DASHES}]" if sign in _DASHES else re.escape(sign)
            before = "" if read[0] in _BEFORE_WORDS else _BLANKS
            for match in re.finditer(rf"({before}){written}({_BLANKS})(?=\w)", target):
                blanks += [Span(*match.span(side)) for side in (1, 2) if match[side]]
    return sorted(blanks, key=lambda span: span.pair)
