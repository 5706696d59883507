"""Embeddings of texts, or of each of their tokens.

They have their own engine, which runs only the encoder, so that translations and labels do not wait for them. A
translator reads sentences, as in training; other models read whole texts. If a text is read in several sentences or
windows, its embedding is the mean of their embeddings, weighted by their numbers of pooled tokens.

Legend: S tokens of a window, E width of the encoder, D width of an embedding.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from manifest.schema import Manifest, TokenPooling
from service.base.errors import EmptyText, InvalidFields, LimitExceeded, SourceRequired, UnsupportedOption
from service.engine.scheduler import Sequence
from service.kept.unwritable import hidden
from service.passes.attention import AttentionPass
from service.passes.pooling import Vectors, WindowEmbedding
from service.pool.pool import Pool
from service.schemas.answers import ShownToken, TextEmbedding, TokenEmbeddings, encoded
from service.schemas.requests import EmbedRequest, Encoding
from service.tasks.attention import Selection, join_windows, refuse_too_many_weights
from service.tasks.context import Context
from service.tasks.windows import shown_in_windows, windows
from service.text.languages import Side, WantedLanguage, subtag
from service.text.sentences import sentence_spans
from service.text.spans import NO_EDITS, Edits, Span, replace_spans
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, Tokenizer, refuse_white_space, run_on_each
from service.text.tokens import Token

BLANKS = re.compile(r"[^\S\t-\r\x1c-\x1f\x85\u2028\u2029]{2,}")
"""Spaces of any width. A tab or a line end separates sentences."""


@dataclass(frozen=True)
class _Options:
    """The options of a request, with the model's defaults filled in.

    Attributes:
        pooling: the kinds of pooling whose vectors are joined; empty: one vector for each token.
        projected: whether the pooled vector goes through the model's dense layers.
        n_prompt: the number of tokens of the prompt.
    """

    pooling: tuple[TokenPooling, ...]
    projected: bool
    dimensions: int
    normalize: bool
    prompt: str
    n_prompt: int
    selection: Selection | None


@dataclass(frozen=True)
class _Passage:
    """A sentence, or a whole text if the model reads texts, with its windows.

    Attributes:
        start: its position in the text that the model reads; negative if a prompt comes before the text.
        prefix: the tokens before it.
        n_before, n_after: the numbers of tokens at its ends that every window repeats.
    """

    start: int
    text: str
    prefix: tuple[int, ...]
    n_before: int
    n_after: int
    windows: list[Sequence[WindowEmbedding]]
    passes: list[Sequence[AttentionPass]]
    edits: Edits
    """The edits from the client's text to the text that the model reads."""


