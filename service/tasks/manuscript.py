"""A text on its way through a model: what its format makes of it, its paragraphs, their sentences."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.markup.document import Document
from service.markup.passages import Passage
from service.markup.plain import Plain
from service.segments.icu_messages import has_icu_messages
from service.segments.placeholders import Protected
from service.segments.slots import Slot
from service.tasks.attention import Seen
from service.text.spans import Span, overlapping

Reading = Plain | Document
"""A text as its format is read."""


@dataclass
class Sentence:
    """A sentence of a paragraph, or a part of one that is short enough for the model, on its way through the model."""

    span: Span
    """In the protected text of its paragraph."""
    sequence: Sequence[Search]
    prefix: tuple[int, ...] = ()
    """Tokens of the source that stand before the sentence."""
    slots: list[tuple[int, Slot]] = field(default_factory=list)
    """What stands for placeholders of its paragraph, by their numbers."""
    rewound: Hypothesis | None = None
    """In place of the best one, where that lacked some of the slots."""
    seen: Sequence[Seen] | None = None

    def hypothesis(self, rank: int = 0) -> Hypothesis:
        """The best one; another rank is another of the best, or the last of them."""
        if rank == 0 and self.rewound is not None:
            return self.rewound
        hypotheses = self.sequence.output.best()
        return hypotheses[min(rank, len(hypotheses) - 1)]

    @property
    def has_all_slots(self) -> bool:
        token_ids = self.hypothesis().token_ids
        return all(slot.target_id in token_ids for _, slot in self.slots)


@dataclass(frozen=True)
class Paragraph:
    """A text, or a passage of a document, and its sentences."""

    protected: Protected
    sentences: list[Sentence]
    named: list[Span] = field(default_factory=list)
    """Of the original text: what the request, or the format, has kept."""

    @property
    def needs_alignment(self) -> bool:
        """Whether a placeholder has no slot in the translation of its sentence."""
        with_slots = {number for sentence in self.sentences for number, _ in sentence.slots}
        spans = [sentence.span for sentence in self.sentences]
        return not all(one.has_all_slots for one in self.sentences) or any(
            number not in with_slots and (not one.stand_in or len(set(overlapping(spans, one.place))) == 2)
            for number, one in enumerate(self.protected.placeholders)
        )


@dataclass(frozen=True)
class Manuscript:
    """One text of a request, and a paragraph for each of its passages."""

    reading: Reading
    paragraphs: list[Paragraph]

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph.sentences]

    @property
    def has_tags(self) -> bool:
        return isinstance(self.reading, Document) or bool(self.reading.passage.elements)

    @property
    def needs_alignment(self) -> bool:
        """Whether something must be put back where its words went."""
        return self.has_tags or any(paragraph.needs_alignment for paragraph in self.paragraphs)

    def pieces(self) -> Iterator["Manuscript"]:
        """The same in pieces, in order, that can be translated one by one: a passage of a document, a sentence of a
        plain text, or more where something goes on from one sentence to the next."""
        if isinstance(self.reading, Plain):
            last_ones = [*_last_ones(self.reading.passage, self.paragraphs[0])]
            yield from _pieces_of_plain(self.reading.passage, self.paragraphs[0], last_ones) if last_ones else [self]
            return
        parts: list[str | Passage] = []
        remaining = iter(self.paragraphs)
        for part in self.reading.parts:
            parts.append(part)
            if isinstance(part, Passage):
                yield Manuscript(Document(parts), [next(remaining)])
                parts = []
        yield Manuscript(Document(parts), [])


def _last_ones(passage: Passage, paragraph: Paragraph) -> Iterator[int]:
    """Numbers of the sentences behind which a plain text may be cut: nothing goes on there, or touches them."""
    protected = paragraph.protected
    if has_icu_messages(protected.original):
        return
    places = [one.place for one in protected.placeholders]
    shortcuts = {one.place.start for one in protected.placeholders if one.reads == "shortcut"}
    outermost = [element.span for element in passage.elements if element.parent is None]
    for n, sentence in enumerate(paragraph.sentences[:-1]):
        end = sentence.span.end
        position = protected.original_position(end)
        first, last = overlapping(places, Span(end, end))
        ends_line = protected.original[position : position + 1] in ("\n", "\r")  # which parts even what touches it
        element = bisect_left(outermost, position + ends_line, key=lambda span: span.end)
        touches = element < len(outermost) and outermost[element].start <= position
        if first == last and end not in shortcuts and not touches:
            yield n


def _pieces_of_plain(passage: Passage, paragraph: Paragraph, last_ones: list[int]) -> Iterator[Manuscript]:
    protected, sentences = paragraph.protected, paragraph.sentences
    start = first = original_start = 0
    for n in (*last_ones, len(sentences) - 1):
        end = sentences[n].span.end if n + 1 < len(sentences) else len(protected.text)
        part, n_before = protected.part(start, end)
        original_end = original_start + len(part.original)
        moved = [
            replace(one, span=one.span.moved(-start), slots=[(number - n_before, slot) for number, slot in one.slots])
            for one in sentences[first : n + 1]
        ]
        here, there = (
            bisect_left(paragraph.named, position, key=lambda span: span.start)
            for position in (original_start, original_end)
        )
        named = [span.moved(-original_start) for span in paragraph.named[here:there]]
        reading = Plain(part.original, passage.part(original_start, part.original))
        yield Manuscript(reading, [Paragraph(part, moved, named)])
        start, first, original_start = end, n + 1, original_end
