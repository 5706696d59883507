"""From finished sentences to answers: back into the text they came from, with what was asked for beside it."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from service.artifact import Direction
from service.contract import FinishReason
from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.formats.document import Document
from service.schemas.answers import Alternative, Attention, Segment, Translation
from service.tasks.alignment import AlignedSentence, View, aligned, word_weights, words, words_of
from service.tasks.attention import Seen, Selection, prefix_of
from service.text.aligned_words import AlignedWords
from service.text.casing import in_capitals
from service.text.grouped_numbers import as_written
from service.text.joining import join, with_wide_marks
from service.text.placeholders import Protected
from service.text.restoration import AsWritten, Restored, restore, untranslated
from service.text.spans import Span
from service.text.tokenization import Tokenizer
from service.text.tokens import Token


@dataclass
class Piece:
    """A sentence of a passage, or a part of one, short enough for the model, on its way through it."""

    span: Span
    """In the protected text of its passage."""
    sequence: Sequence[Search]
    capitals: bool = False
    """Whether the sentence is in capitals, and the sequence in small letters."""
    seen: Sequence[Seen] | None = None

    def hypothesis(self, rank: int = 0) -> Hypothesis:
        """The best, or the next best where there are as many."""
        hypotheses = self.sequence.output.best()
        return hypotheses[min(rank, len(hypotheses) - 1)]


@dataclass(frozen=True)
class Passage:
    """A text, or a part of a document between two block-level tags, and its pieces."""

    protected: Protected
    pieces: list[Piece]


@dataclass(frozen=True)
class Manuscript:
    """One text of a request: a passage, or a document with any number of them."""

    passages: list[Passage]
    document: Document | None = None

    @property
    def pieces(self) -> list[Piece]:
        return [piece for passage in self.passages for piece in passage.pieces]

    @property
    def source_tokens(self) -> int:
        return sum(len(piece.sequence.source_ids) for piece in self.pieces)

    @property
    def needs_alignment(self) -> bool:
        """Whether something must be put back where its words went."""
        return self.document is not None or any(passage.protected.placeholders for passage in self.passages)


class Composer:
    """Makes the answers of one model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def translation(
        self, manuscript: Manuscript, direction: Direction, selection: Selection | None, alignment: bool
    ) -> Translation:
        """The answer to one text, all pieces of which are finished.

        Args:
            selection: of attention matrices to return, if any.
            alignment: whether to return it.
        """
        if manuscript.document is not None:
            return self._of_document(manuscript, manuscript.document, direction)
        (passage,) = manuscript.passages
        text, targets = self._joined(passage, 0, direction)
        sentences = self._sentences(passage, targets)
        aligned_by = sentences if passage.protected.placeholders else []
        restored = _restored(passage, text, aligned_by, direction)
        best = _alternative(passage.pieces, 0, restored.text)
        translation = Translation(
            **best.model_dump(),
            source_tokens=manuscript.source_tokens,
            segments=_segments(passage, targets, restored),
            alternatives=self._alternatives(passage, best, direction),
        )
        source = View(passage.protected.text, passage.protected.original, passage.protected.edits.before)
        target = View(text, restored.text, restored.edits.after)
        if selection is not None:
            translation.attention = _attention(passage.pieces, sentences, source, target, selection)
        if alignment:
            translation.alignment = aligned(sentences, source, target)
        return translation

    def _of_document(self, manuscript: Manuscript, document: Document, direction: Direction) -> Translation:
        restored = []
        for passage in manuscript.passages:
            text, targets = self._joined(passage, 0, direction)
            restored.append(_restored(passage, text, self._sentences(passage, targets), direction))
        whole = _alternative(manuscript.pieces, 0, document.render(restored))
        return Translation(**whole.model_dump(), source_tokens=manuscript.source_tokens)

    def _joined(self, passage: Passage, rank: int, direction: Direction) -> tuple[str, list[Span]]:
        """The passage as the model translates it, and where the translation of each piece is."""
        text, sources = passage.protected.text, [piece.span for piece in passage.pieces]
        decoded = self._tokenizer.decode([piece.hypothesis(rank).token_ids for piece in passage.pieces])
        targets = [
            with_wide_marks(in_capitals(target) if piece.capitals else target, piece.span.of(text), direction.target)
            for piece, target in zip(passage.pieces, decoded, strict=True)
        ]
        return join(text, sources, targets, direction.source, direction.target)

    def _alternatives(self, passage: Passage, best: Alternative, direction: Direction) -> list[Alternative] | None:
        """The second best hypotheses of all pieces, and so on, each text once."""
        by_text = {best.text: best}
        n_best = max((len(piece.sequence.output.best()) for piece in passage.pieces), default=1)
        for rank in range(1, n_best):
            joined, targets = self._joined(passage, rank, direction)
            words = _words_in_order(passage, joined, targets)
            text = restore(passage.protected, joined, words, _writing(direction)).text
            by_text.setdefault(text, _alternative(passage.pieces, rank, text))
        return list(by_text.values())[1:] or None

    def _sentences(self, passage: Passage, targets: list[Span]) -> list[AlignedSentence]:
        """The tokens of each piece with their places in the whole texts, and what aligns them; none where no attention
        was asked for."""
        sentences = []
        for piece, target_span in zip(passage.pieces, targets, strict=True):
            if piece.seen is None:
                continue
            source = self._tokenizer.located(piece.sequence.source_ids)
            target = self._tokenizer.located(piece.hypothesis().token_ids)
            sentences.append(
                AlignedSentence(
                    [token.moved(piece.span.start) for token in source],
                    [token.moved(target_span.start) for token in target],
                    piece.seen.output.weights if piece.seen.output.weights is not None else NO_WEIGHTS,
                )
            )
        return sentences


