"""Words of a text, and what becomes of a document that is not translated."""

import re

import numpy as np

from service.kept.restoration import keep_original
from service.markup.passages import ParsedText
from service.text.aligned_words import AlignedWords
from service.text.spans import Span
from tests.service.stand_ins import protect, restore


def words(text: str) -> list[Span]:
    return [Span(*match.span()) for match in re.finditer(r"\w+|[^\w\s]+", text)]


def unchanged(document: ParsedText) -> str:
    return document.render(keep_original(protect(passage.text, passage.keep)) for passage in document.passages)


def aligned(source: str, target: str, links: str | None) -> AlignedWords:
    """Words of both, where each target word attends equally to the source words that it is linked to ("0-0 1-2");
    by default to the one with the same number."""
    source_words, target_words = words(source), words(target)
    if links is None:
        return AlignedWords(source_words, target_words, np.eye(len(target_words), len(source_words)))
    mass = np.zeros((len(target_words), len(source_words)), np.float32)
    for link in links.split():
        s, t = map(int, link.split("-"))
        mass[t, s] = 1
    return AlignedWords(source_words, target_words, mass / np.maximum(1, mass.sum(axis=1, keepdims=True)))


def rendered(document: ParsedText, *translations: tuple[str, str | None]) -> str:
    """The document with each of its passages that is more than placeholders translated, as (text, links) says."""
    remaining = iter(translations)
    restored = []
    for passage in document.passages:
        protected = protect(passage.text, passage.keep)
        if protected.has_words(Span(0, len(protected.text))):
            text, links = next(remaining)
            restored.append(restore(protected, text, [aligned(protected.text, text, links)]))
        else:
            restored.append(keep_original(protected))
    assert next(remaining, None) is None
    return document.render(restored)
