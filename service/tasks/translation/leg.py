"""The conductor of a translation: a leg is the way of texts through one model in one direction, from text to text. A
translation through a third language has two legs.

Each text is read into a prepared text, the engine translates all sentences, and composition.py composes the texts.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TypeVar

from manifest.schema import Manifest
from service.base.errors import InvalidFields, LimitExceeded, UnsupportedOption
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.glossaries.terms import Terms, TermTable
from service.markup import plain
from service.markup.passages import ParsedText, Passage
from service.memories.recall import Recall
from service.passes.attention import AttentionPass
from service.pool.pool import Pool
from service.schemas.answers import Translation
from service.schemas.requests import KeepPattern, TranslateRequest
from service.tasks.attention import Selection, refuse_too_many_weights
from service.tasks.context import Context
from service.tasks.translation.beginning import Walk, begin_text, continuations, continue_sentence, write_known
from service.tasks.translation.composition import compose_answer, render, translated_text
from service.tasks.translation.confidence import Sureness
from service.tasks.translation.reading import MAX_INLINE, NewSearch, PreparedText, Reader, Sentence, parse_text
from service.tasks.translation.remembering import Lookup, Remembered
from service.tasks.translation.rewinding import is_better, join_hypotheses, rewind
from service.tasks.translation.translator import Translator
from service.tasks.translation.verification import Verification, may_be_wrong
from service.text.language_marks import MarkedLanguages
from service.text.languages import Direction
from service.text.sentences import NOTHING_BEFORE
from service.text.tokenization import MAX_CHARACTERS_WITHOUT_THREAD, run_on_each

Item = TypeVar("Item")
Result = TypeVar("Result")
OnPiece = Callable[[int, str], None]
"""Receives the number of a text and the next piece of its translation; "" ends the translation."""
MAX_READINGS = 3
"""Maximum number of further readings of a passage. With more numbers than slots each may lose others."""
NUMBERS_OF_ALIGNED_TOKEN = 20
"""An aligned source token counts as this many numbers of an answer, because it takes about 100 bytes."""
FIRST_PIECES, MAX_PIECES = 2, 32
"""Numbers of pieces of a stream that are translated at the same time: few at first, so that they are soon ready. Each
ready piece doubles the number until the pieces fill a batch. Other requests fit beside them."""


class Leg:
    """The way of a request's texts through one translator.

    Args:
        stored_terms: terms of a stored glossary, in addition to terms of the request.
        target: the language of the whole translation, if another leg follows.
        recall: finds texts in translation memories.

    Raises:
        InvalidFields, UnsupportedOption: the model or the format does not support the request.
    """

    def __init__(
        self,
        translator: Translator,
        direction: Direction,
        request: TranslateRequest,
        context: Context,
        stored_terms: TermTable | None = None,
        target: str | None = None,
        recall: Recall | None = None,
    ) -> None:
        self._recall = recall
        self._remembered: list[Remembered] = []
        self._is_last = target is None
        self.prepared_texts: list[PreparedText] = []
        self._translator = translator
        self._direction = direction
        self._languages = MarkedLanguages(direction.source, target or direction.target)
        self._request = request
        self._context = context
        self._stored_terms = stored_terms
        self._new_search = _new_search(request, direction, translator.manifest)
        self._pool = translator.greedy if self._new_search().beam_size == 1 else translator.beam
        self._selection = Selection.of(request.attention, translator.manifest) if request.attention else None
        self._n_characters = sum(map(len, request.text))

    async def read(self, parsed_texts: list[ParsedText] | None = None) -> None:
        """Prepare the texts: `parsed_texts`, or else the request's.

        Raises LimitExceeded: the texts exceed a limit. QueueFull: the translation would be late. DeadlinePassed:
        reading took too long.
        """
        request, translator, context = self._request, self._translator, self._context
        if self._n_characters > MAX_CHARACTERS_WITHOUT_THREAD:
            self._pool.refuse_late(len(request.text), context.deadline, context.admission)
        terms = None
        if parsed_texts is None and (request.keep or request.glossary or self._stored_terms):
            patterns = [kept.pattern for kept in request.keep if isinstance(kept, KeepPattern)]
            words = [kept for kept in request.keep if isinstance(kept, str)]
            stored, language = self._stored_terms, self._direction.source_subtag
            terms = await asyncio.to_thread(
                Terms, words, patterns, request.glossary, stored, language, request.case_sensitive
            )
        limit, max_inline = translator.manifest.limits.max_source_tokens, None if context.background else MAX_INLINE
        tokenizer, slots, split = translator.tokenizer, translator.slots, request.split_sentences
        self._reader = reader = Reader(
            tokenizer, slots, limit, self._direction, self._new_search, split, terms, max_inline
        )
        n_sentences = 0

        def prepare(text: str | ParsedText) -> PreparedText:
            nonlocal n_sentences
            prepared = reader.prepare(text if isinstance(text, ParsedText) else self._parsed(text, terms))
            if self._remembered:
                write_known(prepared.passages, reader.tokenizer, translator.manifest.special_tokens.eos)
            n_sentences += len(prepared.sentences)
            self._pool.refuse_beyond_limit(n_sentences)  # fails before the other texts are read
            return prepared

        texts: Iterable[str | ParsedText] = parsed_texts or request.text
        if self._recall is not None:
            texts = await self._remember(self._recall, terms)
        self.prepared_texts = await self._beside_each(texts, prepare)
        lengths = [len(sentence.sequence.source_ids) for text in self.prepared_texts for sentence in text.sentences]
        n_tokens, limit = sum(lengths), translator.max_numbers // NUMBERS_OF_ALIGNED_TOKEN
        if (request.alignment or request.confidence) and n_tokens > limit:
            wanted = "alignment" if request.alignment else "confidence"
            message = f"`{wanted}` has {n_tokens:,} source tokens; the limit is {limit:,}: send shorter texts"
            raise LimitExceeded(message)
        if self._selection is not None:  # a lower bound: every translation has a token or more
            n_weights = sum(self._selection.n_weights(length, 1) for length in lengths)
            refuse_too_many_weights(translator.max_numbers, n_weights)
        eos = translator.manifest.special_tokens.eos
        for prepared, prefix in zip(self.prepared_texts, request.target_prefix or (), strict=False):
            if prefix is not None:
                begin_text(prepared, prefix, reader, eos)

    def _parsed(self, text: str, terms: Terms | None) -> ParsedText:
        if not self._direction.is_translation:  # a model may mean something with marks
            return ParsedText([Passage(text, text, notation=plain.NOTATION)], is_plain=True)
        return parse_text(text, self._request, terms, self._languages)

    async def _remember(self, recall: Recall, terms: Terms | None) -> list[ParsedText]:
        """Return the texts with their stored translations."""
        language, split_sentences = self._direction.source_subtag, self._request.split_sentences

        def lookup(text: str) -> Lookup:
            return Lookup(text, self._parsed(text, terms), language, split_sentences, self._is_last)

        lookups = await self._beside_each(self._request.text, lookup)
        found = await recall.find([text for lookup in lookups for text in lookup.texts])
        self._remembered = [lookup.remember(found) for lookup in lookups]
        return [remembered.parsed for remembered in self._remembered]

    def show_remembered(self, translations: list[Translation]) -> None:
        """Add to each answer which stored translations are in it, and which are similar."""
        answers = zip(translations, self._remembered, self.prepared_texts, strict=True)
        for translation, remembered, prepared in answers if self._remembered else ():
            remembered.show(translation, prepared)

    async def run(self, on_piece: OnPiece | None = None) -> None:
        """Translate all texts. `on_piece` receives each piece of a text as soon as it and all pieces before it are
        done. Raises RequestError: an engine failed or is not available."""
        if on_piece is None:
            await self._run(self.prepared_texts)
        else:
            await self._run_in_pieces(on_piece)

    async def compose(self) -> list[Translation]:
        """Return one translation for each text, in order. Raises DeadlinePassed."""
        tokenizer, direction, selection = self._translator.tokenizer, self._direction, self._selection
        alignment, checks = self._request.alignment, self._request.checks
        sureness = Sureness(self._translator.manifest.confidence) if self._request.confidence else None
        return await self._beside_each(
            self.prepared_texts,
            lambda text: compose_answer(text, tokenizer, direction, selection, alignment, checks, sureness),
        )

    async def translated_texts(self) -> list[ParsedText]:
        """Return the translations, parsed, for another leg. Raises DeadlinePassed."""
        translate = partial(translated_text, tokenizer=self._translator.tokenizer, direction=self._direction)
        return await self._beside_each(self.prepared_texts, translate)

    async def _beside_each(self, items: Iterable[Item], work: Callable[[Item], Result]) -> list[Result]:
        context = self._context
        with context.timing.tokenizing():
            return await run_on_each(items, work, self._n_characters, context.deadline - time.monotonic())

    async def _run(self, prepared_texts: list[PreparedText]) -> None:
        sentences = [sentence for prepared in prepared_texts for sentence in prepared.sentences]
        await self._translate([sentence for sentence in sentences if not sentence.sequence.output.finished])
        await self._verify(prepared_texts)
        await self._attend(self._attention_passes(prepared_texts))

    async def _translate(self, sentences: list[Sentence]) -> None:
        if self._request.target_prefix is None:
            await self._run_in(self._pool, [sentence.sequence for sentence in sentences])
        else:
            await self._search_on(sentences)
        lacking = [sentence for sentence in sentences if sentence.slots and not sentence.has_all_slots]
        if lacking:
            await self._rewind(lacking)

    async def _verify(self, prepared_texts: list[PreparedText]) -> None:
        """Translate passages again that lost a number, a name or all words, and choose the better translation, as
        long as there is another way to read them."""
        every = passages = [passage for text in prepared_texts for passage in text.passages if may_be_wrong(passage)]
        if not passages or not self._direction.is_translation:
            return
        for _ in range(MAX_READINGS):
            verification = Verification(self._reader, self._translator.manifest)
            await self._beside_each(passages, verification.check)
            if not verification.doubtful:
                break
            await self._attend(verification.attention_passes())
            read = await self._beside_each(verification.doubtful, verification.read_again)
            rereadings = [rereading for rereading in read if rereading is not None]
            if not rereadings:
                break
            sentences = [sentence for rereading in rereadings for sentence in rereading.again.sentences]
            await self._translate([sentence for sentence in sentences if not sentence.is_translated])
            await self._beside_each(rereadings, verification.choose)
            passages = [rereading.passage for rereading in rereadings]
        if self._request.alternatives:
            await self._beside_each(every, verification.drop_wrong_alternatives)

    async def _attend(self, passes: list[Sequence[AttentionPass]]) -> None:
        if passes:
            pool, context = self._translator.attention_pool, self._context
            context.timing.attended(await pool.run(passes, context.deadline, context.admission))

    async def _run_in(self, pool: Pool[Search], sequences: list[Sequence[Search]]) -> None:
        context = self._context
        context.timing.ran(await pool.run(sequences, context.deadline, context.admission))

    async def _run_in_pieces(self, on_piece: OnPiece) -> None:
        pieces = ((i, piece) for i, prepared in enumerate(self.prepared_texts) for piece in prepared.pieces())
        running: deque[tuple[int, PreparedText, asyncio.Task[None]]] = deque()
        last, before, n_pieces, tokenizer = 0, NOTHING_BEFORE, FIRST_PIECES, self._translator.tokenizer
        try:
            while True:
                for i, piece in islice(pieces, n_pieces - len(running)):
                    running.append((i, piece, asyncio.create_task(self._run([piece]))))
                if not running:
                    break
                i, piece, task = running[0]
                await task
                running.popleft()
                n_pieces = min(2 * n_pieces, MAX_PIECES)
                if i != last:
                    on_piece(last, "")
                    last, before = i, NOTHING_BEFORE
                rendering = partial(render, tokenizer=tokenizer, direction=self._direction, before=before)
                ((text, before),) = await self._beside_each([piece], rendering)
                if text:
                    on_piece(i, text)
        finally:
            for _, _, task in running:
                task.cancel()
        on_piece(last, "")

    async def _search_on(self, sentences: list[Sentence]) -> None:
        """Search for translations, some of which have beginnings. With alternatives, other tokens follow these."""
        n_more, tokenizer = self._request.alternatives, self._translator.tokenizer
        begun = [s for s in sentences if s.beginning is not None and not s.beginning.is_whole]
        walks = {id(s): Walk(s, tokenizer, s.sequence.output.beam_size) for s in begun}
        others = {id(s): Walk(s, tokenizer, n_more + 1, goes_beyond=True) for s in begun} if n_more else {}
        open_walks = [*walks.values(), *others.values()]
        while open_walks := [walk for walk in open_walks if walk.live]:
            probes = [probe for walk in open_walks for probe in walk.probe()]
            await self._run_in(self._translator.greedy, probes)
            for walk in open_walks:
                walk.advance()
        alternatives = {key: walk.searches() for key, walk in others.items()}
        for sentence in begun:
            continue_sentence(sentence, walks[id(sentence)])
        sequences = [sentence.sequence for sentence in sentences if not sentence.is_translated]
        await self._run_in(
            self._pool, [*sequences, *(sequence for found in alternatives.values() for _, sequence in found)]
        )
        for sentence in begun if n_more else ():
            sentence.continuations = continuations(sentence, alternatives[id(sentence)])[: n_more + 1]

    async def _rewind(self, lacking: list[Sentence]) -> None:
        """Search again for sentences that lack slots, as long as a search finds more of the slots."""
        while lacking:
            tried: list[tuple[Sentence, Sequence[Search]]] = []
            for sentence in lacking:
                search = rewind(sentence.hypothesis(), sentence.sequence.output)
                if search is not None:
                    again = Sequence(sentence.sequence.source_ids, search, n_rows=search.beam_size)
                    tried.append((sentence, again))
            await self._run_in(self._pool, [again for _, again in tried])
            lacking = []
            for sentence, again in tried:
                later = join_hypotheses(sentence.hypothesis(), again.output)
                if is_better(later, sentence.hypothesis(), again.output.once_tokens):
                    sentence.rewound = later
                    lacking += [sentence] if not sentence.has_all_slots else []

    def _attention_passes(self, prepared_texts: list[PreparedText]) -> list[Sequence[AttentionPass]]:
        manifest, selection = self._translator.manifest, self._selection
        chosen = selection.chosen if selection is not None else None
        n_weights, passes = 0, []
        for passage in (passage for prepared in prepared_texts for passage in prepared.passages):
            is_aligned = self._request.alignment or passage.needs_alignment
            choice = manifest.alignment if is_aligned else None
            for sentence in passage.sentences if selection or choice else []:
                source_ids, target_ids = sentence.sequence.source_ids, sentence.hypothesis().token_ids
                n_weights += selection.n_weights(len(source_ids), len(target_ids)) if selection else 0
                wanted = AttentionPass([manifest.special_tokens.bos, *target_ids[:-1]], chosen, choice)
                sentence.attention_pass = Sequence(source_ids, wanted, n_target=len(target_ids))
                passes.append(sentence.attention_pass)
        if selection is not None:
            refuse_too_many_weights(self._translator.max_numbers, n_weights)
        return passes


def _new_search(request: TranslateRequest, direction: Direction, manifest: Manifest) -> NewSearch:
    """Return a function that makes the search of a sentence. Raises InvalidFields: max_target_tokens or alternatives is
    outside the limits. UnsupportedOption: the format does not support an option."""
    if not direction.is_translation:
        only_for_translations = ("keep", "glossary", "glossary_id", "memory_id", "checks")
        refused = [name for name in only_for_translations if getattr(request, name)]
        if refused or request.format != "text":
            named = " and ".join(f"`{name}`" for name in refused or ["format"])
            message = f"{named} can only be used for translations, not for what {manifest.name} writes here"
            raise UnsupportedOption(message)
    if request.format != "text" and (request.attention or request.alignment or request.alternatives):
        raise UnsupportedOption(f"`attention`, `alignment` and `alternatives` need `format` text, not {request.format}")
    if request.target_prefix is not None and (request.format != "text" or request.memory_id is not None):
        other = f"`format` text, not {request.format}" if request.format != "text" else "no `memory_id`"
        raise UnsupportedOption(f"`target_prefix` needs {other}")
    if request.tags is not None and request.format not in ("html", "xml"):
        raise UnsupportedOption(f"`tags` needs `format` html or xml, not {request.format}")
    decoding = manifest.decoding
    assert decoding is not None, "a translator's manifest tells how it decodes"
    limit = manifest.limits.max_target_tokens
    max_target_tokens = request.max_target_tokens or limit
    if max_target_tokens > limit:
        message = f"must be at most {limit} for {manifest.name}, not {max_target_tokens}"
        raise InvalidFields([(("max_target_tokens",), message)])
    n_first = len(direction.target_prefix)
    if max_target_tokens <= n_first:
        message = f"must be at least {n_first + 1} for this model ({n_first} of them name the language)"
        raise InvalidFields([(("max_target_tokens",), message)])
    beam_size = request.beam_size or decoding.beam_size
    if request.alternatives >= beam_size and None in (request.target_prefix or (None,)):
        raise InvalidFields([(("alternatives",), f"must be less than `beam_size` ({beam_size})")])
    penalty = decoding.length_penalty if request.length_penalty is None else request.length_penalty
    threshold = decoding.beam_threshold if request.beam_threshold is None else request.beam_threshold
    n_best, stop, prefix = 1 + request.alternatives, decoding.stop, direction.target_prefix
    scored = request.confidence
    return partial(Search, max_target_tokens, beam_size, penalty, n_best, threshold, stop, prefix, scored=scored)
