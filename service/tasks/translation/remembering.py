"""Use stored translations: those that are the answer are put into texts as kept spans are, similar ones are listed.

A text with tags is looked up as it is written first. Then each passage is looked up, and its lines and sentences. If a
sentence with tags inside is stored without tags, alignment places them in its translation, as it does in the model's.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from service.markup import plain
from service.markup.passages import ParsedText, Passage
from service.memories.likeness import alike
from service.memories.recall import MAX_MATCHES, Recalled
from service.schemas.answers import MemoryMatch, Translation
from service.tasks.translation.reading import PreparedText
from service.text.sentences import sentence_spans, strip_span
from service.text.spans import Replacement, Span

_LINE = re.compile(r"[^\r\n]+")


@dataclass(frozen=True)
class Lookup:
    """A text of a request, and what is looked up of each passage: all of it, its lines, and its sentences.

    Args:
        places_tags: whether alignment can place tags in stored translations; not if another leg translates them.
    """

    written: str
    parsed: ParsedText
    language: str
    split_sentences: bool
    places_tags: bool

    @cached_property
    def sentences(self) -> list[list[Span]]:
        """The sentences of each passage, or its lines if it is not split."""
        texts = [passage.text for passage in self.parsed.passages]
        return [sentence_spans(text, self.language) if self.split_sentences else _lines(text) for text in texts]

    @cached_property
    def spans(self) -> list[list[Span]]:
        """The spans of each passage that are looked up."""
        passages = zip(self.parsed.passages, self.sentences, strict=True)
        return [_spans(passage.text, sentences) for passage, sentences in passages]

    @property
    def has_tags(self) -> bool:
        return any(passage.elements for passage in self.parsed.passages)

    @property
    def texts(self) -> list[str]:
        passages = zip(self.parsed.passages, self.spans, strict=True)
        texts = [span.of(passage.text) for passage, spans in passages for span in spans]
        return [self.written, *texts] if self.has_tags else texts

    def remember(self, found: dict[str, Recalled]) -> "Remembered":
        """Return the text with what was found."""
        if self.has_tags and (whole := found.get(self.written)) is not None and whole.used is not None:
            return self._as_stored(whole.used)
        answers, matches, passages = list[tuple[str, MemoryMatch]](), list[MemoryMatch](), list[Passage]()
        for passage, spans, sentences in zip(self.parsed.passages, self.spans, self.sentences, strict=True):
            recalled, known = list[Replacement](), list[Replacement]()
            alone = {*sentences} if self.places_tags else set[Span]()
            taken = bytearray(len(passage.text))
            for span in spans:
                one = found.get(span.of(passage.text))
                if one is None or any(taken[span.start : span.end]):
                    continue
                matches += one.matches
                if one.used is None:
                    continue
                target = one.used.target.strip() if self.parsed.is_plain else alike(one.used.target)
                has_tags_inside = _has_tags_inside(passage, span)
                if has_tags_inside and span not in alone:
                    matches.append(one.used)
                    continue
                (known if has_tags_inside else recalled).append((span, target))
                taken[span.start : span.end] = b"\1" * (span.end - span.start)
                answers.append((target, one.used))
            recalled.sort(key=lambda pair: pair[0].pair)
            passages.append(replace(passage, recalled=recalled, known=known))
        remaining = iter(passages)
        parts = [next(remaining) if isinstance(part, Passage) else part for part in self.parsed.parts]
        return Remembered(replace(self.parsed, parts=parts), answers, matches)

    def _as_stored(self, used: MemoryMatch) -> "Remembered":
        """Return a text that is stored with its tags."""
        span, target = strip_span(self.written, Span(0, len(self.written))), used.target.strip()
        assert span is not None, "it has tags"
        passage = Passage(self.written, self.written, notation=plain.NOTATION, recalled=[(span, target)])
        return Remembered(ParsedText([passage], is_plain=True), [(target, used)], [])


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
        written |= {sentence.beginning.text for sentence in prepared.sentences if sentence.beginning is not None}
        translation.memory = [match for target, match in self.answers if target in written] or None
        unused = [match for target, match in self.answers if target not in written]
        translation.matches = [*_best([*self.matches, *unused])] or None


def _spans(text: str, sentences: Iterable[Span]) -> list[Span]:
    """Return all of a text, its lines, and its sentences, each once."""
    spans = [Span(0, len(text)), *_lines(text), *sentences]
    return [*dict.fromkeys(stripped for span in spans if (stripped := strip_span(text, span)) is not None)]


def _lines(text: str) -> list[Span]:
    return [Span(*line.span()) for line in _LINE.finditer(text)]


def _has_tags_inside(passage: Passage, span: Span) -> bool:
    return any(span.start < at < span.end for element in passage.elements for at in element.span.pair)


def _best(matches: Sequence[MemoryMatch]) -> Iterator[MemoryMatch]:
    """Return the most similar matches, each once."""
    ranked = sorted(matches, key=lambda match: match.similarity)
    by_text = {(match.source, match.memory): match for match in ranked}
    yield from sorted(by_text.values(), key=lambda match: -match.similarity)[:MAX_MATCHES]
