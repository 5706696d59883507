"""Read texts for a model: kept spans are replaced, and sentences are cut and tokenized."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from service.base.errors import LimitExceeded
from service.engine.scheduler import Sequence
from service.engine.search import Hypothesis, Search
from service.glossaries.terms import Terms
from service.kept.carried_spans import unwritable_amounts
from service.kept.icu_messages import has_icu_messages
from service.kept.kept_spans import KeptSpan, kept_spans, read_as_other
from service.kept.placeholders import Protected, protect
from service.kept.slots import MAX_SLOTS, Slot, SlotsOfText
from service.kept.unwritable import hidden
from service.markup import html, markdown, plain, xml
from service.markup.passages import ParsedText, Passage
from service.numbers.reworded import HINT as REWORDED
from service.numbers.reworded import reworded
from service.numbers.verified_spans import is_amount
from service.passes.attention import AttentionPass
from service.schemas.answers import Check
from service.schemas.requests import NO_RULES, Format, TagRules, TranslateRequest
from service.text.capitals import HINT as CAPITALS
from service.text.capitals import small_words
from service.text.labels import MAX_LABEL, is_label
from service.text.language_marks import MarkedLanguages
from service.text.languages import Direction
from service.text.sentences import ends_of, is_speaker, sentence_spans, strip_span
from service.text.spans import NO_EDITS, Replacement, Span, merge_spans, overlapping, replace_spans
from service.text.tokenization import Tokenizer
from service.text.touching_signs import TOUCHING, apart

NewSearch = Callable[[], Search]
MIN_NAME_SCORE = -0.45
"""The least mean log-probability of the tokens of a speaker's name."""
MAX_INLINE = 500
"""Maximum number of tags, placeholders and symbols in a passage of a request. Each is compared with words around it."""


def parse_text(text: str, request: TranslateRequest, terms: Terms | None, languages: MarkedLanguages) -> ParsedText:
    """Read a text of the request in its format. Marks of the source's language in HTML become marks of the target's.
    Raises LimitExceeded: patterns of the terms match too often."""
    if request.format != "text":
        return parse_markup(text, request.format, request.tags, languages)
    if not plain.HINT.search(text):
        return ParsedText([Passage(text, text, notation=plain.NOTATION)], is_plain=True)
    return plain.parse(text, (term.span for term in terms.find(text)) if terms else ())


def parse_markup(
    text: str, form: Format, rules: TagRules | None = None, languages: MarkedLanguages | None = None
) -> ParsedText:
    """Read a text in a format with tags or marks."""
    if form == "xml":
        return xml.parse(text, rules or NO_RULES)
    return markdown.parse(text) if form == "markdown" else html.parse(text, rules or NO_RULES, languages)


@dataclass(frozen=True)
class Beginning:
    """The beginning of the translation of a sentence.

    Attributes:
        text: the beginning as the client has written it.
        is_whole: whether it is the whole translation.
        token_ids: tokens of its whole words.
        usual: the tokens that the tokenizer makes of the rest.
        rest: what follows the whole words, in UTF-8.
        pieces: what the tokens of slots stand for, in UTF-8.
        places: the places of kept spans that are no slots in it, by the number of the placeholder.
    """

    text: str
    is_whole: bool
    token_ids: list[int]
    usual: list[int]
    rest: bytes
    pieces: Mapping[int, bytes]
    places: Mapping[int, Span]


class Continuation(NamedTuple):
    """A translation with a given beginning, and the log-probability of the first token behind it; None: not known."""

    hypothesis: Hypothesis
    log_prob: float | None


