"""Texts to labels: windows out, through the engine, and their logits pooled."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from service.artifact import Manifest
from service.attention import Seen, Selection, refuse_beyond
from service.errors import NotAcceptable
from service.markup.edits import Edits
from service.markup.respelling import respelled
from service.pool import Pool
from service.pooling import Pooling, Reading, contributions, pooled, probabilities, windows
from service.scheduler import Sequence
from service.schemas import (
    ClassifierAttention,
    ClassifyRequest,
    Evidence,
    Prediction,
    ShownToken,
    TokenEvidence,
)
from service.timing import Timing
from service.tokenization import Tokenizer, beside


@dataclass(frozen=True)
class _Window:
    """A part of a text that is read at once."""

    reading: Sequence[Reading]
    seen: Sequence[Seen] | None


@dataclass(frozen=True, eq=False)
class Classifier:
    """One classification model, as requests see it.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[Reading]
    attention_pool: Pool[Seen]
    max_attention_weights: int

    async def classify(self, request: ClassifyRequest, timeout_s: float, timing: Timing) -> list[Prediction]:
        """One prediction per text, in order.

        Raises:
            NotAcceptable: a text is white space only, or the attention asked for does not exist or is too much.
            RequestError: what the engines raise.
        """
        deadline = self.pool.clock() + timeout_s
        if any(text.isspace() for text in request.text):
            raise NotAcceptable("a text is white space only, there is nothing to classify")
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            read = await beside(n_characters, lambda: [respelled(text) for text in request.text])
            texts = await beside(n_characters, lambda: self._windows([text for text, _ in read], request, selection))
        windows = [window for text in texts for window in text]
        timing.ran(await self.pool.run([window.reading for window in windows], deadline))
        if selection is not None:
            timing.attended(await self.attention_pool.run([w.seen for w in windows if w.seen], deadline))
        with timing.tokenizing():
            return await beside(
                n_characters,
                lambda: [
                    self._prediction(text, edits, request.evidence, selection)
                    for text, (_, edits) in zip(texts, read, strict=True)
                ],
            )

    def _windows(
        self, texts_read: list[str], request: ClassifyRequest, selection: Selection | None
    ) -> list[list[_Window]]:
        limit = self.manifest.limits.max_source_tokens
        encoded = self.tokenizer.encode(texts_read)
        if not all(encoded):
            raise NotAcceptable("a text has no tokens, there is nothing to classify")
        texts = [windows(ids, limit) for ids in encoded]
        if selection is None:
            return [[_Window(Sequence(ids, Reading(request.evidence)), None) for ids in text] for text in texts]
        refuse_beyond(
            self.max_attention_weights, sum(selection.n_weights(len(ids), 0) for text in texts for ids in text)
        )
        return [
            [_Window(Sequence(ids, Reading(request.evidence)), Sequence(ids, Seen([], selection))) for ids in text]
            for text in texts
        ]

    def _prediction(self, text: list[_Window], edits: Edits, evidence: bool, selection: Selection | None) -> Prediction:
        readings = [window.reading.output for window in text]
        lengths = [len(window.reading.source_ids) for window in text]
        pooling = self.manifest.pooling
        assert pooling is not None, "a classifier's manifest has one"
        logits = pooled(readings, lengths, pooling)
        ranked = sorted(
            zip(self.manifest.labels, probabilities(logits).tolist(), strict=True), key=lambda pair: -pair[1]
        )
        label, score = ranked[0]
        prediction = Prediction(label=label, score=score, scores=dict(ranked), tokens=sum(lengths))
        if evidence or selection is not None:
            tokens = self.tokenizer.located([i for window in text for i in window.reading.source_ids])
            shown = [ShownToken.of(token.before(edits)) for token in tokens]
            prediction.evidence = self._evidence(shown, readings, lengths, pooling) if evidence else None
            prediction.attention = _attention(shown, text, selection) if selection is not None else None
        return prediction

    def _evidence(
        self, tokens: list[ShownToken], readings: list[Reading], lengths: list[int], pooling: Pooling
    ) -> Evidence:
        labels, bias = self.manifest.labels, np.array(self.manifest.bias)
        parts, winners = contributions(readings, bias, pooling)
        logits = pooled(readings, lengths, pooling)

        def by_label(values: list[float]) -> dict[str, float]:
            return dict(zip(labels, values, strict=True))

        return Evidence(
            pooling=pooling,
            logits=by_label(logits.tolist()),
            bias=by_label(bias.tolist()),
            winners=dict(zip(labels, winners.tolist(), strict=True)) if winners is not None else None,
            tokens=[
                TokenEvidence.model_construct(token=token.token, span=token.span, contributions=by_label(part))
                for token, part in zip(tokens, parts.tolist(), strict=True)
            ],
        )


def _attention(tokens: list[ShownToken], text: list[_Window], selection: Selection) -> ClassifierAttention:
    matrices, first = [], 0
    for window in text:
        assert window.seen is not None
        matrices += selection.of_sentence(window.seen.output.matrices, first, 0)
        first += len(window.seen.source_ids)
    return ClassifierAttention.model_construct(source=tokens, matrices=matrices)
