"""Words that stand for what is kept in tests, as a model's slots do; a test's translation has them as they are."""

import re
from collections.abc import Iterable, Sequence
from itertools import cycle
from unicodedata import category

from service.kept import placeholders, restoration
from service.kept.kept_spans import KeptSpan, kept_spans
from service.kept.placeholders import Protected
from service.kept.restoration import Restored
from service.text.aligned_words import AlignedWords
from service.text.spans import Span

NAMES = ("Tom", "Paul", "David", "Alice", "Emma")
PLACES = ("Boston", "Chicago", "Berlin")
NUMBERS = ("37", "48", "53")
_NAMED = re.compile(r"<?(?:mailto:)?[\w.%+-]+@|[$%#]?\{|[$:!@][A-Za-z_]|%(?:\w+%|[sc@])|__")


def can_write(text: str) -> bool:
    """What a vocabulary writes that has all letters, and no signs."""
    return all(c.isascii() or (category(c)[0] != "S" and category(c) != "Me") for c in text)


def protect(text: str, keep: Sequence[Span] = (), terms: Sequence[KeptSpan] = ()) -> Protected:
    """With words that the text does not have: names for what is in braces and the like, places for others."""
    names, places, numbers = (
        cycle([word for word in words if word not in text] or ["Xxx"]) for words in (NAMES, PLACES, NUMBERS)
    )
    found = kept_spans(text, keep, can_write=can_write, terms=terms)

    def stand_in(number: int, is_number: bool) -> str:
        is_name = _NAMED.match(found[number].span.of(text))
        return next(numbers if is_number else names if is_name else places)

    return placeholders.protect(text, found, stand_in=stand_in)


def restore(protected: Protected, translated: str, aligned: Iterable[AlignedWords] = ()) -> Restored:
    return restoration.restore(protected, translated, slots_in(protected, translated), aligned)


def slots_in(protected: Protected, translated: str) -> dict[int, Span]:
    """Where a translation has the words of placeholders, each once."""
    places: dict[str, list[Span]] = {}
    for word in {one.stand_in for one in protected.placeholders} - {""}:
        matches = re.finditer(rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])", translated)
        places[word] = [Span(*match.span()) for match in matches]
    return {i: places[one.stand_in].pop(0) for i, one in enumerate(protected.placeholders) if places.get(one.stand_in)}


def kept(text: str) -> list[str]:
    return [one.span.of(text) for one in kept_spans(text)]
