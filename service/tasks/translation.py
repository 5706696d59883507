"""Translation: the sentences of texts go through the engine; composition.py makes texts of them again."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from service.artifact import Manifest
from service.engine.beam_search import Search
from service.engine.pool import Pool
from service.engine.scheduler import Sequence
from service.errors import NotAcceptable
from service.formats import document, markdown
from service.formats.plain import marked
from service.schemas.answers import Translation
from service.schemas.requests import KeepPattern, TranslateRequest
from service.schemas.timing import Timing
from service.tasks.attention import Seen, Selection, refuse_beyond, refuse_beyond_shown
from service.tasks.composition import Manuscript, Paragraph, Sentence, composed
from service.tasks.rewinding import is_better, joined, rewound
from service.text.kept_spans import apostrophes, kept_spans
from service.text.languages import Direction, Languages
from service.text.placeholders import Protected, protect
from service.text.sentences import sentence_spans, stripped
from service.text.slots import MOST_SLOTS, Slot, SlotsOfText
from service.text.spans import Span, overlapping
from service.text.terms import Terms
from service.text.tokenization import Tokenizer, beside_each

NewSearch = Callable[[], Search]
MOST_INLINE = 500
"""Most tags, placeholders and symbols of one passage of a document: each is compared with the words around it."""


@dataclass(frozen=True, eq=False)
class Translator:
    """One translation model, as requests see it.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
        max_shown_tokens: most source tokens that one answer aligns.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    greedy: Pool[Search]
    beam: Pool[Search]
    attention_pool: Pool[Seen]
    max_attention_weights: int
    max_shown_tokens: int
    slots: tuple[Slot, ...] = ()

    @cached_property
    def languages(self) -> Languages:
        return Languages(self.manifest.sources, self.manifest.targets)

    async def translate(
        self, request: TranslateRequest, direction: Direction, timeout_s: float, timing: Timing
    ) -> list[Translation]:
        """One translation per text, in order.

        Raises:
            NotAcceptable: max_target_tokens is above the model's limit, there are more alternatives than the beam
                holds, or the attention asked for does not exist or is too much.
            RequestError: what the engines raise.
        """
        new_search = self._new_search(request, direction)
        pool = self.greedy if new_search().beam_size == 1 else self.beam
        deadline = pool.clock() + timeout_s
        selection = Selection.of(request.attention, self.manifest) if request.attention else None
        patterns = [one.pattern for one in request.keep if isinstance(one, KeepPattern)]
        terms = Terms([one for one in request.keep if isinstance(one, str)], patterns, request.glossary)
        n_characters = sum(map(len, request.text))
        n_sentences = 0

        def manuscript(text: str) -> Manuscript:
            nonlocal n_sentences
            written = self._manuscript(text, request, new_search, direction, terms)
            n_sentences += len(written.sentences)
            pool.refuse_beyond_limit(n_sentences)  # before the other texts are read
            return written

        with timing.tokenizing():
            manuscripts = await beside_each(request.text, manuscript, n_characters, timeout_s)
        sequences = [sentence.sequence for manuscript in manuscripts for sentence in manuscript.sentences]
        lengths = [len(sequence.source_ids) for sequence in sequences]
        if request.alignment:
            refuse_beyond_shown(self.max_shown_tokens, sum(lengths), "alignment")
        if selection is not None:  # the least that it can be: translations have a token or more
            refuse_beyond(self.max_attention_weights, sum(selection.n_weights(length, 1) for length in lengths))
        timing.ran(await pool.run(sequences, deadline))
        await self._rewind(manuscripts, pool, deadline, timing)
        if selection is not None or request.alignment or any(one.needs_alignment for one in manuscripts):
            passes = self._attention_passes(manuscripts, selection, request.alignment)
            timing.attended(await self.attention_pool.run(passes, deadline))
        compose = partial(
            composed,
            tokenizer=self.tokenizer,
            direction=direction,
            selection=selection,
            alignment=request.alignment,
        )
        with timing.tokenizing():
            return await beside_each(manuscripts, compose, n_characters, deadline - pool.clock())

    def _new_search(self, request: TranslateRequest, direction: Direction) -> NewSearch:
        """How every sentence of a request is searched."""
        if request.format != "text" and (request.attention or request.alignment or request.alternatives):
            raise NotAcceptable(
                f"attention, alignment and alternatives are of plain text, the format is {request.format}"
            )
        decoding = self.manifest.decoding
        assert decoding is not None, "a translator's manifest has one"
        limit = self.manifest.limits.max_target_tokens
        max_target_tokens = request.max_target_tokens or limit
        if max_target_tokens > limit:
            raise NotAcceptable(
                f"max_target_tokens is {max_target_tokens}, {self.manifest.name} writes at most {limit}"
            )
        n_first = len(direction.target_prefix)
        if max_target_tokens <= n_first:
            raise NotAcceptable(f"max_target_tokens is {max_target_tokens}, and {n_first} name the target's language")
        beam_size = request.beam_size or decoding.beam_size
        if request.alternatives >= beam_size:
            raise NotAcceptable(f"alternatives is {request.alternatives}, a beam of {beam_size} has {beam_size - 1}")
        length_penalty = decoding.length_penalty if request.length_penalty is None else request.length_penalty
        beam_threshold = decoding.beam_threshold if request.beam_threshold is None else request.beam_threshold
        return partial(
            Search,
            max_target_tokens,
            beam_size,
            length_penalty,
            1 + request.alternatives,
            beam_threshold,
            decoding.stop,
            direction.target_prefix,
        )

    def _manuscript(
        self, text: str, request: TranslateRequest, new_search: NewSearch, direction: Direction, terms: Terms
    ) -> Manuscript:
        if request.format == "text":
            with_marks = marked(text, [term.span for term in terms.found(text)])
            bare = with_marks.passage.text if with_marks else text
            return Manuscript([self._paragraph(bare, [], request, new_search, direction, terms)], marked=with_marks)
        read = markdown.parse(text) if request.format == "markdown" else document.parse(text)
        paragraphs = []
        for passage in read.passages:
            paragraphs.append(self._paragraph(passage.text, passage.keep, request, new_search, direction, terms))
            inline = len(passage.elements) + len(paragraphs[-1].protected.placeholders)
            if inline > MOST_INLINE:
                raise NotAcceptable(
                    f"a passage of the text has {inline} inline tags, placeholders and symbols, "
                    f"the limit is {MOST_INLINE}"
                )
        return Manuscript(paragraphs, read)

    def _paragraph(
        self,
        text: str,
        keep: list[Span],
        request: TranslateRequest,
        new_search: NewSearch,
        direction: Direction,
        terms: Terms,
    ) -> Paragraph:
        """With other slots as often as the model would read some otherwise than as their tokens."""
        kept = kept_spans(text, keep, direction.source_subtag, self.tokenizer.writes, terms.found(text))
        slots = SlotsOfText(self.slots, text)
        while True:
            protected = protect(text, kept, apostrophes(text), slots.word)
            paragraph = self._read(protected, request, new_search, direction)
            if not kept or not self._misread(paragraph, slots):
                return paragraph

    def _misread(self, paragraph: Paragraph, slots: SlotsOfText) -> bool:
        """Give the sentences their slots; whether some placeholders need others, or none."""
        placeholders = paragraph.protected.placeholders
        places = [one.place for one in placeholders]
        misread: dict[int, bool] = {}
        too_many: list[int] = []
        starts = [*(sentence.span.start for sentence in paragraph.sentences), len(paragraph.protected.text)]
        for sentence, next_start in zip(paragraph.sentences, starts[1:], strict=True):
            inside = [number for number in range(*overlapping(places, sentence.span)) if placeholders[number].stand_in]
            source_ids = sentence.sequence.source_ids
            text = sentence.span.of(paragraph.protected.text)
            tokens = self.tokenizer.read(text, sentence.prefix) if inside else []
            for number in inside[:MOST_SLOTS]:
                slot = slots.of(number)
                assert slot is not None, "it has a stand-in"
                at = source_ids.index(slot.source_id) if source_ids.count(slot.source_id) == 1 else None
                if at is not None and tokens[at].moved(sentence.span.start).span == placeholders[number].place:
                    sentence.slots.append((number, slot))
                else:
                    misread[number] = slot.word.isdigit()
            if len(inside) > MOST_SLOTS:  # what is behind them would only come to stand in their place
                too_many += range(inside[MOST_SLOTS], bisect_left(places, next_start, key=lambda place: place.start))
            sentence.sequence.output.once = tuple(slot.target_id for _, slot in sentence.slots)
        slots.try_others(misread)
        slots.give_up(too_many)
        return bool(misread or too_many)

    def _read(
        self, protected: Protected, request: TranslateRequest, new_search: NewSearch, direction: Direction
    ) -> Paragraph:
        text, limit = protected.text, self.manifest.limits.max_source_tokens
        if request.split_sentences:
            spans = sentence_spans(text, direction.source_subtag)
        else:
            pieces = (stripped(text, piece) for piece in protected.between_breaks())
            spans = [piece for piece in pieces if piece is not None]
        spans = [span for span in spans if protected.has_words(span)]  # the rest is the same in every language
        sentences = []
        prefix = direction.source_prefix
        for span, source_ids in self.tokenizer.encode_spans(text, spans, limit, prefix):
            search = new_search()
            sentences.append(Sentence(span, Sequence(source_ids, search, slots=search.beam_size), prefix))
        return Paragraph(protected, sentences)

    async def _rewind(self, manuscripts: list[Manuscript], pool: Pool[Search], deadline: float, timing: Timing) -> None:
        """Search again for sentences in which slots are missing, as long as that finds more of them.

        Raises:
            RequestError: what the engine raises.
        """
        lacking = [s for manuscript in manuscripts for s in manuscript.sentences if s.slots and not s.has_all_slots]
        while lacking:
            tried: list[tuple[Sentence, Sequence[Search]]] = []
            for sentence in lacking:
                search = rewound(sentence.hypothesis(), sentence.sequence.output)
                if search is not None:
                    again = Sequence(sentence.sequence.source_ids, search, slots=search.beam_size)
                    tried.append((sentence, again))
            timing.ran(await pool.run([again for _, again in tried], deadline, accepted=True))
            lacking = []
            for sentence, again in tried:
                later = joined(sentence.hypothesis(), again.output)
                if is_better(later, sentence.hypothesis(), again.output.once):
                    sentence.rewound = later
                    lacking += [sentence] if not sentence.has_all_slots else []

    def _attention_passes(
        self, manuscripts: list[Manuscript], selection: Selection | None, alignment: bool
    ) -> list[Sequence[Seen]]:
        """One for the best translation of each sentence that needs one, which reads what the decoder read."""
        bos = self.manifest.special_tokens.bos
        n_weights, passes = 0, []
        for manuscript in manuscripts:
            choice = self.manifest.alignment if alignment or manuscript.needs_alignment else None
            for sentence in manuscript.sentences if selection or choice else []:
                source_ids, target_ids = sentence.sequence.source_ids, sentence.hypothesis().token_ids
                n_weights += selection.n_weights(len(source_ids), len(target_ids)) if selection else 0
                seen = Seen([bos, *target_ids[:-1]], selection, choice)
                sentence.seen = Sequence(source_ids, seen, n_target=len(target_ids))
                passes.append(sentence.seen)
        refuse_beyond(self.max_attention_weights, n_weights)
        return passes
