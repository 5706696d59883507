"""A leg: the texts of a request go through one model in one direction. A translation through a third language has two.

Each text is read into a manuscript, the sentences of all go through the engine, and composition.py makes texts of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TypeVar

from service.engine.beam_search import Search
from service.engine.scheduler import Sequence
from service.glossaries.terms import NO_TERMS, Terms, TermTable
from service.schemas.answers import Translation
from service.schemas.requests import KeepPattern, TranslateRequest
from service.tasks.attention import Seen, Selection, refuse_beyond, refuse_beyond_shown
from service.tasks.composition import composed
from service.tasks.context import Context
from service.tasks.manuscript import Manuscript, Reading, Sentence
from service.tasks.reading import Reader, read
from service.tasks.rendering import rendered, translated
from service.tasks.rewinding import is_better, joined, rewound
from service.tasks.translation import Translator
from service.text.languages import Direction
from service.text.sentences import FIRST
from service.text.tokenization import Tokenizer, beside_each

Item = TypeVar("Item")
Result = TypeVar("Result")
Hear = Callable[[int, str], None]
"""Takes the next piece of the translation of the text of this number; "" ends it."""

FIRST_AT_ONCE, MOST_AT_ONCE = 2, 32
"""Pieces of one request that are translated at once where it hears of each. The first are soon there, as little is
translated beside them; with each that is there so many may be twice as many, until they fill a batch. Others have room
beside that."""


class Leg:
    """The way of a request's texts through one translator.

    Args:
        stored: terms beside those of the request.

    Raises:
        UnprocessableRequest: max_target_tokens is above the model's limit, there are more alternatives than the beam holds, or
            the attention asked for does not exist.
    """

    def __init__(
        self,
        translator: Translator,
        direction: Direction,
        request: TranslateRequest,
        context: Context,
        stored: TermTable | None = None,
    ) -> None:
        self.manuscripts: list[Manuscript] = []
        self._translator = translator
        self._direction = direction
        self._request = request
        self._context = context
        self._stored = stored
        self._new_search = translator.new_search(request, direction)
        self._pool = translator.greedy if self._new_search().beam_size == 1 else translator.beam
        self._selection = Selection.of(request.attention, translator.manifest) if request.attention else None
        self._n_characters = sum(map(len, request.text))

    async def read(self, readings: list[Reading] | None = None) -> None:
        """Make manuscripts of the texts.

        Args:
            readings: in place of the request's texts.

        Raises:
            UnprocessableRequest: there is too much of something.
            DeadlinePassed: it took too long.
        """
        request, translator = self._request, self._translator
        patterns = [one.pattern for one in request.keep if isinstance(one, KeepPattern)]
        words = [one for one in request.keep if isinstance(one, str)]
        terms = Terms(words, patterns, request.glossary, self._stored) if readings is None else NO_TERMS
        reader = Reader(
            translator.tokenizer,
            translator.slots,
            translator.manifest.limits.max_source_tokens,
            self._direction,
            self._new_search,
            request.split_sentences,
            terms,
        )
        n_sentences = 0

        def manuscript(text: str | Reading) -> Manuscript:
            nonlocal n_sentences
            written = reader.manuscript(read(text, request, terms) if isinstance(text, str) else text)
            n_sentences += len(written.sentences)
            self._pool.refuse_beyond_limit(n_sentences)  # before the other texts are read
            return written

        self.manuscripts = await self._beside_each(readings or request.text, manuscript)
        lengths = [len(sentence.sequence.source_ids) for one in self.manuscripts for sentence in one.sentences]
        if request.alignment:
            refuse_beyond_shown(translator.max_shown_tokens, sum(lengths))
        if self._selection is not None:  # the least that it can be: translations have a token or more
            n_weights = sum(self._selection.n_weights(length, 1) for length in lengths)
            refuse_beyond(translator.max_attention_weights, n_weights)

    async def run(self, hear: Hear | None = None) -> None:
        """Translate all of them.

        Args:
            hear: gets each piece of a text as soon as it and those before it are done.

        Raises:
            RequestError: what the engines raise.
        """
        await (self._run(self.manuscripts) if hear is None else self._run_in_pieces(hear))

    async def composed(self) -> list[Translation]:
        """One translation for each text, in order. Raises DeadlinePassed."""
        compose = partial(
            composed,
            tokenizer=self._tokenizer,
            direction=self._direction,
            selection=self._selection,
            alignment=self._request.alignment,
        )
        return await self._beside_each(self.manuscripts, compose)

    async def translated(self) -> list[Reading]:
        """The translations as texts for another leg. Raises DeadlinePassed."""
        translate = partial(translated, tokenizer=self._tokenizer, direction=self._direction)
        return await self._beside_each(self.manuscripts, translate)

    @property
    def _tokenizer(self) -> Tokenizer:
        return self._translator.tokenizer

    async def _beside_each(self, items: Iterable[Item], work: Callable[[Item], Result]) -> list[Result]:
        with self._context.timing.tokenizing():
            return await beside_each(items, work, self._n_characters, self._context.left_s)

    async def _run(self, manuscripts: list[Manuscript]) -> None:
        sequences = [sentence.sequence for manuscript in manuscripts for sentence in manuscript.sentences]
        await self._search(sequences)
        await self._rewind(manuscripts)
        await self._attend(manuscripts)

    async def _search(self, sequences: list[Sequence[Search]]) -> None:
        context = self._context
        context.timing.ran(await self._pool.run(sequences, context.deadline, context.admission))

    async def _run_in_pieces(self, hear: Hear) -> None:
        pieces = ((i, piece) for i, manuscript in enumerate(self.manuscripts) for piece in manuscript.pieces())
        running: deque[tuple[int, Manuscript, asyncio.Task[None]]] = deque()
        sentences = (sentence for manuscript in self.manuscripts for sentence in manuscript.sentences)
        last, before, at_once = 0, FIRST, FIRST_AT_ONCE
        try:
            while True:
                for i, piece in islice(pieces, at_once - len(running)):
                    running.append((i, piece, asyncio.create_task(self._run([piece]))))
                if not running:
                    break
                i, piece, task = running[0]
                await task
                running.popleft()
                at_once = min(2 * at_once, MOST_AT_ONCE)
                if i != last:
                    hear(last, "")
                    last, before = i, FIRST
                rendering = partial(rendered, tokenizer=self._tokenizer, direction=self._direction, before=before)
                ((text, before),) = await self._beside_each([piece], rendering)
                if text:
                    hear(i, text)
                for done, sentence in zip(piece.sentences, sentences, strict=False):
                    sentence.rewound, sentence.seen = done.rewound, done.seen
        finally:
            for _, _, task in running:
                task.cancel()
        hear(last, "")
        await self._attend(self.manuscripts)

    async def _rewind(self, manuscripts: list[Manuscript]) -> None:
        """Search again for sentences in which slots are missing, as long as that finds more of them."""
        lacking = [s for manuscript in manuscripts for s in manuscript.sentences if s.slots and not s.has_all_slots]
        while lacking:
            tried: list[tuple[Sentence, Sequence[Search]]] = []
            for sentence in lacking:
                search = rewound(sentence.hypothesis(), sentence.sequence.output)
                if search is not None:
                    again = Sequence(sentence.sequence.source_ids, search, n_rows=search.beam_size)
                    tried.append((sentence, again))
            await self._search([again for _, again in tried])
            lacking = []
            for sentence, again in tried:
                later = joined(sentence.hypothesis(), again.output)
                if is_better(later, sentence.hypothesis(), again.output.once_tokens):
                    sentence.rewound = later
                    lacking += [sentence] if not sentence.has_all_slots else []

    async def _attend(self, manuscripts: list[Manuscript]) -> None:
        """See what the decoder attended to in the best translation of each sentence that needs it."""
        passes = self._attention_passes(manuscripts)
        if passes:
            attended = await self._translator.attention_pool.run(
                passes, self._context.deadline, self._context.admission
            )
            self._context.timing.attended(attended)

    def _attention_passes(self, manuscripts: list[Manuscript]) -> list[Sequence[Seen]]:
        """Each reads what the decoder read."""
        manifest, selection = self._translator.manifest, self._selection
        bos = manifest.special_tokens.bos
        n_weights, passes = 0, []
        for manuscript in manuscripts:
            is_aligned = self._request.alignment or manuscript.needs_alignment
            choice = manifest.alignment if is_aligned else None
            for sentence in manuscript.sentences if selection or choice else []:
                if sentence.seen is None:
                    source_ids, target_ids = sentence.sequence.source_ids, sentence.hypothesis().token_ids
                    n_weights += selection.n_weights(len(source_ids), len(target_ids)) if selection else 0
                    seen = Seen([bos, *target_ids[:-1]], selection, choice)
                    sentence.seen = Sequence(source_ids, seen, n_target=len(target_ids))
                    passes.append(sentence.seen)
        refuse_beyond(self._translator.max_attention_weights, n_weights)
        return passes
