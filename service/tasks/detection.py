"""Detect the languages of texts among the served ones."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from service.kept.kept_spans import kept_spans
from service.schemas.requests import Format, TagRules
from service.tasks.translation.reading import parse_markup
from service.text.identification import IdentifiedLanguage, identify, is_loaded
from service.text.spans import replace_spans
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, run_on_each

MAX_READ_CHARACTERS = 1_000
"""Number of characters that are read, in a quarter of a millisecond; more would not change the result."""
COST_CHARACTERS = 400
"""Detection of a text takes as long as the tokenization of this many characters."""


async def detect_languages(
    texts: list[str], form: Format, served: Collection[str], timeout_s: float, rules: TagRules | None = None
) -> list[list[IdentifiedLanguage]]:
    """Return the possible languages of each text, the most probable first; none for a text without words. Raises
    DeadlinePassed: detection took longer than `timeout_s`."""
    n_characters = sum(map(len, texts)) + COST_CHARACTERS * len(texts)
    to_thread = 0 if is_loaded() else MAX_CHARACTERS_WITHOUT_THREAD
    look = partial(_detect, form=form, rules=rules, served=served)
    return await run_on_each(texts, look, n_characters + to_thread, timeout_s)


def _detect(text: str, form: Format, rules: TagRules | None, served: Collection[str]) -> list[IdentifiedLanguage]:
    words = ""
    for piece in _pieces(text, form, rules):
        spoken, _ = replace_spans(piece, [(kept.span, " ") for kept in kept_spans(piece)])
        if any(map(str.isalpha, spoken)):
            words += f"{spoken}\n"
        if len(words) >= MAX_READ_CHARACTERS:
            break
    return identify(words[:MAX_READ_CHARACTERS], served) if words else []


def _pieces(text: str, form: Format, rules: TagRules | None) -> Iterator[str]:
    parts: Iterable[str] = [text]
    if form != "text":
        passages = parse_markup(text, form, rules).passages
        parts = (replace_spans(passage.text, [(span, " ") for span in passage.keep])[0] for passage in passages)
    for part in parts:
        for start in range(0, len(part), MAX_READ_CHARACTERS):
            yield part[start : start + MAX_READ_CHARACTERS]
