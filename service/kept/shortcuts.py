"""Find marks of keyboard shortcuts: &File, _File and ファイル(&F). The model reads the text without them."""

import re
from collections.abc import Iterator

from service.text.spans import Span

_LETTER = r"[^\W\d_]"
_MARK = re.compile(
    rf"""
      [ ]?\([&_][A-Za-z0-9]\)                            # ファイル(&F)
    | (?<![\w&])&(?={_LETTER})(?!\w+;)                     # &File, but neither AT&T nor &amp;
    | (?<!{_LETTER})(?=[^a-zß-öø-ÿа-яё]){_LETTER}{{1,3}}(?P<inside>&)(?=[a-zß-öø-ÿа-яё]{{2}})  # E&xit, but not you&me
    | (?<!\w)_(?={_LETTER}+(?!\w))                         # _File, but neither _italic_ nor snake_case
    """,
    re.VERBOSE,
)
_MAX_WORDS = 8
"""Maximum number of words in a label; a longer line is a sentence with such a sign."""


def shortcuts(text: str) -> Iterator[Span]:
    """Yield the marks of lines with exactly one, in order: a line with two such signs is not a label."""
    if "&" not in text and "_" not in text:
        return
    start = 0
    for line in text.splitlines(keepends=True):
        marks = [*_MARK.finditer(line)]
        if len(marks) == 1 and line.count(sign_of(marks[0].group())) == 1 and len(line.split()) <= _MAX_WORDS:
            group = "inside" if marks[0]["inside"] else 0
            yield Span(start + marks[0].start(group), start + marks[0].end(group))
        start += len(line)


def sign_of(mark: str) -> str:
    return "_" if "_" in mark else "&"


def place_of(translation: str, letters: list[int], key: str) -> int | None:
    """Return the place of a mark among `letters`: before a word that begins with the key, else before the key, else
    before any letter."""
    same = [i for i in letters if translation[i].casefold() == key.casefold()]
    first = [i for i in same if not translation[max(0, i - 1) : i].isalnum()]
    return next(iter([*first, *same, *letters]), None)