@dataclass
class Sentence:
    """A sentence of a passage, or a part of a sentence that is too long for the model."""

    span: Span
    """The span in the protected text of the passage."""
    sequence: Sequence[Search]
    slots: list[tuple[int, Slot]] = field(default_factory=list)
    """The slots in the sentence, each with the number of its placeholder in the passage."""
    rewound: Hypothesis | None = None
    """The hypothesis that replaces the best hypothesis if that lacks some of the slots."""
    attention_pass: Sequence[AttentionPass] | None = None
    is_speaker: bool = False
    """Whether the sentence is the name of a speaker before a colon."""
    is_capitals: bool = False
    """Whether the sentence is read in small letters, and its translation is written in capitals."""
    is_small: bool = False
    """Whether the sentence is read in small letters, and its translation begins with a capital."""
    beginning: Beginning | None = None
    continuations: list[Continuation] = field(default_factory=list)
    """The translation and its alternatives, which differ in the first token behind the beginning."""

    def hypothesis(self, rank: int = 0) -> Hypothesis:
        """Return the hypothesis with this rank, or the last one; 0 is the best."""
        if rank == 0 and self.rewound is not None:
            return self.rewound
        hypotheses = self.hypotheses
        return hypotheses[min(rank, len(hypotheses) - 1)]

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """The hypotheses that were found, best first."""
        return [item.hypothesis for item in self.continuations] or self.sequence.output.best()

    def is_sure(self, rank: int = 0) -> bool:
        """Return whether the model is sure of a hypothesis, as it is of names that it knows."""
        return self.score(rank) >= MIN_NAME_SCORE

    def score(self, rank: int = 0) -> float:
        """Return the mean log-probability of the tokens of a hypothesis."""
        hypothesis = self.hypothesis(rank)
        return hypothesis.log_prob / max(1, len(hypothesis.token_ids))

    @property
    def is_translated(self) -> bool:
        return bool(self.sequence.output.finished)

    @property
    def has_all_slots(self) -> bool:
        token_ids = self.hypothesis().token_ids
        return all(slot.target_id in token_ids for _, slot in self.slots)


@dataclass
class PreparedPassage:
    """A passage, and its sentences."""

    parsed: Passage
    protected: Protected
    sentences: list[Sentence]
    named: list[Span] = field(default_factory=list)
    """Spans of the passage that the request or the format keeps."""
    carried: SequenceOf[KeptSpan] = ()
    """Spans of the passage that are kept because an earlier translation lost some of them."""
    tried: SequenceOf[KeptSpan] = ()
    """The carried spans of the last reading, whether or not its translation was chosen."""
    is_tried_small: bool = False
    """Whether its few words were read in small letters, whether or not that translation was chosen."""
    checks: list[Check] = field(default_factory=list)
    """What earlier translations lost or invented."""
    beginning: str | None = None
    """The characters with which the translation begins, if the client has said so."""

    @property
    def needs_alignment(self) -> bool:
        """Return whether the passage has tags, or a placeholder without a slot in the translation of its sentence."""
        placeholders = self.protected.placeholders
        if self.parsed.elements or not placeholders:
            return bool(self.parsed.elements)
        with_slots = {number for sentence in self.sentences for number, _ in sentence.slots}
        spans = [sentence.span for sentence in self.sentences]
        return not all(sentence.has_all_slots for sentence in self.sentences) or any(
            number not in with_slots and (not kept.stand_in or len(set(overlapping(spans, kept.place))) == 2)
            for number, kept in enumerate(placeholders)
        )

    def pieces(self) -> Iterator["PreparedPassage"]:
        """Cut a passage of plain text into pieces that are translated and sent one after the other."""
        protected, sentences = self.protected, self.sentences
        start = first = original_start = 0
        for n in (*self._last_of_pieces(), len(sentences) - 1):
            end = sentences[n].span.end if n + 1 < len(sentences) else len(protected.text)
            part, n_before = protected.part(start, end)
            original_end = original_start + len(part.original)
            for sentence in sentences[first : n + 1]:
                sentence.span = sentence.span.moved(-start)
                sentence.slots = [(number - n_before, slot) for number, slot in sentence.slots]
            bounds = original_start, original_end
            first_named, after_named = (bisect_left(self.named, bound, key=lambda span: span.start) for bound in bounds)
            named = [span.moved(-original_start) for span in self.named[first_named:after_named]]
            parsed = self.parsed.part(original_start, part.original)
            yield PreparedPassage(parsed, part, sentences[first : n + 1], named)
            start, first, original_start = end, n + 1, original_end

    def _last_of_pieces(self) -> list[int]:
        """Return the numbers of the sentences that end a piece: no kept span, mark or message continues after them."""
        protected = self.protected
        if has_icu_messages(protected.original):
            return []
        shortcuts = {kept.place.start for kept in protected.placeholders if kept.role == "shortcut"}
        outermost = [element.span for element in self.parsed.elements if element.parent is None]
        numbers = []
        for n, sentence in enumerate(self.sentences[:-1]):
            end = sentence.span.end
            position = protected.original_position(end)
            first, last = overlapping(protected.places, Span(end, end))
            ends_line = protected.original[position : position + 1] in ("\n", "\r")  # separates texts that touch it
            element = bisect_left(outermost, position + ends_line, key=lambda span: span.end)
            touches = element < len(outermost) and outermost[element].start <= position
            if first == last and end not in shortcuts and not touches:
                numbers.append(n)
        return numbers