NO_WEIGHTS = np.zeros((0, 0), np.float32)


def _restored(passage: Passage, text: str, sentences: list[AlignedSentence], direction: Direction) -> Restored:
    """The passage with its placeholders."""
    if not passage.pieces:
        return untranslated(passage.protected, _writing(direction))
    words = [_aligned_words(one, passage.protected.text, text) for one in sentences]
    return restore(passage.protected, text, words, _writing(direction))


def _writing(direction: Direction) -> AsWritten:
    """Numbers as the target language writes them."""
    return partial(as_written, source=direction.source, target=direction.target)


def _words_in_order(passage: Passage, translated: str, targets: list[Span]) -> list[AlignedWords]:
    """For a translation of which no attention is known: words aligned in order."""
    sentences = []
    for piece, target_span in zip(passage.pieces, targets, strict=True):
        source, target = (
            [Span(word.start + span.start, word.end + span.start) for word in words(span.of(text))]
            for span, text in ((piece.span, passage.protected.text), (target_span, translated))
        )
        weights = np.zeros((len(target), len(source)), np.float32)
        for t in range(len(target) if source else 0):
            weights[t, t * len(source) // len(target)] = 1
        sentences.append(AlignedWords(source, target, weights))
    return sentences


def _aligned_words(sentence: AlignedSentence, text: str, translated: str) -> AlignedWords:
    """For what is put back where its words went."""
    source, target = words_of(sentence.source, text), words_of(sentence.target, translated)
    weights = word_weights(sentence, source, target)
    return AlignedWords([_span(word) for word in source], [_span(word) for word in target], weights)


def _span(token: Token) -> Span:
    return Span(token.start, token.end)


def _alternative(pieces: list[Piece], rank: int, text: str) -> Alternative:
    hypotheses = [piece.hypothesis(rank) for piece in pieces]
    target_tokens = sum(len(hypothesis.token_ids) for hypothesis in hypotheses)
    return Alternative(
        text=text,
        score=sum(hypothesis.log_prob for hypothesis in hypotheses) / max(1, target_tokens),
        finish_reason=_worst([hypothesis.finish_reason for hypothesis in hypotheses]),
        target_tokens=target_tokens,
    )


def _worst(reasons: list[FinishReason]) -> FinishReason:
    return next((reason for reason in ("repetition", "length") if reason in reasons), "eos")


def _segments(passage: Passage, targets: list[Span], restored: Restored) -> list[Segment] | None:
    """Where there are several."""
    if len(targets) < 2:
        return None
    to_original, to_restored = passage.protected.edits.before, restored.edits.after
    return [
        Segment(source=to_original(piece.span).pair, target=to_restored(target).pair)
        for piece, target in zip(passage.pieces, targets, strict=True)
    ]


def _attention(
    pieces: list[Piece], sentences: list[AlignedSentence], source: View, target: View, selection: Selection
) -> Attention:
    matrices, first_source, first_target = [], 0, 0
    for piece, sentence in zip(pieces, sentences, strict=True):
        assert piece.seen is not None
        matrices += selection.of_sentence(piece.seen.output.matrices, first_source, first_target)
        first_source += len(sentence.source)
        first_target += len(sentence.target)
    return Attention.model_construct(
        source=[source.token(token) for sentence in sentences for token in sentence.source],
        target=[target.token(token) for sentence in sentences for token in sentence.target],
        prefix=[target.token(token) for sentence in sentences for token in prefix_of(sentence.target)],
        matrices=matrices,
    )
