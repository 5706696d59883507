"""Finished sentences become answers: texts again, with what else the request asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence as SequenceOf

import numpy as np

from service.formats.plain import Plain
from service.schemas.answers import Alternative, Attention, Segment, Translation
from service.tasks.alignment import AlignedSentence, View, after_prefix, aligned, split_words, word_weights, words_of
from service.tasks.attention import Selection, prefix_of
from service.tasks.manuscript import Manuscript, Paragraph, Reading, Sentence
from service.text.aligned_words import AlignedWords
from service.text.languages import Direction
from service.text.restoration import Restored, restore, untranslated
from service.text.sentences import FIRST, Before, join, with_wide_marks
from service.text.spans import Edits, Span, overlapping
from service.text.tokenization import Tokenizer

NO_WEIGHTS = np.zeros((0, 0), np.float32)


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
        passages = []
        for passage in manuscript.paragraphs:
            text, targets = _joined(passage, 0, tokenizer, direction)
            passages.append(_restored(manuscript, passage, text, targets, tokenizer)[0])
        whole = _alternative(sentences, 0, reading.render(passages))
        return Translation(**vars(whole), source_tokens=source_tokens)
    (paragraph,) = manuscript.paragraphs
    protected = paragraph.protected
    text, targets = _joined(paragraph, 0, tokenizer, direction)
    restored, aligned_sentences = _restored(manuscript, paragraph, text, targets, tokenizer)
    shown, put_in = reading.shown(restored)
    best = _alternative(sentences, 0, shown)
    translation = Translation(**vars(best), source_tokens=source_tokens)
    sent, taken_out = reading.text, reading.edits
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


def rendered(manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction, before: Before) -> tuple[str, Before]:
    """The translation of a piece of a text alone, and what comes before the next piece."""
    restored = []
    for paragraph in manuscript.paragraphs:
        text, targets = _joined(paragraph, 0, tokenizer, direction, before)
        restored.append(_restored(manuscript, paragraph, text, targets, tokenizer)[0])
        if isinstance(manuscript.reading, Plain):
            before = Before(paragraph.protected.text[-1:], text[-1:])
    return manuscript.reading.render(restored), before


def translated(manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction) -> Reading:
    """The translation of a text, to be translated again: its sentences are known, and what is kept."""
    passages, translations = [], []
    for passage, paragraph in zip(manuscript.reading.passages, manuscript.paragraphs, strict=True):
        text, targets = _joined(paragraph, 0, tokenizer, direction)
        restored, _ = _restored(manuscript, paragraph, text, targets, tokenizer)
        keep = [there for here, there in restored.copies if len(set(overlapping(paragraph.named, here))) == 2]
        sentences = [restored.edits.after(target) for target in targets]
        passages.append(passage.translated(restored, keep, sentences))
        translations.append(restored)
    return manuscript.reading.translated(passages, translations)


def _joined(
    paragraph: Paragraph, rank: int, tokenizer: Tokenizer, direction: Direction, before: Before = FIRST
) -> tuple[str, list[Span]]:
    """The translation of the protected text, and where the translation of each sentence is in it."""
    text, spans = paragraph.protected.text, [sentence.span for sentence in paragraph.sentences]
    decoded = tokenizer.decode([sentence.hypothesis(rank).token_ids for sentence in paragraph.sentences])
    targets = [
        with_wide_marks(target, sentence.span.of(text), direction.target_subtag)
        for sentence, target in zip(paragraph.sentences, decoded, strict=True)
    ]
    return join(text, spans, targets, direction.source_subtag, direction.target_subtag, before)


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
        text = manuscript.reading.render([restore(paragraph.protected, joined, slots, in_order)])
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
    manuscript: Manuscript, paragraph: Paragraph, text: str, targets: list[Span], tokenizer: Tokenizer
) -> tuple[Restored, list[AlignedSentence]]:
    """A paragraph with its placeholders, and those of its sentences that were attended to."""
    if not paragraph.sentences:
        return untranslated(paragraph.protected), []
    sentences = _aligned_sentences(paragraph, targets, tokenizer)
    if not paragraph.protected.edits.old and not manuscript.has_tags:
        return Restored(text, Edits((), ()), (), list), sentences
    # Only then do all sentences that were attended to have weights.
    read = sentences if manuscript.needs_alignment else []
    aligned_words = [_aligned_words(sentence, paragraph.protected.text, text) for sentence in read]
    return restore(paragraph.protected, text, _slots(paragraph, targets, tokenizer), aligned_words), sentences


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