@dataclass(frozen=True, eq=False)
class Embedder:
    """Makes embeddings with the encoder of one model. The embeddings, or the attention matrices, of an answer have at
    most `max_numbers` numbers. Models of other tasks have no attention pool, because their own routes attend."""

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    pool: Pool[WindowEmbedding]
    max_numbers: int
    attention_pool: Pool[AttentionPass] | None = None

    @cached_property
    def languages(self) -> Side:
        """Source languages of a translator; other models have no named languages."""
        return Side(self.manifest.sources)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a text's embedding with the model's own pooling."""
        embedding = self.manifest.embedding
        return embedding.dimensions if embedding is not None else self.manifest.dimensions.d_states

    async def embed(
        self, request: EmbedRequest, context: Context
    ) -> tuple[list[TextEmbedding | TokenEmbeddings], int, int]:
        """Return the embeddings of the texts in order, their number of dimensions, and the number of tokens read.

        Raises:
            EmptyText: a text has nothing to read.
            InvalidFields, UnsupportedOption: the model does not have the requested prompt or attention.
            LimitExceeded: the answer would have too many numbers.
            RequestError: an engine failed or is not available.
        """
        deadline, timing = context.deadline, context.timing
        refuse_white_space(request.text, "embed")
        n_characters = sum(map(len, request.text))
        if n_characters > MAX_CHARACTERS_WITHOUT_THREAD:
            self.pool.refuse_late(len(request.text), deadline, client=context.client)
        options = self._options(request)
        with timing.tokenizing():
            read_text = partial(self._passages, source=request.source, options=options)
            texts = await run_on_each(request.text, read_text, n_characters, context.left_s)
        read = [window for text in texts for passage in text for window in passage.windows]
        passes = [window for text in texts for passage in text for window in passage.passes]
        n_tokens = sum(len(window.source_ids) for window in read)
        self._refuse_too_many(len(texts) if options.pooling else n_tokens, options)
        if options.selection is not None:
            numbers = sum(options.selection.n_weights(len(window.source_ids), 0) for window in passes)
            refuse_too_many_weights(self.max_numbers, numbers)
        timing.ran(await self.pool.run(read, deadline, client=context.client))
        if self.attention_pool is not None and passes:
            timing.attended(await self.attention_pool.run(passes, deadline, client=context.client))
        with timing.tokenizing():
            answer = partial(self._answer, options=options, encoding=request.encoding)
            embeddings = await run_on_each(texts, answer, n_characters, context.left_s)
            return embeddings, options.dimensions, n_tokens

    def _options(self, request: EmbedRequest) -> _Options:
        embedding = self.manifest.embedding
        prompt = self._prompt(request.prompt)
        n_prompt = len(self.tokenizer.encode([prompt])[0]) - sum(self.tokenizer.n_around) if prompt else 0
        normalize = request.normalize
        if normalize is None:
            normalize = embedding.normalize if embedding is not None else True
        selection = None
        if request.attention is not None:
            if self.attention_pool is None:
                route = "/translate" if self.manifest.task == "translation" else "/classify"
                raise UnsupportedOption(f"`attention` of {self.manifest.name} is available at {route}")
            selection = Selection.of(request.attention, self.manifest)
        if embedding is not None and request.pooling is None:
            by_default = WindowEmbedding.by_default(self.manifest)
            kinds, projected, whole = by_default.pooling, by_default.projected, self.dimensions
        else:
            kinds = () if request.pooling == "none" else ("mean",)
            projected, whole = False, self.manifest.dimensions.d_states
        dimensions = self._dimensions(request, whole)
        return _Options(kinds, projected, dimensions, normalize, prompt, n_prompt, selection)

    def _dimensions(self, request: EmbedRequest, whole: int) -> int:
        """Return the number of dimensions of the answer. Raises InvalidFields: the model was not trained for embeddings
        that are cut to this number, or another pooling is requested."""
        embedding, asked = self.manifest.embedding, request.dimensions
        cut_to = embedding.cut_to if embedding is not None else ()
        if asked is None or asked == whole:
            return whole
        if asked in cut_to and request.pooling is None:
            return asked
        message = f"must be {' or '.join(map(str, (*cut_to, whole)))} for {self.manifest.name}, not {asked}"
        if not cut_to:
            message += ": it was not trained to have its embeddings cut"
        elif request.pooling is not None:
            message = "must not be given with `pooling`"
        raise InvalidFields([(("dimensions",), message)])

    def _prompt(self, name: str | None) -> str:
        """Return the text of a prompt, by default the model's. Raises InvalidFields: the model has no such prompt."""
        embedding = self.manifest.embedding
        prompts = embedding.prompts if embedding is not None else {}
        if name is None:
            default = embedding.default_prompt if embedding is not None else None
            return prompts[default] if default is not None else ""
        if name not in prompts:
            available = ", ".join(prompts) or "none"
            message = f"must be a prompt of {self.manifest.name}, not {name!r}; available: {available}"
            raise InvalidFields([(("prompt",), message)])
        return prompts[name]

    def _passages(self, text: str, source: str | None, options: _Options) -> list[_Passage]:
        is_translator = self.manifest.task == "translation"
        passages = self._sentences(text, source, options) if is_translator else self._whole(text, options)
        if not passages:
            raise EmptyText(f"A text has no tokens to embed: {text[:20]!r}")
        return passages

    def _sentences(self, text: str, source: str | None, options: _Options) -> list[_Passage]:
        """A translator reads several spaces as one, and no hidden characters."""
        blanks = [(Span(*match.span()), " ") for match in BLANKS.finditer(text)]
        unseen = hidden(text, self.tokenizer.has)
        text, edits = replace_spans(text, sorted([*blanks, *unseen], key=lambda item: item[0].pair))
        language, prefix = self._source(source)
        limit, nothing = self.manifest.limits.max_source_tokens, [*prefix, self.manifest.special_tokens.eos]
        spans = sentence_spans(text, language) or [Span(0, len(text))]  # if the text has only punctuation
        make = partial(self._passage, options=options, prefix=prefix, edits=edits)
        encoded = self.tokenizer.encode_spans(text, spans, limit, prefix)
        return [make(span.start, span.of(text), token_ids) for span, token_ids in encoded if token_ids != nothing]

    def _whole(self, text: str, options: _Options) -> list[_Passage]:
        n_before, n_after = self.tokenizer.n_around
        [token_ids] = self.tokenizer.encode([options.prompt + text])
        if len(token_ids) <= n_before + options.n_prompt + n_after:  # the prompt's last token may include the text
            [of_text] = self.tokenizer.encode([text])
            if len(of_text) <= n_before + n_after:
                return []
        n_before = min(n_before + options.n_prompt, len(token_ids) - n_after - 1)
        return [self._passage(-len(options.prompt), options.prompt + text, token_ids, options, n_before, n_after)]

    def _passage(
        self,
        start: int,
        text: str,
        token_ids: list[int],
        options: _Options,
        n_before: int = 0,
        n_after: int = 0,
        prefix: tuple[int, ...] = (),
        edits: Edits = NO_EDITS,
    ) -> _Passage:
        parts = windows(token_ids, self.manifest.limits.max_source_tokens, n_before, n_after)
        embedding = self.manifest.embedding
        n_prompt = self.tokenizer.n_around[0] + options.n_prompt
        n_left_out = n_prompt if options.prompt and embedding and not embedding.pool_prompt else 0
        pooling, projected, selection = options.pooling, options.projected, options.selection
        read = [Sequence(ids, WindowEmbedding(pooling, min(n_left_out, len(ids) - 1), projected)) for ids in parts]
        passes = [Sequence(ids, AttentionPass([], selection.chosen)) for ids in parts] if selection is not None else []
        return _Passage(start, text, prefix, n_before, n_after, read, passes, edits)

    def _source(self, code: str | None) -> tuple[str, tuple[int, ...]]:
        """Return the source language of a translator, and the tokens that name it. Raises SourceRequired: the tokens
        depend on the language, and the request names none."""
        names = next(filter(None, map(self.languages.named, WantedLanguage.of_sources(code))))
        prefix, *others = {self.languages.by_name[name].source_prefix for name in names}
        if others:
            raise SourceRequired(f"`source` is required: {self.manifest.name} reads {len(names)} languages")
        return subtag(code or names[0]), prefix

    def _refuse_too_many(self, n_vectors: int, options: _Options) -> None:
        numbers = n_vectors * options.dimensions
        if numbers > self.max_numbers:
            way_out = "send fewer texts" if options.pooling else "send shorter texts, or set `pooling` to mean"
            counted = f"{n_vectors:,} embeddings of {options.dimensions} dimensions have {numbers:,} numbers"
            raise LimitExceeded(f"{counted}; the limit is {self.max_numbers:,}: {way_out}")

    def _answer(self, text: list[_Passage], options: _Options, encoding: Encoding) -> TextEmbedding | TokenEmbeddings:
        read = [window for passage in text for window in passage.windows]
        vectors = [window.output.vectors for window in read]
        tokens, attention = [], None
        if not options.pooling or options.selection is not None:
            tokens = [ShownToken.of(token) for passage in text for token in self._tokens(passage)]
        if options.selection is not None:
            passes = [attended for passage in text for attended in passage.passes]
            attention = join_windows(tokens, passes, options.selection)
        if not options.pooling:
            rows = _encode_vectors(np.concatenate(vectors), options.normalize, encoding)
            return TokenEmbeddings.model_construct(tokens=tokens, embeddings=rows, attention=attention)
        n_pooled = [len(window.source_ids) - window.output.n_left_out for window in read]
        mean = np.average(vectors, axis=0, weights=n_pooled)[: options.dimensions]
        row = _encode_vectors(mean, options.normalize, encoding)
        return TextEmbedding.model_construct(embedding=row, attention=attention)

    def _tokens(self, passage: _Passage) -> Iterator[Token]:
        read = [token.moved(passage.start) for token in self.tokenizer.source_tokens(passage.text, passage.prefix)]
        tokens = [Token(token.token, *passage.edits.before(token.span).pair) for token in read]
        limit = self.manifest.limits.max_source_tokens
        return shown_in_windows(tokens, limit, passage.n_before, passage.n_after)


def _encode_vectors(vectors: Vectors, normalize: bool, encoding: Encoding) -> Any:
    """Encode vectors (..., D), scaled to length 1 if requested. A zero vector stays zero."""
    if normalize:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1)
    return encoded(vectors.astype(np.float32), encoding)
