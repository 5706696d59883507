"""Check that translations have the numbers and names of their sources. Read again the passages that lost some.

The second reading carries these spans by slots, as it does kept spans. A small number may be a word of the translation.
Alignment tells whether a word was made of it.
"""

from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace

from manifest.schema import Manifest
from service.engine.scheduler import Sequence
from service.kept.carried_spans import carried_spans
from service.kept.kept_spans import KeptSpan
from service.kept.placeholders import Placeholder
from service.kept.restoration import end_of_digits, end_of_ending
from service.numbers.comparison import NOTHING, Comparison, compare
from service.numbers.number_words import is_wordless
from service.numbers.verified_spans import HINT, VerifiedSpan, with_hyphens
from service.passes.attention import AttentionPass
from service.schemas.answers import Check, CheckKind
from service.tasks.translation.alignment import after_prefix
from service.tasks.translation.beginning import begin_again, write_known
from service.tasks.translation.reading import PreparedPassage, Reader, Sentence
from service.text.capitals import FEW_WORDS, LONE_WORD, has_capital, with_capital, words_of_label
from service.text.scripts import is_unspaced, without_hidden
from service.text.sentences import UNSPACED
from service.text.spans import Edits, Span, overlapping, replace_spans

MAX_TOKENS = 8
"""A translation with more tokens beside its slots has words."""
UNSURE, SURE_ENOUGH = -0.3, -0.5
"""Few words with a capital are read in small letters too if the mean log-probability of the tokens of their translation
is below UNSURE, or a word comes back as it is: models take "Mouse" for a name, and know "mouse". That translation is
chosen if the mean is higher, and at least SURE_ENOUGH; at least UNSURE, where small letters save no token."""
MAX_WORDS = 3
"""Maximum number of words that are translated without the spans before and after them."""


@dataclass
class Checked:
    """A sentence whose translation lost something, or may have.

    Attributes:
        attention_pass: tells whether the translation has words for the small numbers that it lacks.
        dropped: small numbers without such words.
        is_wordless: whether the translation lacks every word of the source.
        is_copied: whether the translation is the only word of the source, which need not be a name.
        is_unsure: whether the model may know few words with capitals better in small letters.
    """

    sentence: Sentence
    compared: Comparison
    is_wordless: bool = False
    is_copied: bool = False
    is_unsure: bool = False
    attention_pass: Sequence[AttentionPass] | None = None
    dropped: list[VerifiedSpan] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return self.compared.is_right and not (self.dropped or self.is_wordless or self.is_copied)


@dataclass
class Rereading:
    """A passage whose translation lost or invented something, and its next reading."""

    passage: PreparedPassage
    wrong: list[Checked]
    again: PreparedPassage


def may_be_wrong(passage: PreparedPassage) -> bool:
    """Return whether a passage has a number or a name that its translation must have, or a span beside which models
    lose words, as they do beside placeholders; or has few words, which models may take for names."""
    text = passage.protected.original
    return bool(passage.protected.placeholders or HINT.search(text) or FEW_WORDS.fullmatch(text))


