"""Classification: the windows of texts go through the engine, and their logits are pooled."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from service.artifact import Manifest
from service.engine.pool import Pool
from service.engine.scheduler import Sequence
from service.errors import NotAcceptable
from service.schemas.answers import Evidence, Prediction, ShownToken, TokenEvidence
from service.schemas.requests import ClassifyRequest
from service.schemas.timing import Timing
from service.tasks.attention import Seen, Selection, of_windows, refuse_beyond, refuse_beyond_shown
from service.tasks.pooling import Reading, contributions, pooled, probabilities
from service.tasks.windows import shown_in_windows, windows
from service.text.tokenization import Tokenizer, beside_each, refuse_white_space


@dataclass(frozen=True)
class _Window:
    """A part of a text that one pass reads."""

    reading: Sequence[Reading]
    seen: Sequence[Seen] | None


@dataclass(frozen=True)
class _Text:
    text: str
    windows: list[_Window]


@dataclass(frozen=True, eq=False)
class Classifier:
    """One classification model, as requests see it.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
        max_shown_tokens: most tokens that one answer has evidence for.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[Reading]
    attention_pool: Pool[Seen]
    max_attention_weights: int
    max_shown_tokens: int

    async def classify(self, request: ClassifyRequest, timeout_s: float, timing: Timing) -> list[Prediction]:
        """One prediction per text, in order.

        Raises:
            NotAcceptable: a text is white space only, the model has no evidence, or the attention asked for does not
                exist or is too much.
            RequestError: what the engines raise.
        """
        deadline = self.pool.clock() + timeout_s
        refuse_white_space(request.text, "classify")
        if request.evidence and self.manifest.pooling == "first":
            raise NotAcceptable(
                f"evidence: the logits of {self.manifest.name} are made of what its first token has become, "
                'and are no sums over tokens; ask for "attention"'
            )
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            texts = await beside_each(
                request.text, lambda text: self._text(text, request, selection), n_characters, timeout_s
            )
        windows = [window for text in texts for window in text.windows]
        self._refuse_too_many(windows, request, selection)
        timing.ran(await self.pool.run([window.reading for window in windows], deadline))
        if selection is not None:
            timing.attended(await self.attention_pool.run([w.seen for w in windows if w.seen], deadline))
        with timing.tokenizing():
            return await beside_each(
                texts,
                lambda text: self._prediction(text, request.evidence, selection),
                n_characters,
                deadline - self.pool.clock(),
            )

    def _text(self, text: str, request: ClassifyRequest, selection: Selection | None) -> _Text:
        [token_ids] = self.tokenizer.encode([text])
        if len(token_ids) <= sum(self.tokenizer.n_around):
            raise NotAcceptable("a text has no tokens, there is nothing to classify")
        return _Text(
            text,
            [
                _Window(
                    Sequence(ids, Reading(request.evidence)),
                    Sequence(ids, Seen([], selection)) if selection is not None else None,
                )
                for ids in windows(token_ids, self.manifest.limits.max_source_tokens, *self.tokenizer.n_around)
            ],
        )

    def _refuse_too_many(self, windows: list[_Window], request: ClassifyRequest, selection: Selection | None) -> None:
        lengths = [len(window.reading.source_ids) for window in windows]
        if request.evidence:
            refuse_beyond_shown(self.max_shown_tokens, sum(lengths), "evidence")
        if selection is not None:
            refuse_beyond(self.max_attention_weights, sum(selection.n_weights(length, 0) for length in lengths))

    def _prediction(self, text: _Text, evidence: bool, selection: Selection | None) -> Prediction:
        readings = [window.reading.output for window in text.windows]
        n_read = [len(window.reading.source_ids) for window in text.windows]
        lengths = [n - sum(self.tokenizer.n_around) for n in n_read]
        pooling, activation = self.manifest.pooling, self.manifest.label_activation
        assert pooling is not None, "a classifier's manifest has one"
        assert activation is not None, "a classifier's manifest has one"
        found = probabilities(pooled(readings, lengths, pooling), activation)
        ranked = sorted(zip(self.manifest.labels, found.tolist(), strict=True), key=lambda pair: -pair[1])
        label, score = ranked[0]
        prediction = Prediction(label=label, score=score, scores=dict(ranked), tokens=sum(n_read))
        if evidence or selection is not None:
            limit = self.manifest.limits.max_source_tokens
            tokens = shown_in_windows(self.tokenizer.read(text.text), limit, *self.tokenizer.n_around)
            shown = [ShownToken.of(token) for token in tokens]
            if evidence and pooling != "first":
                prediction.evidence = self._evidence(shown, readings, lengths, pooling)
            if selection is not None:
                prediction.attention = of_windows(
                    shown, [window.seen for window in text.windows if window.seen], selection
                )
        return prediction

    def _evidence(
        self, tokens: list[ShownToken], readings: list[Reading], lengths: list[int], pooling: Literal["mean", "max"]
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
