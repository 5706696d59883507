"""Embeddings: the encoder's state for each token, or the mean of the states over a text.

An engine of its own runs the encoder alone, so that neither a translation nor a label waits for it. A translator reads
sentences, as it was trained to; a classifier reads texts, or windows of a text that is too long. The mean is over all
tokens of a text, however many windows there are.

Legend: S tokens of a window, E width of the encoder.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from service.artifact import Manifest
from service.contract import Embed
from service.engine.pool import Pool
from service.engine.scheduler import Sequence
from service.errors import NotAcceptable
from service.schemas.answers import ShownToken, TextEmbedding, TokenEmbeddings, encoded
from service.schemas.requests import EmbedRequest
from service.schemas.timing import Timing
from service.tasks.pooling import refuse_not_finite
from service.tasks.windows import windows
from service.text.languages import Side, Wanted, subtag
from service.text.sentences import sentence_spans
from service.text.spans import Span
from service.text.tokenization import Tokenizer, beside_each, refuse_white_space

Vectors = NDArray[np.float64]


@dataclass
class Embedded:
    """What one window is asked for, and its result: the sum of its tokens' vectors (E), or each of them (S, E)."""

    wants_tokens: bool
    vectors: Vectors = field(default_factory=lambda: np.zeros(0))


def read_states(embed: Embed, sequences: list[Sequence[Embedded]]) -> None:
    """What an embedding engine runs."""
    found = embed([sequence.source_ids for sequence in sequences])
    for sequence, states in zip(sequences, found, strict=True):
        refuse_not_finite(states)
        vectors = states.astype(np.float64)  # a copy: the batch is not kept for the sake of one text
        sequence.output.vectors = vectors if sequence.output.wants_tokens else vectors.sum(axis=0)


@dataclass(frozen=True)
class _Stretch:
    """A sentence, or a whole text where the model reads texts, and the windows in which it is read."""

    start: int
    """Where it begins in the text."""
    text: str
    prefix: tuple[int, ...]
    """Tokens that stand before it."""
    windows: list[Sequence[Embedded]]

    @property
    def token_ids(self) -> list[int]:
        return [token_id for window in self.windows for token_id in window.source_ids]


@dataclass(frozen=True, eq=False)
class Embedder:
    """The encoder of one model, as requests see it.

    Args:
        max_numbers: most numbers in the embeddings of one answer.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[Embedded]
    max_numbers: int

    @property
    def width(self) -> int:
        """E."""
        return self.manifest.dimensions.d_model

    @cached_property
    def languages(self) -> Side:
        """Those that a translator reads; a classifier knows none by name."""
        return Side(self.manifest.sources)

    async def embed(
        self, request: EmbedRequest, timeout_s: float, timing: Timing
    ) -> tuple[list[TextEmbedding | TokenEmbeddings], int]:
        """One embedding, or one for each token, per text, in order; and how many tokens were read.

        Raises:
            NotAcceptable: a text is white space only, or the answer would have too many numbers.
            RequestError: what the engine raises.
        """
        deadline = self.pool.clock() + timeout_s
        refuse_white_space(request.text, "embed")
        n_characters = sum(map(len, request.text))
        with timing.tokenizing():
            texts = await beside_each(
                request.text, lambda text: self._stretches(text, request), n_characters, timeout_s
            )
        n_tokens = sum(len(stretch.token_ids) for text in texts for stretch in text)
        if request.pooling == "none":
            self._refuse_too_many(n_tokens, 'send shorter texts, or ask for "pooling": "mean"')
        else:
            self._refuse_too_many(len(texts), "send fewer texts")
        sequences = [window for text in texts for stretch in text for window in stretch.windows]
        timing.ran(await self.pool.run(sequences, deadline))
        with timing.tokenizing():
            remaining_s = deadline - self.pool.clock()
            shaped = await beside_each(texts, lambda text: self._shaped(text, request), n_characters, remaining_s)
            return shaped, n_tokens

    def _stretches(self, text: str, request: EmbedRequest) -> list[_Stretch]:
        limit, wants_tokens = self.manifest.limits.max_source_tokens, request.pooling == "none"
        prefix: tuple[int, ...] = ()
        around = (0, 0)
        if self.manifest.task == "translation":
            language, prefix = self._source(request.source)
            spans = sentence_spans(text, language)
            spans = spans or [Span(0, len(text))]  # of marks alone
            nothing = [*prefix, self.manifest.special_tokens.eos]
            pieces = [piece for piece in self.tokenizer.encode_spans(text, spans, limit, prefix) if piece[1] != nothing]
        else:
            around = len(self.tokenizer.around[0]), len(self.tokenizer.around[1])
            pieces = [(Span(0, len(text)), ids) for ids in self.tokenizer.encode([text]) if len(ids) > sum(around)]
        if not pieces:
            raise NotAcceptable(f"a text has no tokens, there is nothing to embed: {text[:20]!r}")
        stretches = []
        for span, token_ids in pieces:
            read = [Sequence(ids, Embedded(wants_tokens)) for ids in windows(token_ids, limit, *around)]
            stretches.append(_Stretch(span.start, span.of(text), prefix, read))
        return stretches

    def _source(self, code: str | None) -> tuple[str, tuple[int, ...]]:
        """The language in which a translator reads texts, and the tokens that tell it so.

        Raises:
            NotAcceptable: it must be told which of its languages it is.
        """
        names = next(filter(None, map(self.languages.named, Wanted.of_sources(code))))
        prefix, *others = {self.languages.by_name[name].source_prefix for name in names}
        if others:
            raise NotAcceptable(f"{self.manifest.name} reads {len(names)} languages, name source")
        return subtag(code or names[0]), prefix

    def _refuse_too_many(self, n_vectors: int, way_out: str) -> None:
        numbers = n_vectors * self.width
        if numbers > self.max_numbers:
            raise NotAcceptable(
                f"{n_vectors:,} embeddings of {self.width} dimensions have {numbers:,} numbers, "
                f"the limit is {self.max_numbers:,}; {way_out}"
            )

    def _shaped(self, text: list[_Stretch], request: EmbedRequest) -> TextEmbedding | TokenEmbeddings:
        found = [window.output.vectors for stretch in text for window in stretch.windows]
        if request.pooling == "none":
            return TokenEmbeddings.model_construct(
                tokens=[
                    ShownToken.of(token.moved(stretch.start))
                    for stretch in text
                    for token in self.tokenizer.read(stretch.text, stretch.prefix)
                ],
                embeddings=_numbers(np.concatenate(found), request),
            )
        mean = np.sum(found, axis=0) / sum(len(stretch.token_ids) for stretch in text)
        return TextEmbedding.model_construct(embedding=_numbers(mean, request))


def _numbers(vectors: Vectors, request: EmbedRequest) -> Any:
    """Vectors (..., E), each at length 1 if that is asked for; one that is 0 stays so."""
    if request.normalize:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1)
    return encoded(vectors.astype(np.float32), request.encoding)