class Verification:
    """A check of a request's translations. Passages that lost or invented something, or may have, are in `doubtful`,
    with the sentences in question."""

    def __init__(self, reader: Reader, manifest: Manifest) -> None:
        self._reader, self._manifest = reader, manifest
        self._languages = reader.direction.source_subtag, reader.direction.target_subtag
        self.doubtful: list[tuple[PreparedPassage, list[Checked]]] = []

    def check(self, passage: PreparedPassage) -> None:
        """Compare a finished translation with its source."""
        checked = []
        for sentence in passage.sentences:
            if sentence.beginning is not None and passage.beginning is None:  # a stored translation
                continue
            compared, is_copied = self._compare(passage, sentence), self._is_copied(passage, sentence)
            item = Checked(sentence, compared, self._is_wordless(passage, sentence), is_copied)
            item.is_unsure = item.is_right and not passage.is_tried_small and self._is_unsure(passage, sentence)
            if not item.is_right or item.is_unsure or compared.as_words:
                checked.append(item)
        if checked:
            self.doubtful.append((passage, checked))

    def attention_passes(self) -> list[Sequence[AttentionPass]]:
        """Return the passes that tell whether small numbers are words; none if the model has no alignment."""
        manifest, passes = self._manifest, []
        for item in (item for _, checked in self.doubtful for item in checked if item.is_right):
            if manifest.alignment is not None:
                target_ids = item.sentence.hypothesis().token_ids
                wanted = AttentionPass([manifest.special_tokens.bos, *target_ids[:-1]], None, manifest.alignment)
                item.attention_pass = Sequence(item.sentence.sequence.source_ids, wanted, n_target=len(target_ids))
                passes.append(item.attention_pass)
        return passes

    def read_again(self, doubtful: tuple[PreparedPassage, list[Checked]]) -> Rereading | None:
        """Read a passage again; None if its translation is right, or nothing more can be carried."""
        passage, checked = doubtful
        for item in checked:
            item.dropped = [number for number in item.compared.as_words if not self._is_word(passage, item, number)]
        wrong = [item for item in checked if not item.is_right]
        carried = [kept for item in wrong for kept in self._next_carried(passage, item)]
        labels = [item.sentence for item in checked if item.is_copied or (item.is_unsure and item.is_right)]
        places = [place for label in labels for place in self._capitals(passage, label)]
        before = passage.protected.edits.before
        capitals = [] if passage.is_tried_small else [before(Span(place, place + 1)) for place in places]
        if not carried and not capitals:
            return None
        again = self._read_again(passage, carried, capitals)
        if passage.beginning is not None and len(again.sentences) != len(passage.sentences):
            return None
        return Rereading(passage, wrong, again)

    def choose(self, rereading: Rereading) -> bool:
        """Give a passage the better of its translations, and record losses of the first. Return whether it changed."""
        passage, again, wrong = rereading.passage, rereading.again, rereading.wrong
        second = [self._compare(again, sentence) for sentence in again.sentences]
        n_wrong = sum(self._n_wrong(passage, sentence) for sentence in passage.sentences)
        n_left = sum(self._n_wrong(again, sentence) for sentence in again.sentences)
        n_wrong += sum(len(item.dropped) for item in wrong)
        is_better = n_left < n_wrong or (n_left == n_wrong and self._is_surer(again, passage))
        lost = [pair for item in wrong for pair in self._lost_of(passage, item)]
        still_lost = {span.text for compared in second for span in compared.lost}
        is_clean = is_better and not any(compared.left for compared in second)
        sources = {source for _, source in lost}
        checks = [check for check in passage.checks if check.source not in sources]
        for span, source in lost:
            is_mended = is_clean if span is None else is_better and span.text not in still_lost
            kind: CheckKind = "name" if span is not None and span.kind in ("name", "letter") else "number"
            checks.append(Check(kind=kind, source=source, mended=is_mended))
        for item in wrong:
            if item.is_wordless or (item.is_copied and is_better):
                source = self._sentence_in_passage(passage, item.sentence).of(passage.parsed.text)
                is_mended = is_better and not any(kept.span.of(again.parsed.text) == source for kept in again.carried)
                checks = [check for check in checks if (check.kind, check.source) != ("untranslated", source)]
                checks.append(Check(kind="untranslated", source=source, mended=is_mended))
        if is_better:
            vars(passage).update(vars(again))
        passage.checks, passage.tried = checks, again.carried
        passage.is_tried_small |= again.is_tried_small
        return is_better

    def drop_wrong_alternatives(self, passage: PreparedPassage) -> None:
        """Drop hypotheses that lost or invented more than the best hypothesis of their sentence."""
        for sentence in passage.sentences:
            best, *others = sentence.sequence.output.best()
            n_wrong = self._n_wrong(passage, sentence)
            right = [other for other in others if self._n_wrong(passage, replace(sentence, rewound=other)) <= n_wrong]
            sentence.sequence.output.finished = [best, *right]

    def _n_wrong(self, passage: PreparedPassage, sentence: Sentence) -> int:
        n_wrong = self._compare(passage, sentence).n_wrong
        return n_wrong + self._is_wordless(passage, sentence) + self._is_copied(passage, sentence)

    def _is_copied(self, passage: PreparedPassage, sentence: Sentence) -> bool:
        """Return whether a lone word is its own translation, though the model knows the word: in small letters it is
        one token, as few names are. A label also stays as it is if the model is not sure of it."""
        words = self._label(passage, sentence)
        if len(words) != 1 or self._reader.tokenizer.n_tokens(words[0].of(passage.protected.text).lower()) != 1:
            return False
        return (sentence.is_speaker and not sentence.is_sure()) or self._is_same(passage, sentence)

    def _is_unsure(self, passage: PreparedPassage, sentence: Sentence) -> bool:
        """Return whether the model is not sure of a label that it may know in small letters, or leaves its only word.
        Most names have more tokens in small letters."""
        words = self._label(passage, sentence)
        if not words:
            return False
        n_fewer = self._n_fewer_tokens(passage, sentence)
        if self._is_same(passage, sentence):
            return len(words) == 1 and n_fewer > 0
        return n_fewer >= 0 and sentence.score() < UNSURE

    def _is_surer(self, again: PreparedPassage, passage: PreparedPassage) -> bool:
        """Return whether the model has translated the words that it has read in small letters, and is surer of them."""
        for new, old in zip(again.sentences, passage.sentences, strict=False):
            least = SURE_ENOUGH if self._n_fewer_tokens(passage, old) > 0 else UNSURE
            if new.is_small and new.score() > max(old.score(), least) and not self._is_same(again, new):
                return True
        return False

    def _n_fewer_tokens(self, passage: PreparedPassage, sentence: Sentence) -> int:
        """Return how many tokens a sentence has less in small letters."""
        text, n_tokens = sentence.span.of(passage.protected.text), self._reader.tokenizer.n_tokens
        letters = [*text]
        for place in self._capitals(passage, sentence):
            letters[place - sentence.span.start] = letters[place - sentence.span.start].lower()
        return n_tokens(text) - n_tokens("".join(letters))

    def _is_same(self, passage: PreparedPassage, sentence: Sentence) -> bool:
        source, _ = self._source(passage, sentence)
        return self._target(passage, sentence).strip().casefold() == source.strip().casefold()

    def _label(self, passage: PreparedPassage, sentence: Sentence) -> SequenceOf[Span]:
        """Return the places, in the protected text, of the words of a passage of few words, or of a label with a number
        before a colon, as in "Step 1: Go on"; none if a name may be before the colon, or if the words are in capitals,
        which are read in small letters anyway, or German, whose nouns have capitals."""
        text, span = passage.protected.text, sentence.span
        is_label = sentence.is_speaker and any(map(str.isdecimal, span.of(text)))
        is_alone = not sentence.is_speaker and len(passage.sentences) == 1
        if self._languages[0] == "de" or passage.beginning is not None or sentence.is_capitals:
            return ()
        if not (is_label or is_alone):
            return ()
        shown = with_capital(span.of(text)) if passage.is_tried_small else span.of(text)
        return [word.moved(span.start) for word in words_of_label(shown)]

    def _capitals(self, passage: PreparedPassage, sentence: Sentence) -> list[int]:
        """Return the places of capitals in the protected text that the model may read as small letters."""
        text = passage.protected.text
        return [word.start for word in self._label(passage, sentence) if has_capital(word.of(text))]

    def _is_wordless(self, passage: PreparedPassage, sentence: Sentence) -> bool:
        """Return whether a translation has only kept spans and numbers, or only as many words as alignment needs as
        places of kept spans. The source has two letters or more."""
        token_ids = sentence.hypothesis().token_ids
        protected = passage.protected
        is_lone = not protected.placeholders and LONE_WORD.fullmatch(protected.original)  # it may be a number in words
        if is_lone or len(token_ids) > MAX_TOKENS + len(sentence.slots):
            return False
        source, _ = self._source(passage, sentence, with_carried=False)
        if sum(map(str.isalpha, source)) <= 1:
            return False
        numbers = protected.numbers_in(sentence.span)
        n_placed = sum(protected.placeholders[number].has_slot for number in numbers)
        n_placed -= sum(slot.target_id in token_ids for _, slot in sentence.slots)
        target = self._target(passage, sentence, with_carried=False)
        return is_wordless(target, self._languages[1]) or len(target.split()) <= n_placed

    def _is_word(self, passage: PreparedPassage, item: Checked, number: VerifiedSpan) -> bool:
        if item.attention_pass is None or item.attention_pass.output.weights is None:
            return True
        prefix, tokenizer = self._reader.direction.source_prefix, self._reader.tokenizer
        token_ids = item.sentence.hypothesis().token_ids
        source = tokenizer.source_tokens(item.sentence.span.of(passage.protected.text), prefix)
        target = tokenizer.target_tokens(token_ids)
        (text,) = tokenizer.decode([token_ids])
        most = after_prefix(item.attention_pass.output.weights, len(prefix)).argmax(axis=1)
        pairs = zip(target, (source[column] for column in most.tolist()), strict=True)
        attending = (token for token, to in pairs if to.start < number.span.end and number.span.start < to.end)
        return any(any(map(str.isalpha, token.span.of(text))) for token in attending)

    def _read_again(self, passage: PreparedPassage, carried: list[KeptSpan], capitals: list[Span]) -> PreparedPassage:
        """Read a passage with further spans carried, or words in small letters. Equal sentences keep their
        translations."""
        sentences = [passage.protected.edits.before(sentence.span) for sentence in passage.sentences]
        parsed = replace(passage.parsed, sentences=sentences)
        new = sorted((kept.span for kept in carried), key=lambda span: span.pair)
        before = [kept for kept in passage.carried if len(set(overlapping(new, kept.span))) == 1]
        again = self._reader.prepare_passage(parsed, [*before, *carried], capitals)
        tokenizer, eos = self._reader.tokenizer, self._manifest.special_tokens.eos
        write_known([again], tokenizer, eos)
        if passage.beginning is not None:
            begin_again(again, passage, tokenizer, eos)
        known = {_key(sentence): sentence for sentence in passage.sentences}
        for sentence in again.sentences:
            if (former := known.get(_key(sentence))) is not None:
                sentence.sequence, sentence.rewound = former.sequence, former.rewound
                sentence.beginning, sentence.continuations = former.beginning, former.continuations
        return replace(again, parsed=passage.parsed)

    def _next_carried(self, passage: PreparedPassage, item: Checked) -> list[KeptSpan]:
        """Return the spans that the next reading of a wrong sentence carries. First these are its numbers and names.
        Then its kept spans are marks, if they stand at the ends of a few words: the model reads the words alone. A
        number 1 is a mark first, because words beside slots become plurals. At last the whole sentence is carried, if
        its translation has no word."""
        tried = {kept.span: kept.role for kept in passage.tried}
        carried = [kept for kept in self._carried(passage, item) if kept.span not in tried]
        protected = passage.protected
        whole = self._sentence_in_passage(passage, item.sentence)
        inside = [protected.placeholders[number] for number in protected.numbers_in(item.sentence.span)]
        spans: dict[Span, str | None] = {kept.span: kept.written for kept in inside if kept.has_slot}
        within = (kept for kept in passage.tried if whole.start <= kept.span.start and kept.span.end <= whole.end)
        spans |= {kept.span: kept.written for kept in within if kept.span != whole}
        marks = [KeptSpan(span, "mark", spans[span]) for span in sorted(spans, key=lambda span: span.pair)]
        if [kept.written for kept in carried] == ["1"] and not marks:
            marks = [replace(kept, role="mark") for kept in carried]
        elif carried:
            return carried
        if any(tried.get(kept.span) != "mark" for kept in marks) and _are_at_ends(marks, whole, passage.parsed.text):
            return [self._set_apart(kept, passage.parsed.text) for kept in marks]
        return carried or ([KeptSpan(whole)] if item.is_wordless and whole not in tried else [])

    def _set_apart(self, kept: KeptSpan, text: str) -> KeptSpan:
        """Put a space between a mark and a word if only the source needs none between them."""
        before, after = text[max(0, kept.span.start - 1) : kept.span.start], text[kept.span.end : kept.span.end + 1]
        if self._languages[1] in UNSPACED or kept.written is None:
            return kept
        return replace(kept, written=f"{' ' * is_unspaced(before)}{kept.written}{' ' * is_unspaced(after)}")

    def _carried(self, passage: PreparedPassage, item: Checked) -> Iterator[KeptSpan]:
        text, _ = self._source(passage, item.sentence)
        for kept in carried_spans(text, item.compared, *self._languages):
            span = self._in_passage(passage, item.sentence, kept.span)
            shown = without_hidden(span.of(passage.parsed.text))  # with dashes and capitals that were read as others
            is_same = kept.written is not None and _alike(shown) == _alike(kept.written)
            yield replace(kept, span=span, written=shown if is_same else kept.written)

    def _lost_of(self, passage: PreparedPassage, item: Checked) -> Iterator[tuple[VerifiedSpan | None, str]]:
        """Yield lost spans, each with its piece of the source, or the sentence if its translation only invented."""
        for lost in sorted([*item.compared.lost, *item.dropped], key=lambda lost: lost.span.pair):
            span = self._in_passage(passage, item.sentence, lost.whole or lost.span)
            yield lost, span.of(passage.parsed.text)
        if item.compared.invented and not item.compared.lost and not item.dropped:
            yield None, self._sentence_in_passage(passage, item.sentence).of(passage.parsed.text)

    @staticmethod
    def _sentence_in_passage(passage: PreparedPassage, sentence: Sentence) -> Span:
        return passage.protected.edits.before(sentence.span)

    def _in_passage(self, passage: PreparedPassage, sentence: Sentence, span: Span) -> Span:
        _, edits = self._source(passage, sentence)
        return passage.protected.edits.before(edits.before(span.moved(sentence.span.start)))

    def _compare(self, passage: PreparedPassage, sentence: Sentence) -> Comparison:
        if not passage.carried and not HINT.search(passage.protected.text, *sentence.span.pair):
            return NOTHING
        source, _ = self._source(passage, sentence)
        return compare(source, self._target(passage, sentence), *self._languages)

    def _source(self, passage: PreparedPassage, sentence: Sentence, with_carried: bool = True) -> tuple[str, Edits]:
        """Return a sentence with its carried spans (or spaces, unless `with_carried`) and with spaces in place of all
        other kept spans; and the edits of the protected text that make it."""
        protected, span, changes = passage.protected, sentence.span, []
        for number in protected.numbers_in(span):
            placeholder = protected.placeholders[number]
            carried = without_hidden(placeholder.span.of(protected.original)) if with_carried else ""
            changes.append((placeholder.place, _shown(passage, placeholder, carried)))
        text, edits = replace_spans(protected.text[: span.end], changes)
        return text[span.start :], edits

    def _target(self, passage: PreparedPassage, sentence: Sentence, with_carried: bool = True) -> str:
        """Return a translation with its carried spans (or spaces, unless `with_carried`), and spaces for the slots of
        other kept spans. Carried spans without slots are put behind it: alignment will place them."""
        token_ids, tokenizer = sentence.hypothesis().token_ids, self._reader.tokenizer
        (text,) = tokenizer.decode([token_ids])
        tokens = tokenizer.target_tokens(token_ids) if sentence.slots else []
        slots = ((number, slot.target_id) for number, slot in sentence.slots if slot.target_id in token_ids)
        places = {number: token_ids.index(target_id) for number, target_id in slots}
        changes, missing = [], ""
        for number in passage.protected.numbers_in(sentence.span):
            placeholder = passage.protected.placeholders[number]
            shown, end_of = _shown(passage, placeholder, placeholder.written), end_of_digits
            if not with_carried:
                shown, end_of = " ", end_of_ending
            if number in places:
                slot = tokens[places[number]].span
                changes.append((Span(slot.start, end_of(text, slot.end)), shown))
            else:
                missing += f" {shown}"
        return replace_spans(text, sorted(changes, key=lambda change: change[0].pair))[0] + missing


def _shown(passage: PreparedPassage, placeholder: Placeholder, text: str) -> str:
    """Return a text for a carried placeholder, or else as many spaces as its stand-in has characters."""
    is_carried = any(kept.span == placeholder.span for kept in passage.carried)
    return text if is_carried else " " * len(placeholder.stand_in)


def _alike(text: str) -> str:
    return with_hyphens(text).casefold()


def _are_at_ends(marks: list[KeptSpan], whole: Span, text: str) -> bool:
    edges = [whole.start, *(edge for kept in marks for edge in kept.span.pair), whole.end]
    pieces = [text[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
    words = [piece for piece in pieces if any(map(str.isalnum, piece))]
    return len(words) == 1 and len(words[0].split()) <= MAX_WORDS


def _key(sentence: Sentence) -> tuple[SequenceOf[int], SequenceOf[int], str | None]:
    beginning = sentence.beginning.text if sentence.beginning is not None else None
    return tuple(sentence.sequence.source_ids), sentence.sequence.output.once_tokens, beginning
