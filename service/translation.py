"""Texts to translations: sentences out, through the engine, and back into the text they came from."""

from dataclasses import dataclass
from typing import Literal

from service.artifact import Direction, Manifest
from service.decoding import FinishReason, Hypothesis, Search
from service.errors import NotAcceptable
from service.pool import Pool
from service.scheduler import Sequence
from service.schemas import Alternative, Segment, TranslateRequest, Translation
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


@dataclass(frozen=True)
class _Piece:
    """A sentence of a text, or a part of one, short enough for the model, on its way through it."""

    span: Span
    sequence: Sequence[Search]


class Translator:
    """One translation model, as requests see it."""

    def __init__(
        self, manifest: Manifest, provider: Literal["cpu", "cuda"], tokenizer: Tokenizer, pool: Pool[Search]
    ) -> None:
        self.manifest = manifest
        self.provider = provider
        self.pool = pool
        self._tokenizer = tokenizer

    async def translate(
        self, request: TranslateRequest, direction: Direction, timeout_s: float, timing: Timing
    ) -> list[Translation]:
        """One translation per text, in order.

        Raises:
            NotAcceptable: max_target_tokens is above the model's limit, or more alternatives than the beam holds.
            RequestError: what the engine raises.
        """
        deadline = self.pool.clock() + timeout_s
        options = self._options(request)
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            texts = await beside(
                n_characters, lambda: [self._pieces(text, request, options, direction) for text in request.text]
            )
        sequences = [piece.sequence for pieces in texts for piece in pieces]
        timing.ran(await self.pool.run(sequences, deadline))
        with timing.tokenizing():
            return await beside(
                n_characters,
                lambda: [self._translation(*work, direction) for work in zip(request.text, texts, strict=True)],
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

    def _translation(self, text: str, pieces: list[_Piece], direction: Direction) -> Translation:
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
        return Translation(
            **best.model_dump(),
            source_tokens=sum(len(piece.sequence.source_ids) for piece in pieces),
            segments=segments if len(segments) > 1 else None,
            alternatives=alternatives or None,
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


def _worst(reasons: list[FinishReason]) -> FinishReason:
    return next((reason for reason in ("repetition", "length") if reason in reasons), "eos")
