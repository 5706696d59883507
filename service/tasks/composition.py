"""Finished sentences become answers: texts again, with what else the request asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence as SequenceOf
from typing import get_args

import numpy as np

from service.base.contract import FinishReason
from service.markup.plain import Plain
from service.schemas.answers import Alternative, Attention, Segment, Translation
from service.segments.restoration import restore
from service.tasks.alignment import AlignedSentence, View, aligned, split_words
from service.tasks.attention import Selection, prefix_of
from service.tasks.manuscript import Manuscript, Paragraph, Sentence
from service.tasks.rendering import joined, renderings, shown, slot_places
from service.text.aligned_words import AlignedWords
from service.text.languages import Direction
from service.text.spans import Span
from service.text.tokenization import Tokenizer

WORST_LAST = get_args(FinishReason)


def composed(
    manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction, selection: Selection | None, alignment: bool
) -> Translation:
    """The answer to one text, all sentences of which are finished.

    Args:
        selection: of attention matrices to return, if any.
        alignment: whether to return it.
    """
    sentences, reading = manuscript.sentences, manuscript.reading
    source_tokens = sum([len(sentence.sequence.source_ids) for sentence in sentences])
    if not isinstance(reading, Plain):
        restored = [one.restored for one in renderings(manuscript, tokenizer, direction)]
        whole = _alternative(sentences, 0, reading.render(restored))
        return Translation(**vars(whole), source_tokens=source_tokens)
    (paragraph,) = manuscript.paragraphs
    protected, found = paragraph.protected, shown(manuscript, tokenizer, direction)
    best = _alternative(sentences, 0, found.text)
    translation = Translation(**vars(best), source_tokens=source_tokens)
    sent, taken_out = reading.text, reading.edits
    source = View(protected.text, sent, lambda span: taken_out.before(protected.edits.before(span)))
    target = View(found.joined, found.text, lambda span: found.put_in.after(found.restored.after(span)))
    if len(sentences) > 1:
        translation.segments = [
            Segment(
                source=_with_marks_around(source.to_shown(sentence.span), taken_out.old, sent).pair,
                target=_with_marks_around(target.to_shown(place), found.put_in.new, found.text).pair,
            )
            for sentence, place in zip(sentences, found.targets, strict=True)
        ]
    if any(sentence.sequence.output.n_best > 1 for sentence in sentences):
        translation.alternatives = _alternatives(manuscript, best, tokenizer, direction)
    if selection is not None:
        translation.attention = _attention(sentences, found.sentences, source, target, selection)
    if alignment:
        translation.alignment = aligned(found.sentences, source, target)
    return translation


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
        translated, targets = joined(paragraph, rank, tokenizer, direction)
        in_order = _aligned_in_order(paragraph, translated, targets)
        slots = slot_places(paragraph, targets, tokenizer, rank)
        text = manuscript.reading.render([restore(paragraph.protected, translated, slots, in_order)])
        by_text.setdefault(text, _alternative(paragraph.sentences, rank, text))
    return list(by_text.values())[1:] or None


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


def _alternative(sentences: list[Sentence], rank: int, text: str) -> Alternative:
    hypotheses = [sentence.hypothesis(rank) for sentence in sentences]
    target_tokens = sum([len(hypothesis.token_ids) for hypothesis in hypotheses])
    reasons = [hypothesis.finish_reason for hypothesis in hypotheses]
    return Alternative(
        text=text,
        score=sum([hypothesis.log_prob for hypothesis in hypotheses]) / max(1, target_tokens),
        finish_reason=worst(reasons),
        target_tokens=target_tokens,
    )


def worst(reasons: SequenceOf[FinishReason]) -> FinishReason:
    """Of why sentences, or the translations that one was made of, ended; `eos` where there are none."""
    return max(reasons, key=WORST_LAST.index, default="eos")


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
