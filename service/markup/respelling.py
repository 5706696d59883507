"""How a text is shown to models: what they have hardly seen is written as they have seen it.

Nobody sees a byte order mark, a soft hyphen, or whether an accent is a character of its own; a model that has not read
them makes another sentence of it.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize

from service.markup.edits import Edits, edited
from service.sentences import Span

OTHER_SPACE = re.compile(r"[^\S ]")
"""White space but the usual, such as the one that keeps two words on a line: models read a space."""

_INVISIBLE = r"[\x00-\x08\x0e-\x1b\x7f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+"
_LIGATURE = r"[\ufb00-\ufb04]"
_PUNCTUATION = {"´": "'", "`": "'", "…": "...", "—": " – ", "--": " – "}  # noqa: RUF001
_HARDLY_SEEN = re.compile(
    rf"(?P<invisible>{_INVISIBLE})"
    rf"|{_LIGATURE}"
    r"|(?<=[^\W\d_])[´`](?=[^\W\d_])|(?<=\w)(?:—|--)(?=\w)|…"  # noqa: RUF001
    r"|[^\W\d_][\u0300-\u036f]+"  # a letter and its accents
)


def respellings(text: str) -> Iterator[tuple[Span, str]]:
    """Parts of a text, in order, and how models have seen them."""
    for match in _HARDLY_SEEN.finditer(text):
        found = match.group()
        if match["invisible"]:
            usual = ""
        elif found in _PUNCTUATION:
            usual = _PUNCTUATION[found]
        else:
            usual = normalize("NFKC" if re.match(_LIGATURE, found) else "NFC", found)
        if usual != found:
            yield Span(*match.span()), usual


def respelled(text: str) -> tuple[str, Edits]:
    """The text as models have seen such texts."""
    return edited(OTHER_SPACE.sub(" ", text), respellings(text))
