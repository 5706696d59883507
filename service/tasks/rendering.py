"""Finished sentences become texts again: what was kept is put back, and tags and marks go around their words.

A plain text is put together of its pieces, so that it is the same whether they are sent one by one or at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from service.markup.plain import Plain
from service.segments.restoration import Restored, restore, untranslated
from service.tasks.alignment import AlignedSentence, after_prefix, word_weights, words_of
from service.tasks.manuscript import Manuscript, Paragraph, Reading
from service.text.aligned_words import AlignedWords
from service.text.languages import Direction
from service.text.sentences import FIRST, Before, join, with_wide_marks
from service.text.spans import Edits, Span, chained, overlapping
from service.text.tokenization import Tokenizer

NO_WEIGHTS = np.zeros((0, 0), np.float32)


@dataclass(frozen=True)
class Rendering:
    """The translation of a paragraph."""

    manuscript: Manuscript
    """That has it; of a plain text the piece."""
    paragraph: Paragraph
    joined: str
    """Its sentences as the model wrote them, and what is between them."""
    targets: list[Span]
    """Where the sentences are in that."""
    sentences: list[AlignedSentence]
    """Those that were attended to."""
    restored: Restored
    """With what was kept."""


@dataclass(frozen=True)
class Shown:
    """The translation of a plain text, and how it was made."""

    joined: str
    """As that of its paragraph."""
    targets: list[Span]
    sentences: list[AlignedSentence]
    restored: Edits
    """To the text with what was kept."""
    put_in: Edits
    """From there to the text with marks."""
    text: str


def renderings(
    manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction, before: Before = FIRST
) -> Iterator[Rendering]:
    """The translation of each passage, or of each piece of a plain text.

    Args:
        before: what comes before a piece of a text.
    """
    is_plain = isinstance(manuscript.reading, Plain)
    # Where there is nothing to put back, one piece is all of them.
    in_pieces = is_plain and (manuscript.has_tags or manuscript.paragraphs[0].protected.edits.old)
    for piece in manuscript.pieces() if in_pieces else [manuscript]:
        for paragraph in piece.paragraphs:
            text, targets = joined(paragraph, 0, tokenizer, direction, before)
            sentences = _aligned_sentences(paragraph, targets, tokenizer)
            restored = _restored(piece, paragraph, text, targets, sentences, tokenizer, before)
            yield Rendering(piece, paragraph, text, targets, sentences, restored)
            before = Before(paragraph.protected.text[-1:], text[-1:]) if is_plain else FIRST


def rendered(manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction, before: Before) -> tuple[str, Before]:
    """The translation of a piece of a text alone, and what comes before the next piece."""
    found = [*renderings(manuscript, tokenizer, direction, before)]
    text = manuscript.reading.render([one.restored for one in found])
    if not isinstance(manuscript.reading, Plain):
        return text, FIRST
    return text, Before(found[-1].paragraph.protected.text[-1:], found[-1].joined[-1:])


def shown(manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction) -> Shown:
    """The translation of a plain text."""
    targets, sentences, restored, put_in = [], [], [], []
    whole = text = ""
    n_source = 0
    for one in renderings(manuscript, tokenizer, direction):
        reading = one.manuscript.reading
        assert isinstance(reading, Plain), "as its pieces are"
        part, marks = reading.shown(one.restored)
        targets += [target.moved(len(whole)) for target in one.targets]
        sentences += [sentence.moved(n_source, len(whole)) for sentence in one.sentences]
        restored.append((one.restored.edits, len(one.joined), len(one.restored.text)))
        put_in.append((marks, len(one.restored.text), len(part)))
        n_source += len(one.paragraph.protected.text)
        whole, text = whole + one.joined, text + part
    return Shown(whole, targets, sentences, chained(restored), chained(put_in), text)


def translated(manuscript: Manuscript, tokenizer: Tokenizer, direction: Direction) -> Reading:
    """The translation of a text, to be translated again: its sentences are known, and what is kept."""
    found = [*renderings(manuscript, tokenizer, direction)]
    if not isinstance(manuscript.reading, Plain):
        return _translated(manuscript.reading, found)
    pieces = (_translated(one.manuscript.reading, [one]) for one in found)
    return Plain.of_pieces([piece for piece in pieces if isinstance(piece, Plain)])  # all are


def _translated(reading: Reading, renderings: list[Rendering]) -> Reading:
    passages = []
    for passage, one in zip(reading.passages, renderings, strict=True):
        named, restored = one.paragraph.named, one.restored
        keep = [there for here, there in restored.copies if len(set(overlapping(named, here))) == 2]
        passages.append(passage.translated(restored, keep, [*map(restored.edits.after, one.targets)]))
    return reading.translated(passages, [one.restored for one in renderings])


def joined(
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


def _aligned_sentences(paragraph: Paragraph, targets: list[Span], tokenizer: Tokenizer) -> list[AlignedSentence]:
    """The tokens of the sentences whose attention was asked for, with their places in the whole texts."""
    sentences = []
    for sentence, target_span in zip(paragraph.sentences, targets, strict=True):
        if sentence.seen is None:
            continue
        source = tokenizer.source_tokens(sentence.span.of(paragraph.protected.text), sentence.prefix)
        target = tokenizer.target_tokens(sentence.hypothesis().token_ids)
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
    manuscript: Manuscript,
    paragraph: Paragraph,
    text: str,
    targets: list[Span],
    sentences: list[AlignedSentence],
    tokenizer: Tokenizer,
    before: Before,
) -> Restored:
    """A paragraph with its placeholders."""
    if not paragraph.sentences:
        return untranslated(paragraph.protected)
    if not paragraph.protected.edits.old and not manuscript.has_tags:
        return Restored(text, Edits((), ()), (), list)
    # Only then do all sentences that were attended to have weights.
    read = sentences if manuscript.needs_alignment else []
    aligned_words = [_aligned_words(sentence, paragraph.protected.text, text) for sentence in read]
    slots = slot_places(paragraph, targets, tokenizer)
    return restore(paragraph.protected, text, slots, aligned_words, before)


def slot_places(paragraph: Paragraph, targets: list[Span], tokenizer: Tokenizer, rank: int = 0) -> dict[int, Span]:
    """Where in the translation the slots of placeholders are, by their numbers."""
    places = {}
    for sentence, target in zip(paragraph.sentences, targets, strict=True):
        token_ids = sentence.hypothesis(rank).token_ids if sentence.slots else []
        found = [(number, slot) for number, slot in sentence.slots if slot.target_id in token_ids]
        tokens = tokenizer.target_tokens(token_ids) if found else []
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


def _aligned_words(sentence: AlignedSentence, text: str, translated: str) -> AlignedWords:
    """The words of a sentence, by which tags and placeholders find their places."""
    source, target = words_of(sentence.source, text), words_of(sentence.target, translated)
    weights = word_weights(sentence, source, target)
    return AlignedWords([word.span for word in source], [word.span for word in target], weights)
