"""Stand-ins that tests know, whichever models copy best, in place of what is kept."""

from collections.abc import Iterable
from unicodedata import category

from service.text import placeholders
from service.text.kept_spans import kept_spans
from service.text.placeholders import Protected
from service.text.spans import Span
from service.text.stand_ins import StandInKind

KNOWN: dict[StandInKind, tuple[str, ...]] = {
    "person": ("Tom", "Paul", "David", "Alice", "Emma"),
    "place": ("Boston", "Chicago", "Berlin"),
    "number": ("37", "48", "53"),
}


def writes(text: str) -> bool:
    """What a vocabulary writes that has all letters, and no signs."""
    return all(c.isascii() or (category(c)[0] != "S" and category(c) != "Me") for c in text)


def protect(text: str, keep: Iterable[Span] = ()) -> Protected:
    return placeholders.protect(text, kept_spans(text, keep, writes=writes))


def kept(text: str) -> list[str]:
    return [one.span.of(text) for one in kept_spans(text)]
