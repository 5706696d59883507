"""Classification: the windows of texts go through the engine, and their logits are pooled.

Evidence is what an answer loses without each of its tokens (Li et al. 2016, "Understanding Neural Networks through
Representation Erasure"): one more reading for each, in the same batches as everybody's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.base.artifact import Manifest
from service.base.errors import UnprocessableRequest
from service.engine.scheduler import Sequence
from service.schemas.answers import Evidence, Prediction, ShownToken, TokenEvidence
from service.schemas.requests import ClassifyRequest
from service.schemas.timing import Timing
from service.tasks.attention import Seen, Selection, of_windows, refuse_beyond
from service.tasks.pooling import Reading, pooled, probabilities
from service.tasks.windows import shown_in_windows, windows
from service.text.tokenization import Tokenizer, beside_each, refuse_white_space
from service.text.tokens import Token
from service.workers.pool import Pool


@dataclass(frozen=True)
class _Window:
    """A part of a text that one pass reads."""

    reading: Sequence[Reading]
    own: range
    """The places of its tokens that are no special ones."""
    seen: Sequence[Seen] | None
    without: list[Sequence[Reading]] = field(default_factory=list)
    """The same without each of its own tokens, where there is to be evidence."""

    @property
    def readings(self) -> list[Sequence[Reading]]:
        return [self.reading, *(one for one in self.without if one.source_ids)]


@dataclass(frozen=True)
class _Text:
    text: str
    windows: list[_Window]


@dataclass(frozen=True, eq=False)
class Classifier:
    """One classification model, as requests see it.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
        max_evidence_tokens: most tokens that are read for the evidence of one answer.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[Reading]
    attention_pool: Pool[Seen]
    max_attention_weights: int
    max_evidence_tokens: int

    async def classify(self, request: ClassifyRequest, timeout_s: float, timing: Timing) -> list[Prediction]:
        """One prediction per text, in order.

        Raises:
            UnprocessableRequest: a text is white space only, the attention asked for does not exist, or it or the evidence is
                too much.
            RequestError: what the engines raise.
        """
        deadline = self.pool.clock() + timeout_s
        refuse_white_space(request.text, "classify")
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            texts = await beside_each(request.text, lambda text: self._text(text, selection), n_characters, timeout_s)
        windows = [window for text in texts for window in text.windows]
        self._refuse_too_many(windows, request.evidence, selection)
        if request.evidence:
            for window in windows:
                window.without.extend(_without_each(window.reading.source_ids, window.own))
        timing.ran(await self.pool.run([reading for window in windows for reading in window.readings], deadline))
        if selection is not None:
            timing.attended(await self.attention_pool.run([w.seen for w in windows if w.seen], deadline))
        with timing.tokenizing():
            return await beside_each(
                texts,
                lambda text: self._prediction(text, request.evidence, selection),
                n_characters,
                deadline - self.pool.clock(),
            )

    def _text(self, text: str, selection: Selection | None) -> _Text:
        [token_ids] = self.tokenizer.encode([text])
        if len(token_ids) <= sum(self.tokenizer.n_around):
            raise UnprocessableRequest("a text has no tokens, there is nothing to classify")
        n_before, n_after = self.tokenizer.n_around
        return _Text(
            text,
            [
                _Window(
                    Sequence(ids, Reading()),
                    range(n_before, len(ids) - n_after),
                    Sequence(ids, Seen([], selection)) if selection is not None else None,
                )
                for ids in windows(token_ids, self.manifest.limits.max_source_tokens, n_before, n_after)
            ],
        )

    def _refuse_too_many(self, windows: list[_Window], evidence: bool, selection: Selection | None) -> None:
        lengths = [len(window.reading.source_ids) for window in windows]
        n_read = sum(len(window.own) * (length - 1) for window, length in zip(windows, lengths, strict=True))
        if evidence and n_read > self.max_evidence_tokens:
            raise UnprocessableRequest(
                f"evidence: to read the texts without each of their tokens is to read {n_read:,} tokens, the limit is "
                f"{self.max_evidence_tokens:,}; send shorter texts"
            )
        if selection is not None:
            refuse_beyond(self.max_attention_weights, sum(selection.n_weights(length, 0) for length in lengths))

    def _prediction(self, text: _Text, evidence: bool, selection: Selection | None) -> Prediction:
        readings = [window.reading for window in text.windows]
        activation = self.manifest.label_activation
        assert activation is not None, "a classifier's manifest has one"
        logits = self._logits(readings)
        found = probabilities(logits, activation)
        ranked = sorted(zip(self.manifest.labels, found.tolist(), strict=True), key=lambda pair: -pair[1])
        label, score = ranked[0]
        n_read = sum(len(reading.source_ids) for reading in readings)
        prediction = Prediction(label=label, score=score, scores=dict(ranked), tokens=n_read)
        if not evidence and selection is None:
            return prediction
        tokens = self.tokenizer.read(text.text)
        n_before, n_after = self.tokenizer.n_around
        if evidence:
            prediction.evidence = self._evidence(tokens[n_before : len(tokens) - n_after], text.windows)
        if selection is not None:
            limit = self.manifest.limits.max_source_tokens
            shown = [ShownToken.of(token) for token in shown_in_windows(tokens, limit, n_before, n_after)]
            prediction.attention = of_windows(shown, [window.seen for window in text.windows if window.seen], selection)
        return prediction

    def _evidence(self, tokens: list[Token], windows: list[_Window]) -> Evidence:
        readings = [window.reading for window in windows]
        whole = self._logits(readings)
        lost = [
            whole - self._logits([*readings[:i], without, *readings[i + 1 :]])
            for i, window in enumerate(windows)
            for without in window.without
        ]

        def by_label(values: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(self.manifest.labels, values.tolist(), strict=True))

        return Evidence(
            logits=by_label(whole),
            tokens=[
                TokenEvidence.model_construct(**ShownToken.of(token).model_dump(), contributions=by_label(values))
                for token, values in zip(tokens, lost, strict=True)
            ],
        )

    def _logits(self, readings: list[Sequence[Reading]]) -> NDArray[np.float64]:
        """Of all windows together (C); where no token is left, no label is likelier than another."""
        pooling = self.manifest.pooling
        assert pooling is not None, "a classifier's manifest has one"
        read = [reading for reading in readings if reading.source_ids]
        if not read:
            return np.zeros(len(self.manifest.labels))
        n_special = sum(self.tokenizer.n_around) if pooling == "first" else 0  # which are no part of a mean there
        lengths = [max(1, len(reading.source_ids) - n_special) for reading in read]
        return pooled([reading.output for reading in read], lengths, pooling)


def _without_each(ids: list[int], places: Iterable[int]) -> list[Sequence[Reading]]:
    """The same tokens without that in each of the places."""
    return [Sequence([*ids[:i], *ids[i + 1 :]], Reading(), low_priority=True) for i in places]
