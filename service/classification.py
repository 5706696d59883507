"""Texts to labels: windows out, through the engine, and their logits pooled."""

from typing import Literal

from service.artifact import Manifest
from service.errors import NotAcceptable
from service.pool import Pool
from service.pooling import Reading, probabilities, windows
from service.scheduler import Sequence
from service.schemas import ClassifyRequest, Prediction
from service.timing import Timing
from service.tokenization import Tokenizer, beside


class Classifier:
    """One classification model, as requests see it."""

    def __init__(
        self, manifest: Manifest, provider: Literal["cpu", "cuda"], tokenizer: Tokenizer, pool: Pool[Reading]
    ) -> None:
        self.manifest = manifest
        self.provider = provider
        self.pool = pool
        self._tokenizer = tokenizer

    async def classify(self, request: ClassifyRequest, timeout_s: float, timing: Timing) -> list[Prediction]:
        """One prediction per text, in order.

        Raises:
            NotAcceptable: a text is white space only.
            RequestError: what the engine raises.
        """
        deadline = self.pool.clock() + timeout_s
        if any(text.isspace() for text in request.text):
            raise NotAcceptable("a text is white space only, there is nothing to classify")
        with timing.tokenizing():
            texts = await beside(sum(map(len, request.text)), lambda: self._windows(request.text))
        timing.ran(await self.pool.run([window for text in texts for window in text], deadline))
        return [self._prediction(text) for text in texts]

    def _windows(self, texts: list[str]) -> list[list[Sequence[Reading]]]:
        limit = self.manifest.limits.max_source_tokens
        encoded = self._tokenizer.encode(texts)
        if not all(encoded):
            raise NotAcceptable("a text has no tokens, there is nothing to classify")
        return [[Sequence(window, Reading()) for window in windows(ids, limit)] for ids in encoded]

    def _prediction(self, text: list[Sequence[Reading]]) -> Prediction:
        lengths = [len(window.source_ids) for window in text]
        pooling = self.manifest.pooling
        assert pooling is not None, "a classifier's manifest has one"
        scores = probabilities([window.output for window in text], lengths, pooling)
        ranked = sorted(zip(self.manifest.labels, scores.tolist(), strict=True), key=lambda pair: -pair[1])
        label, score = ranked[0]
        return Prediction(label=label, score=score, scores=dict(ranked), tokens=sum(lengths))
