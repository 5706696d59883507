"""Use stored translations: those that are the answer are put into texts as kept spans are, similar ones are listed.

A whole passage is looked up first, then each of its lines and sentences. A sentence with tags inside keeps them at
their words only if the model translates it, so what is stored is then listed as a match.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.markup.passages import ParsedText, Passage
from service.memories.likeness import alike
from service.memories.recall import MAX_MATCHES, Recalled
from service.schemas.answers import MemoryMatch, Translation
from service.tasks.translation.reading import PreparedText
from service.text.sentences import sentence_spans, strip_span
from service.text.spans import Span

_LINE = re.compile(r"[^\r\n]+")


@dataclass(frozen=True)
class Lookup:
    """A text of a request, and what is looked up of each passage: all of it, its lines, and its sentences."""

    parsed: ParsedText
    spans: list[list[Span]]

    @classmethod
    def of(cls, parsed: ParsedText, language: str, split_sentences: bool) -> "Lookup":
        return cls(parsed, [_spans(passage.text, language, split_sentences) for passage in parsed.passages])

    @property
    def texts(self) -> list[str]:
        passages = zip(self.parsed.passages, self.spans, strict=True)
        return [span.of(passage.text) for passage, spans in passages for span in spans]

    def remember(self, found: dict[str, Recalled]) -> "Remembered":
        """Return the text with what was found."""
        answers, matches, passages = list[tuple[str, MemoryMatch]](), list[MemoryMatch](), list[Passage]()
        for passage, spans in zip(self.parsed.passages, self.spans, strict=True):
            recalled: list[tuple[Span, str]] = []
            taken = bytearray(len(passage.text))
            for span in spans:
                one = found.get(span.of(passage.text))
                if one is None or any(taken[span.start : span.end]):
                    continue
                matches += one.matches
                if one.used is not None and _has_tags_inside(passage, span):
                    matches.append(one.used)
                elif one.used is not None:
                    target = one.used.target.strip() if self.parsed.is_plain else alike(one.used.target)
                    recalled.append((span, target))
                    taken[span.start : span.end] = b"\1" * (span.end - span.start)
                    answers.append((target, one.used))
            passages.append(replace(passage, recalled=sorted(recalled, key=lambda pair: pair[0].pair)))
        remaining = iter(passages)
        parts = [next(remaining) if isinstance(part, Passage) else part for part in self.parsed.parts]
        return Remembered(replace(self.parsed, parts=parts), answers, [*_best(matches)])


@dataclass(frozen=True)
class Remembered:
    """A text with its stored translations."""

    parsed: ParsedText
    answers: list[tuple[str, MemoryMatch]]
    matches: list[MemoryMatch]

    def show(self, translation: Translation, prepared: PreparedText) -> None:
        """Add to an answer which stored translations are in it, and which are similar."""
        placeholders = (item for passage in prepared.passages for item in passage.protected.placeholders)
        written = {item.written for item in placeholders if item.role == "break"}
        translation.memory = [match for target, match in self.answers if target in written] or None
        translation.matches = self.matches or None


def _spans(text: str, language: str, split_sentences: bool) -> list[Span]:
    """Return all of a text, its lines, and its sentences, each once."""
    found = [Span(0, len(text)), *(Span(*line.span()) for line in _LINE.finditer(text))]
    found += sentence_spans(text, language) if split_sentences else ()
    return [*dict.fromkeys(stripped for span in found if (stripped := strip_span(text, span)) is not None)]


def _has_tags_inside(passage: Passage, span: Span) -> bool:
    return any(span.start < at < span.end for element in passage.elements for at in element.span.pair)


def _best(matches: Sequence[MemoryMatch]) -> Iterator[MemoryMatch]:
    """Return the most similar matches, each once."""
    by_text = {(match.source, match.memory): match for match in matches}
    yield from sorted(by_text.values(), key=lambda match: -match.similarity)[:MAX_MATCHES]