@dataclass(frozen=True)
class PreparedText:
    """One text of a request, with a passage for each of its passages."""

    parsed: ParsedText
    passages: list[PreparedPassage]

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for passage in self.passages for sentence in passage.sentences]

    def pieces(self) -> Iterator["PreparedText"]:
        """Yield the text in pieces, in order, of one passage each and the attributes in its tags."""
        parts, passages = list[str | Passage](), list[PreparedPassage]()
        remaining = iter(self.passages)
        for part in self.parsed.parts:
            parts.append(part)
            if isinstance(part, Passage):
                passages.append(next(remaining))
                if not part.anchor:
                    yield PreparedText(replace(self.parsed, parts=parts), passages)
                    parts, passages = [], []
        if parts:
            yield PreparedText(replace(self.parsed, parts=parts), passages)


@dataclass(frozen=True)
class Reader:
    """Makes prepared texts of the texts of one request, for one model.

    Args:
        limit: the maximum number of tokens in a sentence.
        new_search: makes the search of each sentence.
        terms: the terms that the request keeps or translates in its own way, if any.
        max_inline: the maximum number of tags, placeholders and symbols in a passage with markup; None: no limit.
    """

    tokenizer: Tokenizer
    slots: tuple[Slot, ...]
    limit: int
    direction: Direction
    new_search: NewSearch
    split_sentences: bool
    terms: Terms | None = None
    max_inline: int | None = MAX_INLINE

    def prepare(self, text: ParsedText) -> PreparedText:
        """Read a text. Raises LimitExceeded: a passage has too many kept spans, or a character too many tokens."""
        passages = []
        for parsed in text.passages:
            passages.append(self.prepare_passage(parsed))
            inline = len(parsed.elements) + len(passages[-1].protected.placeholders)
            if self.max_inline is not None and inline > self.max_inline and not text.is_plain:
                counted = f"{inline} inline tags, placeholders and symbols"
                raise LimitExceeded(f"A passage of the text has {counted}; the limit is {self.max_inline}")
        if text.is_plain and len(passages[0].sentences) > 1:
            passages = [*passages[0].pieces()]
            text = replace(text, parts=[passage.parsed for passage in passages])
        return PreparedText(text, passages)

    def prepare_passage(
        self, parsed: Passage, carried: SequenceOf[KeptSpan] = (), capitals: SequenceOf[Span] = ()
    ) -> PreparedPassage:
        """Read a passage, with further spans that are `carried`, or the letters in `capitals` as small ones. Repeat
        with other slots while slots are misread."""
        text = parsed.text
        if not self.direction.is_translation:
            protected = Protected(text, text, (), NO_EDITS)
            return PreparedPassage(parsed, protected, self._sentences(protected, parsed))
        terms = [KeptSpan(span, "break", target) for span, target in parsed.recalled]
        terms += self.terms.find(text) if self.terms else []
        languages, can_write = (self.direction.source_subtag, self.direction.target_subtag), self.tokenizer.can_write
        amounts = [] if text.isascii() else unwritable_amounts(text, can_write, *languages)
        kept = kept_spans(text, parsed.keep, languages[0], can_write, [*terms, *carried, *amounts])
        spans = [item.span for item in kept]
        letters = [letter for letter in capitals if len({*overlapping(spans, letter)}) == 1]
        words = [*small_words(text, spans, self.tokenizer.n_tokens)] if CAPITALS.search(text) else []
        small = [(letter, letter.of(text).lower()) for letter in letters]
        read_as = [*read_as_other(text), *hidden(text, self.tokenizer.has), *words, *small]
        if REWORDED.search(text):
            read_as = _with_first(self._reworded(parsed), read_as)
        if TOUCHING.search(text):
            starts = {item.span.start for item in kept}
            signs = [sign for sign in apart(text) if sign[0].end not in starts]  # a stand-in has blanks of its own
            read_as = _with_first(signs, read_as)
        if not kept and not read_as:
            protected = Protected(text, text, (), NO_EDITS)
            return PreparedPassage(parsed, protected, self._sentences(protected, parsed))
        named = sorted([*parsed.keep, *(term.span for term in terms)], key=lambda span: span.pair)
        # Digits of carried spans are not read, so they may be slots.
        slots = SlotsOfText(self.slots, replace_spans(text, [(item.span, "") for item in carried])[0])
        ends = ends_of(text, self.direction.source_subtag) if kept else set[int]()
        while True:
            protected = protect(text, kept, read_as, slots.word)
            passage = PreparedPassage(parsed, protected, self._sentences(protected, parsed, ends), named, carried)
            passage.is_tried_small = bool(capitals)
            in_capitals = [word for word, _ in words]
            for sentence in passage.sentences if words or small else ():
                whole = protected.edits.before(sentence.span)
                sentence.is_small = len({*overlapping(letters, whole)}) == 2
                sentence.is_capitals = len({*overlapping(in_capitals, whole)}) == 2
            if not kept or not self._misread(passage, slots):
                return passage

    def _reworded(self, parsed: Passage) -> list[Replacement]:
        """Return numbers in forms that models know, but none with a tag inside."""
        tags = {place for element in parsed.elements for place in element.span.pair}
        found = reworded(parsed.text, (self.direction.source_subtag, self.direction.target_subtag))
        return [item for item in found if tags.isdisjoint(range(item[0].start + 1, item[0].end))]

    def _misread(self, passage: PreparedPassage, slots: SlotsOfText) -> bool:
        """Give the sentences their slots. Return whether some placeholders need other slots, or none."""
        placeholders, places = passage.protected.placeholders, passage.protected.places
        misread: dict[int, bool] = {}
        too_many: list[int] = []
        starts = [*(sentence.span.start for sentence in passage.sentences), len(passage.protected.text)]
        for sentence, next_start in zip(passage.sentences, starts[1:], strict=True):
            inside = [n for n in range(*overlapping(places, sentence.span)) if placeholders[n].has_slot]
            source_ids = sentence.sequence.source_ids
            text = sentence.span.of(passage.protected.text)
            tokens = self.tokenizer.source_tokens(text, self.direction.source_prefix) if inside else []
            for number in inside[:MAX_SLOTS]:
                slot = slots.of(number)
                assert slot is not None, "it has a stand-in"
                at = source_ids.index(slot.source_id) if source_ids.count(slot.source_id) == 1 else None
                if at is not None and tokens[at].moved(sentence.span.start).span == placeholders[number].place:
                    sentence.slots.append((number, slot))
                else:
                    misread[number] = slot.word.isdigit()
            if len(inside) > MAX_SLOTS:  # later slots would only take the places of earlier slots
                too_many += range(inside[MAX_SLOTS], bisect_left(places, next_start, key=lambda place: place.start))
            sentence.sequence.output.once_tokens = tuple(slot.target_id for _, slot in sentence.slots)
        slots.try_others(misread)
        slots.give_up(too_many)
        return bool(misread or too_many)

    def _sentences(self, protected: Protected, parsed: Passage, ends: Collection[int] = ()) -> list[Sentence]:
        text, is_translation = protected.text, self.direction.is_translation
        if is_translation:
            spans = self._spans(protected, parsed, ends)
        else:
            whole = strip_span(text, Span(0, len(text)))
            spans = [] if whole is None else [whole]
        sentences = []
        for span, source_ids in self.tokenizer.encode_spans(text, spans, self.limit, self.direction.source_prefix):
            search = self.new_search()
            sequence = Sequence(source_ids, search, n_rows=search.beam_size)
            sentences.append(Sentence(span, sequence, is_speaker=is_translation and is_speaker(text, span)))
        return sentences

    def _spans(self, protected: Protected, parsed: Passage, ends: Collection[int]) -> list[Span]:
        text = protected.text
        if parsed.sentences is not None:
            spans = merge_spans(map(protected.edits.after, parsed.sentences))
        elif self.split_sentences:
            spans = sentence_spans(text, self.direction.source_subtag)
            spans = [*protected.cut_after_placeholders(spans, ends)] if ends else spans
        else:
            spans = [*protected.between_breaks()]
        spans = [span for span in (strip_span(text, span) for span in spans) if span is not None]
        language = self.direction.source_subtag
        spans = [span for span in spans if span.end - span.start > MAX_LABEL or not is_label(span.of(text), language)]
        # A span without letters is the same in every language; amounts with codes are written alike in one column.
        if protected.placeholders:
            return [span for span in spans if protected.has_words(span)]
        return [span for span in spans if any(map(str.isalpha, span.of(text))) and not is_amount(span.of(text))]


def _with_first(first: SequenceOf[Replacement], others: SequenceOf[Replacement]) -> list[Replacement]:
    """Return replacements, the first of which are in order, and others that overlap none of them."""
    spans = [span for span, _ in first]
    return [*first, *(item for item in others if len({*overlapping(spans, item[0])}) == 1)]
