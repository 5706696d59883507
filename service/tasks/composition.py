"""Finished sentences become answers: texts again, with what else the request asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

import numpy as np

from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.formats.document import Document
from service.formats.plain import Marked
from service.schemas.answers import Alternative, Attention, Segment, Translation
from service.tasks.alignment import AlignedSentence, View, after_prefix, aligned, split_words, word_weights, words_of
from service.tasks.attention import Seen, Selection, prefix_of
from service.text.aligned_words import AlignedWords
from service.text.languages import Direction
from service.text.placeholders import Protected
from service.text.restoration import Restored, restore, untranslated
from service.text.sentences import join, with_wide_marks
from service.text.slots import Slot
from service.text.spans import Edits, Span, overlapping
from service.text.tokenization import Tokenizer

NO_WEIGHTS = np.zeros((0, 0), np.float32)


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
    """One text of a request: a paragraph, or a document with any number of them."""

    paragraphs: list[Paragraph]
    document: Document | None = None
    marked: Marked | None = None
    """The marks of a plain text."""

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph.sentences]

    @property
    def needs_alignment(self) -> bool:
        """Whether something must be put back where its words went."""
        has_tags = self.document is not None or self.marked is not None
        return has_tags or any(paragraph.needs_alignment for paragraph in self.paragraphs)


def composed(
    manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction, selection: Selection | None, alignment: bool
) -> Translation:
    """The answer to one text, all sentences of which are finished.

    Args:
        selection: of attention matrices to return, if any.
        alignment: whether to return it.
    """
    sentences = manuscript.sentences
    source_tokens = sum([len(sentence.sequence.source_ids) for sentence in sentences])
    if manuscript.document is not None:
        passages = [_restored_passage(paragraph, tokenizer, direction) for paragraph in manuscript.paragraphs]
        whole = _alternative(sentences, 0, manuscript.document.render(passages))
        return Translation(**vars(whole), source_tokens=source_tokens)
    (paragraph,) = manuscript.paragraphs
    protected = paragraph.protected
    text, targets = _joined(paragraph, 0, tokenizer, direction)
    is_attended = any(sentence.seen for sentence in sentences)
    aligned_sentences = _aligned_sentences(paragraph, targets, tokenizer) if is_attended else []
    restored = Restored(text, Edits((), ()), (), list)
    if protected.edits.old or manuscript.marked:
        # Only then do all sentences that were attended to have weights.
        read = aligned_sentences if manuscript.needs_alignment else []
        restored = _restored(paragraph, text, targets, read, tokenizer)
    shown, put_in = _with_marks(manuscript, restored)
    best = _alternative(sentences, 0, shown)
    translation = Translation(**vars(best), source_tokens=source_tokens)
    marked = manuscript.marked
    sent, taken_out = (marked.text, marked.edits) if marked else (protected.original, Edits((), ()))
    source = View(protected.text, sent, lambda span: taken_out.before(protected.edits.before(span)))
    target = View(text, shown, lambda span: put_in.after(restored.edits.after(span)))
    if len(sentences) > 1:
        translation.segments = [
            Segment(
                source=_with_marks_around(source.to_shown(sentence.span), taken_out.old, sent).pair,
                target=_with_marks_around(target.to_shown(place), put_in.new, shown).pair,
            )
            for sentence, place in zip(sentences, targets, strict=True)
        ]
    if any(sentence.sequence.output.n_best > 1 for sentence in sentences):
        translation.alternatives = _alternatives(manuscript, best, tokenizer, direction)
    if selection is not None:
        translation.attention = _attention(sentences, aligned_sentences, source, target, selection)
    if alignment:
        translation.alignment = aligned(aligned_sentences, source, target)
    return translation


def _restored_passage(paragraph: Paragraph, tokenizer: Tokenizer, direction: Direction) -> Restored:
    """The translation of a passage of a document."""
    text, targets = _joined(paragraph, 0, tokenizer, direction)
    return _restored(paragraph, text, targets, _aligned_sentences(paragraph, targets, tokenizer), tokenizer)


def _joined(paragraph: Paragraph, rank: int, tokenizer: Tokenizer, direction: Direction) -> tuple[str, list[Span]]:
    """The translation of the protected text, and where the translation of each sentence is in it."""
    text, spans = paragraph.protected.text, [sentence.span for sentence in paragraph.sentences]
    decoded = tokenizer.decode([sentence.hypothesis(rank).token_ids for sentence in paragraph.sentences])
    targets = [
        with_wide_marks(target, sentence.span.of(text), direction.target_subtag)
        for sentence, target in zip(paragraph.sentences, decoded, strict=True)
    ]
    return join(text, spans, targets, direction.source_subtag, direction.target_subtag)


def _with_marks(manuscript: Manuscript, restored: Restored) -> tuple[str, Edits]:
    """The translation of a plain text with its marks, and the edits that made it."""
    return manuscript.marked.render(restored) if manuscript.marked else (restored.text, Edits((), ()))


def _with_marks_around(sentence: Span, marks: SequenceOf[Span], text: str) -> Span:
    """With the marks that touch it, unless more than white space is on their other side."""
    start, end = sentence.pair
    first = bisect_right(marks, start, key=lambda mark: mark.end) - 1
    while first >= 0 and marks[first].end == start:
        first, start = first - 1, marks[first].start
    after = bisect_left(marks, end, key=lambda mark: mark.start)
    while after < len(marks) and marks[after].start == end:
        after, end = after + 1, marks[after].end
    return Span(
        start if not text[max(0, start - 1) : start].strip() else sentence.start,
        end if not text[end : end + 1].strip() else sentence.end,
    )


def _alternatives(
    manuscript: Manuscript, best: Alternative, tokenizer: Tokenizer, direction: Direction
) -> list[Alternative] | None:
    """The second best hypotheses of all sentences, and so on, each text once."""
    (paragraph,) = manuscript.paragraphs
    by_text = {best.text: best}
    n_best = max([len(sentence.sequence.output.best()) for sentence in paragraph.sentences])
    for rank in range(1, n_best):
        joined, targets = _joined(paragraph, rank, tokenizer, direction)
        in_order = _aligned_in_order(paragraph, joined, targets)
        slots = _slots(paragraph, targets, tokenizer, rank)
        text, _ = _with_marks(manuscript, restore(paragraph.protected, joined, slots, in_order))
        by_text.setdefault(text, _alternative(paragraph.sentences, rank, text))
    return list(by_text.values())[1:] or None


def _aligned_sentences(paragraph: Paragraph, targets: list[Span], tokenizer: Tokenizer) -> list[AlignedSentence]:
    """The tokens of the sentences whose attention was asked for, with their places in the whole texts."""
    sentences = []
    for sentence, target_span in zip(paragraph.sentences, targets, strict=True):
        if sentence.seen is None:
            continue
        source = tokenizer.read(sentence.span.of(paragraph.protected.text), sentence.prefix)
        target = tokenizer.written(sentence.hypothesis().token_ids)
        weights = sentence.seen.output.weights
        sentences.append(
            AlignedSentence(
                [token.moved(sentence.span.start) for token in source],
                [token.moved(target_span.start) for token in target],
                after_prefix(weights, len(sentence.prefix)) if weights is not None else NO_WEIGHTS,
            )
        )
    return sentences


def _restored(
    paragraph: Paragraph, text: str, targets: list[Span], sentences: list[AlignedSentence], tokenizer: Tokenizer
) -> Restored:
    """The paragraph with its placeholders."""
    if not paragraph.sentences:
        return untranslated(paragraph.protected)
    aligned_words = [_aligned_words(sentence, paragraph.protected.text, text) for sentence in sentences]
    return restore(paragraph.protected, text, _slots(paragraph, targets, tokenizer), aligned_words)


def _slots(paragraph: Paragraph, targets: list[Span], tokenizer: Tokenizer, rank: int = 0) -> dict[int, Span]:
    """Where in the translation the slots of placeholders are, by their numbers."""
    places = {}
    for sentence, target in zip(paragraph.sentences, targets, strict=True):
        token_ids = sentence.hypothesis(rank).token_ids if sentence.slots else []
        found = [(number, slot) for number, slot in sentence.slots if slot.target_id in token_ids]
        tokens = tokenizer.written(token_ids) if found else []
        for number, slot in found:
            places[number] = tokens[token_ids.index(slot.target_id)].moved(target.start).span
    return places | _between_sentences(paragraph, targets)


def _between_sentences(paragraph: Paragraph, targets: list[Span]) -> dict[int, Span]:
    """Where stand-ins are that no sentence has: what is between two sentences is the same in both texts."""
    spans = [sentence.span for sentence in paragraph.sentences]
    places = {}
    for number, one in enumerate(paragraph.protected.placeholders):
        first, last = overlapping(spans, one.place)
        if one.stand_in and first == last:
            moved = targets[first - 1].end - spans[first - 1].end if first else 0
            places[number] = Span(one.place.start + moved, one.place.end + moved)
    return places


def _aligned_in_order(paragraph: Paragraph, translated: str, targets: list[Span]) -> list[AlignedWords]:
    """Words aligned in their order, for a translation whose attention is not known."""
    sentences = []
    for sentence, target_span in zip(paragraph.sentences, targets, strict=True):
        source, target = (
            [word.moved(span.start).span for word in split_words(span.of(text))]
            for span, text in ((sentence.span, paragraph.protected.text), (target_span, translated))
        )
        weights = np.zeros((len(target), len(source)), np.float32)
        for t in range(len(target) if source else 0):
            weights[t, t * len(source) // len(target)] = 1
        sentences.append(AlignedWords(source, target, weights))
    return sentences


def _aligned_words(sentence: AlignedSentence, text: str, translated: str) -> AlignedWords:
    """The words of a sentence, by which tags and placeholders find their places."""
    source, target = words_of(sentence.source, text), words_of(sentence.target, translated)
    weights = word_weights(sentence, source, target)
    return AlignedWords([word.span for word in source], [word.span for word in target], weights)


def _alternative(sentences: list[Sentence], rank: int, text: str) -> Alternative:
    hypotheses = [sentence.hypothesis(rank) for sentence in sentences]
    target_tokens = sum([len(hypothesis.token_ids) for hypothesis in hypotheses])
    reasons = {hypothesis.finish_reason for hypothesis in hypotheses}
    return Alternative(
        text=text,
        score=sum([hypothesis.log_prob for hypothesis in hypotheses]) / max(1, target_tokens),
        finish_reason="repetition" if "repetition" in reasons else "length" if "length" in reasons else "eos",
        target_tokens=target_tokens,
    )


def _attention(
    sentences: list[Sentence],
    aligned_sentences: list[AlignedSentence],
    source: View,
    target: View,
    selection: Selection,
) -> Attention:
    matrices, first_source, first_target = [], 0, 0
    for sentence, tokens in zip(sentences, aligned_sentences, strict=True):
        assert sentence.seen is not None
        matrices += selection.of_sentence(sentence.seen.output.matrices, first_source, first_target)
        first_source += len(tokens.source)
        first_target += len(tokens.target)
    return Attention.model_construct(
        source=[source.token(token) for tokens in aligned_sentences for token in tokens.source],
        target=[target.token(token) for tokens in aligned_sentences for token in tokens.target],
        prefix=[target.token(token) for tokens in aligned_sentences for token in prefix_of(tokens.target)],
        matrices=matrices,
    )
