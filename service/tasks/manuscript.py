"""A text on its way through a model: what its format makes of it, its paragraphs, their sentences."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.formats.document import Document
from service.formats.passages import Passage
from service.formats.plain import Plain
from service.tasks.attention import Seen
from service.text.icu_messages import has_icu_messages
from service.text.placeholders import Protected
from service.text.slots import Slot
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
            yield from _pieces_of_plain(self.reading.passage, self.paragraphs[0])
            return
        parts: list[str | Passage] = []
        remaining = iter(self.paragraphs)
        for part in self.reading.parts:
            parts.append(part)
            if isinstance(part, Passage):
                yield Manuscript(Document(parts), [next(remaining)])
                parts = []
        yield Manuscript(Document(parts), [])


def _pieces_of_plain(passage: Passage, paragraph: Paragraph) -> Iterator[Manuscript]:
    protected, sentences = paragraph.protected, paragraph.sentences
    start = first = 0
    for n, sentence in enumerate(sentences):
        is_last = n + 1 == len(sentences)
        end = len(protected.text) if is_last else sentence.span.end
        if not (is_last or _may_be_cut(passage, protected, end)):
            continue
        part, n_before = protected.part(start, end)
        original_start = protected.original_position(start) if start else 0
        moved = [
            replace(
                one,
                span=Span(one.span.start - start, one.span.end - start),
                slots=[(number - n_before, slot) for number, slot in one.slots],
            )
            for one in sentences[first : n + 1]
        ]
        yield Manuscript(Plain(part.original, passage.part(original_start, part.original)), [Paragraph(part, moved)])
        start, first = end, n + 1
    if not sentences:
        yield Manuscript(Plain(protected.original, passage), [paragraph])


def _may_be_cut(passage: Passage, protected: Protected, end: int) -> bool:
    places = [placeholder.place for placeholder in protected.placeholders]
    if has_icu_messages(protected.original) or any(place.start < end < place.end for place in places):
        return False
    position = protected.original_position(end)
    return not any(element.span.start < position < element.span.end for element in passage.elements)
