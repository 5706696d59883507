"""Texts become manuscripts: what is kept is out of the way, and sentences are cut and tokenized."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from service.base.errors import UnprocessableRequest
from service.engine.beam_search import Search
from service.engine.scheduler import Sequence
from service.glossaries.terms import NO_TERMS, Terms
from service.markup import document, markdown, plain, xml
from service.markup.passages import Passage
from service.schemas.requests import NO_RULES, Format, TagRules, TranslateRequest
from service.segments.kept_spans import apostrophes, kept_spans
from service.segments.placeholders import Protected, protect
from service.segments.slots import MOST_SLOTS, Slot, SlotsOfText
from service.tasks.manuscript import Manuscript, Paragraph, Reading, Sentence
from service.text.languages import Direction
from service.text.sentences import ends_of, sentence_spans, stripped
from service.text.spans import Span, joined, overlapping
from service.text.tokenization import Tokenizer

NewSearch = Callable[[], Search]
MOST_INLINE = 500
"""Most tags, placeholders and symbols of one passage of a document: each is compared with the words around it."""


def read(text: str, request: TranslateRequest, terms: Terms = NO_TERMS) -> Reading:
    """A text as its format is read.

    Raises:
        UnprocessableRequest: patterns of the terms match too often.
    """
    if request.format == "text":
        return plain.read(text, (term.span for term in terms.found(text)))
    return parse(text, request.format, request.tags)


def parse(text: str, form: Format, rules: TagRules | None = None) -> document.Document:
    """A text of any format that has tags or marks."""
    if form == "xml":
        return xml.parse(text, rules or NO_RULES)
    return markdown.parse(text) if form == "markdown" else document.parse(text, rules or NO_RULES)


@dataclass(frozen=True)
class Reader:
    """Reads the texts of one request for one model.

    Args:
        limit: tokens of one sentence.
        new_search: how every sentence is searched.
        terms: what the request names.
    """

    tokenizer: Tokenizer
    slots: tuple[Slot, ...]
    limit: int
    direction: Direction
    new_search: NewSearch
    split_sentences: bool
    terms: Terms

    def manuscript(self, reading: Reading) -> Manuscript:
        """Raises UnprocessableRequest: a passage has too much that is kept, or one character is too many tokens."""
        paragraphs = []
        for passage in reading.passages:
            paragraphs.append(self._paragraph(passage))
            inline = len(passage.elements) + len(paragraphs[-1].protected.placeholders)
            if inline > MOST_INLINE and isinstance(reading, document.Document):
                raise UnprocessableRequest(
                    f"a passage of the text has {inline} inline tags, placeholders and symbols, "
                    f"the limit is {MOST_INLINE}"
                )
        return Manuscript(reading, paragraphs)

    def _paragraph(self, passage: Passage) -> Paragraph:
        """With other slots as often as the model would read some otherwise than as their tokens."""
        text = passage.text
        terms = self.terms.found(text)
        kept = kept_spans(text, passage.keep, self.direction.source_subtag, self.tokenizer.writes, terms)
        named = sorted([*passage.keep, *(term.span for term in terms)], key=lambda span: span.pair)
        slots = SlotsOfText(self.slots, text)
        ends = ends_of(text, self.direction.source_subtag) if kept else set[int]()
        while True:
            protected = protect(text, kept, apostrophes(text), slots.word)
            paragraph = Paragraph(protected, self._sentences(protected, passage, ends), named)
            if not kept or not self._misread(paragraph, slots):
                return paragraph

    def _misread(self, paragraph: Paragraph, slots: SlotsOfText) -> bool:
        """Give the sentences their slots; whether some placeholders need others, or none."""
        placeholders = paragraph.protected.placeholders
        places = [one.place for one in placeholders]
        misread: dict[int, bool] = {}
        too_many: list[int] = []
        starts = [*(sentence.span.start for sentence in paragraph.sentences), len(paragraph.protected.text)]
        for sentence, next_start in zip(paragraph.sentences, starts[1:], strict=True):
            inside = [number for number in range(*overlapping(places, sentence.span)) if placeholders[number].stand_in]
            source_ids = sentence.sequence.source_ids
            text = sentence.span.of(paragraph.protected.text)
            tokens = self.tokenizer.read(text, sentence.prefix) if inside else []
            for number in inside[:MOST_SLOTS]:
                slot = slots.of(number)
                assert slot is not None, "it has a stand-in"
                at = source_ids.index(slot.source_id) if source_ids.count(slot.source_id) == 1 else None
                if at is not None and tokens[at].moved(sentence.span.start).span == placeholders[number].place:
                    sentence.slots.append((number, slot))
                else:
                    misread[number] = slot.word.isdigit()
            if len(inside) > MOST_SLOTS:  # what is behind them would only come to stand in their place
                too_many += range(inside[MOST_SLOTS], bisect_left(places, next_start, key=lambda place: place.start))
            sentence.sequence.output.once_tokens = tuple(slot.target_id for _, slot in sentence.slots)
        slots.try_others(misread)
        slots.give_up(too_many)
        return bool(misread or too_many)

    def _sentences(self, protected: Protected, passage: Passage, ends: set[int]) -> list[Sentence]:
        text, prefix = protected.text, self.direction.source_prefix
        found = (stripped(text, span) for span in self._spans(protected, passage, ends))
        # The rest is the same in every language.
        spans = [span for span in found if span is not None and protected.has_words(span)]
        sentences = []
        for span, source_ids in self.tokenizer.encode_spans(text, spans, self.limit, prefix):
            search = self.new_search()
            sentences.append(Sentence(span, Sequence(source_ids, search, n_rows=search.beam_size), prefix))
        return sentences

    def _spans(self, protected: Protected, passage: Passage, ends: set[int]) -> list[Span]:
        if passage.sentences is not None:
            return joined(map(protected.edits.after, passage.sentences))
        if self.split_sentences:
            return [*protected.parted(sentence_spans(protected.text, self.direction.source_subtag), ends)]
        return [*protected.between_breaks()]
