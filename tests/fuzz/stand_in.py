"""A stand-in for a model, in linear time: it writes words in capitals, backwards or with signs that formats escape."""

import re

import numpy as np

from service.kept.restoration import Restored
from service.markup import html, markdown
from service.markup.passages import ParsedText
from service.text.aligned_words import AlignedWords
from service.text.spans import Span
from tests.service.stand_ins import protect, restore

WORD = re.compile(r"\w+|[^\w\s]+")
WORDS_AT_ONCE = 40
"""Words of a sentence: each has a matrix of its own."""
SIGNS = "\"'\\<&>]]> = # {0} %s\u2028é犬"
"""What formats write in another way."""
WAYS = ("capitals", "backwards", "signs")


def translation(text: str, kind: str, way: str) -> str:
    """Return a translation of a text in a format.

    Args:
        kind: the format of the text, as in `TranslateRequest`.
        way: one of `WAYS`.
    """
    if kind == "text":
        return {"capitals": text.upper(), "backwards": text[::-1], "signs": text + SIGNS}[way]
    return rendered(html.parse(text) if kind == "html" else markdown.parse(text), way)


def rendered(document: ParsedText, way: str) -> str:
    """Return a document with a translation of each passage."""
    return document.render(_translated(passage.text, passage.keep, way) for passage in document.passages)


def _translated(text: str, keep: object, way: str) -> Restored:
    protected = protect(text, keep)  # type: ignore[arg-type]
    stand_ins = {placeholder.stand_in for placeholder in protected.placeholders}
    new: list[str] = []
    aligned: list[AlignedWords] = []
    length = 0
    source = words_of(protected.text)
    for first in range(0, len(source), WORDS_AT_ONCE):
        words = source[first : first + WORDS_AT_ONCE]
        ordered = words[::-1] if way == "backwards" else words
        written = [one if (one := word.of(protected.text)) in stand_ins else one.upper() for word in ordered]
        if way == "signs":
            written.append(SIGNS.split()[first % len(SIGNS.split())])
        sentence = " ".join(written) + " "
        target = [word.moved(length) for word in words_of(sentence)]
        mass = np.eye(len(target), len(words), dtype=np.float32)
        aligned.append(AlignedWords(words, target, mass[:, ::-1] if way == "backwards" else mass))
        new.append(sentence)
        length += len(sentence)
    return restore(protected, "".join(new).rstrip(), aligned)


def words_of(text: str) -> list[Span]:
    return [Span(*match.span()) for match in WORD.finditer(text)]
