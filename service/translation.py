"""Texts to translations: sentences out, through the engine, and back into the text they came from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from service.alignment import AlignedSentence, aligned, aligning
from service.artifact import Direction, Manifest
from service.attention import Kinds, Seen, Selection, prefix_of, refuse_beyond
from service.decoding import FinishReason, Hypothesis, Search
from service.errors import NotAcceptable
from service.pool import Pool
from service.scheduler import Sequence
from service.schemas import Alternative, Attention, Segment, ShownToken, TranslateRequest, Translation
from service.sentences import Span, halves, join, sentence_spans, stripped
from service.timing import Timing
from service.tokenization import Tokenizer, beside


@dataclass(frozen=True)
class _Options:
    """How every sentence of a request is searched."""

    max_target_tokens: int
    beam_size: int
    length_penalty: float
    n_best: int

    def search(self) -> Search:
        return Search(self.max_target_tokens, self.beam_size, self.length_penalty, self.n_best)


@dataclass
class _Piece:
    """A sentence of a text, or a part of one, short enough for the model, on its way through it."""

    span: Span
    sequence: Sequence[Search]
    seen: Sequence[Seen] | None = None


class Translator:
    """One translation model, as requests see it.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
    """

    def __init__(
        self,
        manifest: Manifest,
        provider: Literal["cpu", "cuda"],
        tokenizer: Tokenizer,
        pool: Pool[Search],
        attention_pool: Pool[Seen],
        max_attention_weights: int,
    ) -> None:
        self.manifest = manifest
        self.provider = provider
        self.pool = pool
        self.attention_pool = attention_pool
        self._tokenizer = tokenizer
        self._max_attention_weights = max_attention_weights

    async def translate(
        self, request: TranslateRequest, direction: Direction, timeout_s: float, timing: Timing
    ) -> list[Translation]:
        """One translation per text, in order.

        Raises:
            NotAcceptable: max_target_tokens is above the model's limit, there are more alternatives than the beam
                holds, or the attention asked for does not exist or is too much.
            RequestError: what the engines raise.
        """
        deadline = self.pool.clock() + timeout_s
        options = self._options(request)
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            texts = await beside(
                n_characters, lambda: [self._pieces(text, request, options, direction) for text in request.text]
            )
        pieces = [piece for text in texts for piece in text]
        timing.ran(await self.pool.run([piece.sequence for piece in pieces], deadline))
        if selection is not None or request.alignment:
            timing.attended(await self.attention_pool.run(self._passes(pieces, selection, request.alignment), deadline))
        with timing.tokenizing():
            return await beside(
                n_characters,
                lambda: [
                    self._translation(*work, direction, selection, request.alignment)
                    for work in zip(request.text, texts, strict=True)
                ],
            )

    def _options(self, request: TranslateRequest) -> _Options:
        decoding = self.manifest.decoding
        assert decoding is not None, "a translator's manifest has one"
        limit = self.manifest.limits.max_target_tokens
        max_target_tokens = request.max_target_tokens or limit
        if max_target_tokens > limit:
            raise NotAcceptable(
                f"max_target_tokens is {max_target_tokens}, {self.manifest.name} writes at most {limit}"
            )
        beam_size = request.beam_size or decoding.beam_size
        if request.alternatives >= beam_size:
            raise NotAcceptable(f"alternatives is {request.alternatives}, a beam of {beam_size} has {beam_size - 1}")
        length_penalty = decoding.length_penalty if request.length_penalty is None else request.length_penalty
        return _Options(max_target_tokens, beam_size, length_penalty, n_best=1 + request.alternatives)

    def _pieces(self, text: str, request: TranslateRequest, options: _Options, direction: Direction) -> list[_Piece]:
        whole = stripped(text, Span(0, len(text)))
        spans = sentence_spans(text, direction.source) if request.split_sentences else [whole] if whole else []
        return [
            _Piece(span, Sequence(source_ids, options.search(), slots=options.beam_size))
            for span, source_ids in self._within_limit(text, spans)
            if source_ids != [self.manifest.special_tokens.eos]  # nothing to translate: the text keeps it as it is
        ]

    def _within_limit(self, text: str, spans: list[Span]) -> list[tuple[Span, list[int]]]:
        """Tokenize, halving what is too long for the model until it is not."""
        limit = self.manifest.limits.max_source_tokens
        pieces = []
        for span, source_ids in zip(spans, self._tokenizer.encode([span.of(text) for span in spans]), strict=True):
            if len(source_ids) <= limit:
                pieces.append((span, source_ids))
            elif (parts := halves(text, span)) is not None:
                pieces += self._within_limit(text, list(parts))
            else:
                raise NotAcceptable(f"one character is {len(source_ids)} tokens, the model reads at most {limit}")
        return pieces

    def _passes(self, pieces: list[_Piece], selection: Selection | None, alignment: bool) -> list[Sequence[Seen]]:
        """One for each piece's best translation, which is read as the decoder read it."""
        kinds: Kinds = frozenset(selection.kinds if selection else ()) | (ALIGNMENT if alignment else frozenset())
        bos = self.manifest.special_tokens.bos
        n_weights = 0
        for piece in pieces:
            target_ids = piece.sequence.output.best()[0].token_ids
            n_weights += selection.n_weights(len(piece.sequence.source_ids), len(target_ids)) if selection else 0
            piece.seen = Sequence(piece.sequence.source_ids, Seen([bos, *target_ids[:-1]], kinds))
        refuse_beyond(self._max_attention_weights, n_weights)
        return [piece.seen for piece in pieces if piece.seen is not None]

    def _translation(
        self,
        text: str,
        pieces: list[_Piece],
        direction: Direction,
        selection: Selection | None,
        alignment: bool,
    ) -> Translation:
        """The best hypotheses of its sentences, and the second best ones, and so on."""
        ranked = [piece.sequence.output.best() for piece in pieces]
        n_best = max((len(hypotheses) for hypotheses in ranked), default=1)
        whole = [
            self._joined(text, pieces, [hypotheses[min(i, len(hypotheses) - 1)] for hypotheses in ranked], direction)
            for i in range(n_best)
        ]
        best, segments = whole[0]
        by_text: dict[str, Alternative] = {}
        for alternative, _ in whole:
            by_text.setdefault(alternative.text, alternative)
        alternatives = list(by_text.values())[1:]
        translation = Translation(
            **best.model_dump(),
            source_tokens=sum(len(piece.sequence.source_ids) for piece in pieces),
            segments=segments if len(segments) > 1 else None,
            alternatives=alternatives or None,
        )
        if selection is not None or alignment:
            sentences = [self._sentence(*work) for work in zip(pieces, segments, strict=True)]
            translation.attention = _attention(pieces, sentences, selection) if selection is not None else None
            translation.alignment = aligned(sentences, text, best.text) if alignment else None
        return translation

    def _sentence(self, piece: _Piece, segment: Segment) -> AlignedSentence:
        """Its tokens with their places in the whole texts, and what aligns them."""
        assert piece.seen is not None
        choice = self.manifest.alignment
        assert choice is not None, "a translator's manifest has one"
        source = self._tokenizer.located(piece.sequence.source_ids)
        target = self._tokenizer.located(piece.sequence.output.best()[0].token_ids)
        matrices = piece.seen.output.matrices
        return AlignedSentence(
            [token.moved(segment.source[0]) for token in source],
            [token.moved(segment.target[0]) for token in target],
            aligning(matrices["cross"], choice) if "cross" in matrices else NO_WEIGHTS,
        )

    def _joined(
        self, text: str, pieces: list[_Piece], hypotheses: list[Hypothesis], direction: Direction
    ) -> tuple[Alternative, list[Segment]]:
        targets = self._tokenizer.decode([hypothesis.token_ids for hypothesis in hypotheses])
        sources = [piece.span for piece in pieces]
        joined, spans = join(text, sources, targets, direction.source, direction.target)
        segments = [Segment(source=source.pair, target=span.pair) for source, span in zip(sources, spans, strict=True)]
        target_tokens = sum(len(hypothesis.token_ids) for hypothesis in hypotheses)
        alternative = Alternative(
            text=joined,
            score=sum(hypothesis.log_prob for hypothesis in hypotheses) / max(1, target_tokens),
            finish_reason=_worst([hypothesis.finish_reason for hypothesis in hypotheses]),
            target_tokens=target_tokens,
        )
        return alternative, segments


ALIGNMENT: Kinds = frozenset({"cross"})
NO_WEIGHTS = np.zeros((0, 0), np.float32)


def _attention(pieces: list[_Piece], sentences: list[AlignedSentence], selection: Selection) -> Attention:
    matrices, first_source, first_target = [], 0, 0
    for piece, sentence in zip(pieces, sentences, strict=True):
        assert piece.seen is not None
        matrices += selection.of_sentence(piece.seen.output.matrices, first_source, first_target)
        first_source += len(sentence.source)
        first_target += len(sentence.target)
    return Attention.model_construct(
        source=[ShownToken.of(token) for sentence in sentences for token in sentence.source],
        target=[ShownToken.of(token) for sentence in sentences for token in sentence.target],
        prefix=[ShownToken.of(token) for sentence in sentences for token in prefix_of(sentence.target)],
        matrices=matrices,
    )


def _worst(reasons: list[FinishReason]) -> FinishReason:
    return next((reason for reason in ("repetition", "length") if reason in reasons), "eos")
