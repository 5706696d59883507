"""Classification: an engine computes the logits of each window of a text, which are then pooled.

Evidence is how much the logits lose without each token (Li et al. 2016, "Understanding Neural Networks through
Representation Erasure"). It takes one more pass for each token, in the same batches as other requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manifest.schema import Manifest
from service.base.errors import EmptyText, LimitExceeded, TextTooLong, UnsupportedOption
from service.engine.scheduler import Sequence
from service.passes.attention import AttentionPass
from service.passes.pooling import WindowLogits
from service.pool.pool import Pool
from service.schemas.answers import Evidence, Prediction, ShownToken, TokenEvidence
from service.schemas.requests import ClassifyRequest
from service.tasks.attention import Selection, join_windows, refuse_too_many_weights
from service.tasks.context import Context
from service.tasks.scores import pool_windows, scores_of
from service.tasks.windows import shown_in_windows, windows
from service.text.pairs import Pair
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, Tokenizer, refuse_white_space, run_on_each
from service.text.tokens import Token

MAX_EVIDENCE_TOKENS = 131_072
"""Maximum number of tokens that are read for the evidence of one answer. A text is read once without each of its
tokens: for a window of 256 tokens these are 65,000 tokens, some seconds of work."""


@dataclass(frozen=True)
class _Window:
    """A part of a text that fits into one pass."""

    reading: Sequence[WindowLogits]
    positions: range
    """The positions of all tokens, except special tokens."""
    attention_pass: Sequence[AttentionPass] | None
    without: list[Sequence[WindowLogits]] = field(default_factory=list)
    """The window without each of its own tokens; empty unless evidence is requested."""

    @property
    def readings(self) -> list[Sequence[WindowLogits]]:
        return [self.reading, *(sequence for sequence in self.without if sequence.source_ids)]


@dataclass(frozen=True, eq=False)
class Classifier:
    """Classifies texts with one model. The attention matrices of an answer have at most `max_numbers` numbers."""

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[WindowLogits]
    attention_pool: Pool[AttentionPass]
    max_numbers: int

    @property
    def is_reranker(self) -> bool:
        """Whether the model gives a pair of texts one score."""
        return self.manifest.pairs and len(self.manifest.labels) == 1

    async def classify(self, request: ClassifyRequest, context: Context) -> list[Prediction]:
        """Return one prediction for each text or pair, in order.

        Raises:
            EmptyText: a text has nothing to read.
            InvalidFields: the model does not have the requested attention.
            UnsupportedOption: attention or evidence of pairs is requested.
            TextTooLong: a pair is too long, and may not be cut.
            LimitExceeded: attention or evidence would have too many numbers.
            RequestError: an engine failed or is not available.
        """
        deadline, timing = context.deadline, context.timing
        if request.text_pair is not None:
            return await self._classify_pairs(request, request.text_pair, context)
        refuse_white_space(request.text, "classify")
        n_characters = sum(map(len, request.text))
        if n_characters > MAX_CHARACTERS_WITHOUT_THREAD:
            self.pool.refuse_late(len(request.text), deadline, client=context.client)
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        with timing.tokenizing():
            read = partial(self._windows, selection=selection)
            texts = await run_on_each(request.text, read, n_characters, context.left_s)
        windows = [window for text in texts for window in text]
        self._refuse_too_many(windows, request.evidence, selection)
        if request.evidence:
            for window in windows:
                window.without.extend(_without_each(window.reading.source_ids, window.positions))
        readings = [reading for window in windows for reading in window.readings]
        timing.ran(await self.pool.run(readings, deadline, client=context.client))
        if selection is not None:
            passes = [window.attention_pass for window in windows if window.attention_pass]
            timing.attended(await self.attention_pool.run(passes, deadline, client=context.client))
        with timing.tokenizing():
            pairs = zip(request.text, texts, strict=True)
            answer = partial(self._prediction, request=request, selection=selection)
            return await run_on_each(pairs, lambda pair: answer(*pair), n_characters, context.left_s)

    async def _classify_pairs(self, request: ClassifyRequest, second: list[str], context: Context) -> list[Prediction]:
        fields = request.pair_fields
        for name, texts in zip(fields, (request.text, second), strict=True):
            refuse_white_space(texts, "read", name)
        if request.evidence or request.attention is not None:
            raise UnsupportedOption(f"`{'evidence' if request.evidence else 'attention'}` of pairs is not supported")
        n_characters = sum(map(len, request.all_texts))
        if n_characters > MAX_CHARACTERS_WITHOUT_THREAD:
            self.pool.refuse_late(len(request.text), context.deadline, client=context.client)
        own_ids = cache(self.tokenizer.own_ids)  # a query is the first text of many pairs

        def read(texts: tuple[str, str]) -> Pair:
            first_ids, second_ids = map(own_ids, texts, fields)
            return self._pair(first_ids, second_ids, request)

        with context.timing.tokenizing():
            pairs = await run_on_each(zip(request.text, second, strict=True), read, n_characters, context.left_s)
        readings = [Sequence(pair.token_ids, WindowLogits()) for pair in pairs]
        context.timing.ran(await self.pool.run(readings, context.deadline, client=context.client))
        predictions = [self._scored([reading], request.logits) for reading in readings]
        for prediction, pair in zip(predictions, pairs, strict=True):
            prediction.truncated = pair.n_left_out > 0
        return predictions

    def _pair(self, first: list[int], second: list[int], request: ClassifyRequest) -> Pair:
        limit = self.manifest.limits.max_source_tokens
        pair = self.tokenizer.join_pair(first, second, limit, request.truncation_direction)
        if pair.n_left_out and not request.truncate:
            n_tokens = len(pair.token_ids) + pair.n_left_out
            way_out = "send shorter texts, or set `truncate`"
            raise TextTooLong(f"A pair of texts has {n_tokens} tokens; the limit is {limit}: {way_out}")
        return pair

    def _windows(self, text: str, selection: Selection | None) -> list[_Window]:
        [token_ids] = self.tokenizer.encode([text])
        if len(token_ids) <= sum(self.tokenizer.n_around):
            raise EmptyText(f"A text has no tokens to classify: {text[:20]!r}")
        n_before, n_after = self.tokenizer.n_around
        return [
            _Window(
                Sequence(ids, WindowLogits()),
                range(n_before, len(ids) - n_after),
                Sequence(ids, AttentionPass([], selection.chosen)) if selection is not None else None,
            )
            for ids in windows(token_ids, self.manifest.limits.max_source_tokens, n_before, n_after)
        ]

    def _refuse_too_many(self, windows: list[_Window], evidence: bool, selection: Selection | None) -> None:
        lengths = [len(window.reading.source_ids) for window in windows]
        n_read = sum(len(window.positions) * (length - 1) for window, length in zip(windows, lengths, strict=True))
        if evidence and n_read > MAX_EVIDENCE_TOKENS:
            needed = f"{n_read:,} tokens, each text once without each of its tokens"
            limit = f"the limit is {MAX_EVIDENCE_TOKENS:,}: send shorter texts"
            raise LimitExceeded(f"`evidence` needs to read {needed}; {limit}")
        if selection is not None:
            n_weights = sum(selection.n_weights(length, 0) for length in lengths)
            refuse_too_many_weights(self.max_numbers, n_weights)

    def _scored(self, readings: list[Sequence[WindowLogits]], with_logits: bool) -> Prediction:
        activation = self.manifest.label_activation
        assert activation is not None, "a classifier's manifest has an activation"
        logits = self._logits(readings)
        scores = scores_of(logits, activation).tolist()
        ranked = sorted(zip(self.manifest.labels, scores, strict=True), key=lambda pair: -pair[1])
        label, score = ranked[0]
        n_read = sum(len(reading.source_ids) for reading in readings)
        by_label = dict(zip(self.manifest.labels, logits.tolist(), strict=True)) if with_logits else None
        return Prediction(label=label, score=score, scores=dict(ranked), tokens=n_read, logits=by_label)

    def _prediction(
        self, text: str, windows: list[_Window], request: ClassifyRequest, selection: Selection | None
    ) -> Prediction:
        evidence = request.evidence
        prediction = self._scored([window.reading for window in windows], request.logits)
        if not evidence and selection is None:
            return prediction
        tokens = self.tokenizer.source_tokens(text)
        n_before, n_after = self.tokenizer.n_around
        if evidence:
            prediction.evidence = self._evidence(tokens[n_before : len(tokens) - n_after], windows)
        if selection is not None:
            limit = self.manifest.limits.max_source_tokens
            shown = [ShownToken.of(token) for token in shown_in_windows(tokens, limit, n_before, n_after)]
            passes = [window.attention_pass for window in windows if window.attention_pass]
            prediction.attention = join_windows(shown, passes, selection)
        return prediction

    def _evidence(self, tokens: list[Token], windows: list[_Window]) -> Evidence:
        readings = [window.reading for window in windows]
        whole = self._logits(readings)
        erased = ((i, without) for i, window in enumerate(windows) for without in window.without)
        lost = [whole - self._logits([*readings[:i], without, *readings[i + 1 :]]) for i, without in erased]

        def by_label(values: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(self.manifest.labels, values.tolist(), strict=True))

        shown = (ShownToken.of(token).model_dump() for token in tokens)
        evidenced, make = zip(shown, lost, strict=True), TokenEvidence.model_construct
        by_token = [make(**token, contributions=by_label(values)) for token, values in evidenced]
        return Evidence(logits=by_label(whole), tokens=by_token)

    def _logits(self, readings: list[Sequence[WindowLogits]]) -> NDArray[np.float64]:
        """Return the logits (C) of all windows together; zeros if no token is left."""
        pooling = self.manifest.pooling
        assert pooling is not None, "a classifier's manifest tells how it pools"
        read = [reading for reading in readings if reading.source_ids]
        if not read:
            return np.zeros(len(self.manifest.labels))
        # Where one state decides, special tokens are not part of the mean.
        n_special = sum(self.tokenizer.n_around) if self.manifest.pools_states else 0
        lengths = [max(1, len(reading.source_ids) - n_special) for reading in read]
        return pool_windows([reading.output for reading in read], lengths, pooling)


def _without_each(ids: list[int], places: Iterable[int]) -> list[Sequence[WindowLogits]]:
    return [Sequence([*ids[:i], *ids[i + 1 :]], WindowLogits(), background=True) for i in places]
