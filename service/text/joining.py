"""Translated sentences as a text again: the space between them, and the marks at their ends, as a language has them."""

import re
from collections.abc import Iterable, Sequence

from service.text.scripts import is_unspaced
from service.text.spans import Span

UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "zh"})
"""Languages that write no space between sentences."""
_WIDE = {language: dict(zip(".!?", "。！？", strict=True)) for language in ("ja", "zh")}
"""Marks that end a sentence, of languages that need no space behind them."""

_ENDED = re.compile(r"[.!?](?=[\"'”’)\]]*$)")  # noqa: RUF001
_LAST_MARKS = re.compile(r"(?<![.!?])(?:\.|[!?]+)(?=[\"'”’)\]」』）]*$)")  # noqa: RUF001


def with_wide_marks(target: str, source: str, language: str) -> str:
    """A translated sentence, as long as before, that ends as its language writes it where its source has such an end.

    Dots of what is left out stay as they are, and so does what has no other letters than English.
    """
    if language not in _WIDE or not is_unspaced(target) or not _ENDED.search(source):
        return target
    return _LAST_MARKS.sub(lambda marks: "".join(_WIDE[language][mark] for mark in marks.group()), target)


def join(
    text: str, sources: Sequence[Span], targets: Iterable[str], source_language: str, target_language: str
) -> tuple[str, list[Span]]:
    """The text with each source span replaced by its target, and where the targets stand in the result.

    Where the source needs no space between sentences and the target language does, one is put in. Where it is the other
    way round, spaces are left out, and two sentences that no mark would part get one.
    """
    space = " " if source_language in UNSPACED and target_language not in UNSPACED else ""
    wide = _WIDE.get(target_language, {}) if source_language not in UNSPACED else {}
    pieces: list[str] = []
    spans, position, length = [], 0, 0
    for source, target in zip(sources, targets, strict=True):
        gap = text[position : source.start] or (space if position else "")
        if wide and pieces and not gap.strip(" ") and is_unspaced(pieces[-1][-1:] + target[:1]):
            gap = wide.get(text[position - 1], "") if pieces[-1][-1:].isalnum() else ""
        spans.append(Span(length + len(gap), length + len(gap) + len(target)))
        pieces += [gap, target]
        position, length = source.end, spans[-1].end
    return "".join([*pieces, text[position:]]), spans
