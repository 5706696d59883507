"""Texts to translations: sentences out, through the engine, and back into the text they came from."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from service.artifact import Direction, Manifest
from service.decoding import Hypothesis
from service.engine import Engine
from service.errors import NotAcceptable
from service.scheduler import Sequence
from service.schemas import Segment, TranslateRequest, Translation
from service.sentences import Span, halves, join, sentence_spans, stripped
from service.timing import Timing
from service.tokenization import Tokenizer


@dataclass(frozen=True)
class _Piece:
    """A sentence of a text, or a part of one, short enough for the model, on its way through it."""

    span: Span
    sequence: Sequence[Hypothesis]


class Translator:
    """One translation model, as requests see it."""

    def __init__(
        self, manifest: Manifest, provider: Literal["cpu", "cuda"], tokenizer: Tokenizer, engine: Engine[Hypothesis]
    ) -> None:
        self.manifest = manifest
        self.provider = provider
        self.engine = engine
        self._tokenizer = tokenizer

    async def translate(
        self, request: TranslateRequest, direction: Direction, timeout_s: float, timing: Timing
    ) -> list[Translation]:
        """One translation per text, in order.

        Raises:
            NotAcceptable: max_target_tokens is above the model's limit.
            RequestError: what the engine raises.
        """
        deadline = self.engine.clock() + timeout_s
        with timing.tokenizing():
            texts = await asyncio.to_thread(lambda: [self._pieces(text, request, direction) for text in request.text])
        sequences = [piece.sequence for pieces in texts for piece in pieces]
        timing.ran(await self.engine.run(sequences, deadline))
        with timing.tokenizing():
            return await asyncio.to_thread(
                lambda: [self._translation(*work, direction) for work in zip(request.text, texts, strict=True)]
            )

    def _pieces(self, text: str, request: TranslateRequest, direction: Direction) -> list[_Piece]:
        limit = self.manifest.limits.max_target_tokens
        max_target_tokens = request.max_target_tokens or limit
        if max_target_tokens > limit:
            raise NotAcceptable(
                f"max_target_tokens is {max_target_tokens}, {self.manifest.name} writes at most {limit}"
            )
        whole = stripped(text, Span(0, len(text)))
        spans = sentence_spans(text, direction.source) if request.split_sentences else [whole] if whole else []
        return [
            _Piece(span, Sequence(source_ids, Hypothesis(max_target_tokens)))
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
        hypotheses = [piece.sequence.output for piece in pieces]
        targets = self._tokenizer.decode([hypothesis.token_ids for hypothesis in hypotheses])
        sources = [piece.span for piece in pieces]
        joined, spans = join(text, sources, targets, direction.source, direction.target)
        segments = [Segment(source=source.pair, target=span.pair) for source, span in zip(sources, spans, strict=True)]
        target_tokens = sum(len(hypothesis.token_ids) for hypothesis in hypotheses)
        return Translation(
            text=joined,
            score=sum(hypothesis.log_prob for hypothesis in hypotheses) / max(1, target_tokens),
            finish_reason="length" if any(h.finish_reason == "length" for h in hypotheses) else "eos",
            source_tokens=sum(len(piece.sequence.source_ids) for piece in pieces),
            target_tokens=target_tokens,
            segments=segments if len(segments) > 1 else None,
        )
