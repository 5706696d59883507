"""Detects the languages of texts among those that are served."""

from collections.abc import Collection, Iterator
from functools import partial

from service.schemas.requests import Format, TagRules
from service.segments.kept_spans import kept_spans
from service.tasks.reading import parse
from service.text.identification import Identified, identified, is_loaded
from service.text.spans import edited
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, beside_each

MAX_READ_CHARACTERS = 1_000
"""Only so many characters are read, in a quarter of a millisecond; more would not change the result."""
COST_CHARACTERS = 400
"""The detection of one text takes as long as the tokenization of so many characters."""


async def detected(
    texts: list[str], form: Format, served: Collection[str], timeout_s: float, rules: TagRules | None = None
) -> list[list[Identified]]:
    """Return the possible languages of each text, the most probable first; none for a text that has nothing to
    translate.

    Raises:
        DeadlinePassed: detection took longer than `timeout_s`.
    """
    n_characters = sum(map(len, texts)) + COST_CHARACTERS * len(texts)
    to_thread = 0 if is_loaded() else MAX_CHARACTERS_WITHOUT_THREAD
    look = partial(_detected, form=form, rules=rules, served=served)
    return await beside_each(texts, look, n_characters + to_thread, timeout_s)


def _detected(text: str, form: Format, rules: TagRules | None, served: Collection[str]) -> list[Identified]:
    words = ""
    for piece in _pieces(text, form, rules):
        spoken, _ = edited(piece, [(kept.span, " ") for kept in kept_spans(piece)])
        if any(map(str.isalpha, spoken)):
            words += f"{spoken}\n"
        if len(words) >= MAX_READ_CHARACTERS:
            break
    return identified(words[:MAX_READ_CHARACTERS], served) if words else []


def _pieces(text: str, form: Format, rules: TagRules | None) -> Iterator[str]:
    """Yield the parts of a text that are translated, each short enough to be searched quickly."""
    for one in [text] if form == "text" else _passages(text, form, rules):
        for start in range(0, len(one), MAX_READ_CHARACTERS):
            yield one[start : start + MAX_READ_CHARACTERS]


def _passages(text: str, form: Format, rules: TagRules | None) -> Iterator[str]:
    for passage in parse(text, form, rules).passages:
        yield edited(passage.text, [(span, " ") for span in passage.keep])[0]
