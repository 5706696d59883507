"""Translations that begin with given characters: which sentence each part begins, and by which tokens.

Tokens of whole words are forced, as the tokenizer cuts them. The last word may go on: its tokens are chosen among those
that the model finds probable there, and whose characters agree with it (`Walk`).
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from service.base.errors import InvalidFields, UnsupportedOption
from service.engine.scheduler import Sequence
from service.engine.search import Hypothesis, Search, prefix_scores
from service.kept.restoration import Restored
from service.tasks.translation.reading import Beginning, Continuation, PreparedPassage, PreparedText, Reader, Sentence
from service.text.scripts import is_unspaced
from service.text.sentences import sentence_spans, strip_span
from service.text.spans import Edits, Span, replace_spans
from service.text.tokenization import Tokenizer

N_NEXT_TOKENS = 128
"""Number of tokens among which a token of the last word is chosen. The smallest shortlist has 192."""
MAX_CHOSEN, MAX_CHOSEN_INSIDE = 8, 3
"""Maximum number of tokens of the last word that are chosen anew: of a whole word, and of a longer one or of a text
without spaces."""
NEXT_SENTENCE = "A."
"""Behind a prefix, it tells whether the last sentence of the prefix may go on."""


def begin_text(prepared: PreparedText, prefix: str, reader: Reader, eos: int) -> None:
    """Give the sentences of a text their beginnings. The sentences of the prefix are the translations of the first
    sentences, and the last one is the beginning of the next. If it has more sentences than the text, the last sentence
    of the text begins with all others. Raises InvalidFields: no translation can begin so. UnsupportedOption: the text
    has marks, whose places depend on the whole translation."""
    if any(passage.parsed.elements for passage in prepared.passages):
        raise UnsupportedOption("`target_prefix` needs texts without marks or tags, such as **word**")
    sentences = prepared.sentences
    if not sentences:
        refuse_other_beginning("".join(passage.parsed.text for passage in prepared.passages), prefix)
        return
    splits = reader.split_sentences and reader.direction.is_translation
    spans = _spans_of(prefix, reader.direction.target_subtag if splits else None)
    if len(spans) > len(sentences):
        spans = [*spans[: len(sentences) - 1], Span(spans[len(sentences) - 1].start, len(prefix))]
    for sentence in sentences:
        sentence.sequence.output.n_best = 1
    remaining, start, n_left = iter(spans), 0, len(spans)
    for passage in prepared.passages:
        own = [*islice(remaining, len(passage.sentences))]
        n_left -= len(own)
        end = own[-1].end if n_left else len(prefix)
        passage.beginning = prefix[start:end]
        for n, (sentence, span) in enumerate(zip(passage.sentences, own, strict=False)):
            is_whole = n_left > 0 or n + 1 < len(own)
            text = "" if not is_whole and _is_before(sentence, passage, prefix[start:]) else span.of(prefix)
            begin_sentence(sentence, passage, text, is_whole, reader.tokenizer, eos)
            start = span.end
        start = end
        if not n_left:
            break


def begin_again(again: PreparedPassage, passage: PreparedPassage, tokenizer: Tokenizer, eos: int) -> None:
    """Give the sentences of another reading of a passage the same beginnings. Raises InvalidFields, as above."""
    again.beginning = passage.beginning
    for sentence, former in zip(again.sentences, passage.sentences, strict=False):
        if (beginning := former.beginning) is not None:
            sentence.sequence.output.n_best = 1
            begin_sentence(sentence, again, beginning.text, beginning.is_whole, tokenizer, eos)


def write_known(passages: Iterable[PreparedPassage], tokenizer: Tokenizer, eos: int) -> None:
    """Give sentences their stored translations. The model translates a sentence whose translation it cannot write."""
    for passage in passages:
        known = dict(passage.parsed.known)
        for sentence in passage.sentences if known else ():
            text = known.get(passage.protected.edits.before(sentence.span))
            if text is not None:
                with suppress(InvalidFields):
                    begin_sentence(sentence, passage, text, True, tokenizer, eos)


def refuse_other_beginning(text: str, prefix: str | None) -> None:
    """Raise InvalidFields if a text that stays as it is does not begin with its prefix."""
    if prefix is not None and not text.startswith(prefix):
        raise _refused(prefix, "must be a beginning of its text, which is not translated")


def _spans_of(prefix: str, language: str | None) -> list[Span]:
    """Return the sentences of a prefix. The last one ends with the prefix, and is empty if white space ends the
    sentence before it."""
    padded, n = prefix + NEXT_SENTENCE, len(prefix)
    whole = strip_span(padded, Span(0, len(padded)))
    assert whole is not None, "it ends in a letter"
    spans = [whole] if language is None else sentence_spans(padded, language)
    with_letters = (span for span in spans if any(map(str.isalpha, span.of(padded))))
    found = [Span(min(span.start, n), min(span.end, n)) for span in with_letters]
    if not found:
        return [Span(n, n)]
    return found if len(found) == 1 or found[-1].start < n or prefix[-1:].isspace() else found[:-1]


def _is_before(sentence: Sentence, passage: PreparedPassage, text: str) -> bool:
    """Return whether a text belongs to the mark before a sentence, which is the same in its translation."""
    before = passage.protected.text[: sentence.span.start]
    return before[before.rfind("\n") + 1 :].lstrip().startswith(text.strip())


def begin_sentence(
    sentence: Sentence, passage: PreparedPassage, text: str, is_whole: bool, tokenizer: Tokenizer, eos: int
) -> None:
    """Let the translation of a sentence begin with a text, or be the text. Kept spans in the text are read as their
    slots, or left out if the model does not see them. Raises InvalidFields: the model cannot write the text, or not
    with so few tokens."""
    shown = text[:1] + text[1:].lower() if sentence.is_capitals and text.isupper() else text
    shown = shown.rstrip(" \u00a0:：") if sentence.is_speaker else shown  # a colon follows by itself
    words = shown.split()
    search, n_tags = sentence.sequence.output, len(sentence.sequence.output.prefix)
    slots = {number: slot.target_id for number, slot in sentence.slots}
    read = " ".join(words)
    token_ids, places = _tokens_of(read, sentence, passage, slots, tokenizer)
    if token_ids is None:
        raise _refused(text, "must have only characters that the model can write")
    limit = search.max_target_tokens - n_tags
    if len(token_ids) >= limit:
        raise _refused(text, f"must begin a sentence with fewer than {limit} tokens, not {len(token_ids)}")
    pieces = {slots[number]: _kept_piece(number, slots, passage, tokenizer) for number in slots}
    ends_word = shown != shown.rstrip()
    n_forced = len(token_ids) if ends_word else _start_of_last_word(token_ids, pieces, tokenizer)
    start = _start_of_kept_span(read, pieces)
    if start is not None and not ends_word and token_ids[-1] not in pieces:
        before, _ = _tokens_of(read[:start].rstrip(), sentence, passage, slots, tokenizer)
        n_forced = len(before) if before is not None and token_ids[: len(before)] == before else n_forced
    usual = token_ids[n_forced:]
    rest = b" " if ends_word else b"".join(_pieces_of(usual, tokenizer))
    sentence.beginning = Beginning(text, is_whole, token_ids[:n_forced], usual, rest, pieces, places)
    if is_whole:
        written = [*search.prefix, *token_ids, eos]
        scores = [prefix_scores(search.once_tokens)] * len(written) if search.scored else ()
        search.finished = [Hypothesis(written, 0.0, "eos", scores)]


def _tokens_of(
    text: str, sentence: Sentence, passage: PreparedPassage, slots: Mapping[int, int], tokenizer: Tokenizer
) -> tuple[list[int] | None, dict[int, Span]]:
    """Return the tokens of a beginning, None if a character has none, and the places of kept spans that are no slots
    there."""
    found = [*_kept_in(text, sentence, passage)]
    while True:
        changes = []
        for number, span in found:
            word = tokenizer.decode([[slots[number]]])[0].strip() if number in slots else span.of(text)
            if not passage.protected.placeholders[number].stand_in:
                span, word = Span(span.start - (text[span.start - 1 : span.start] == " "), span.end), ""
            changes.append((span, word))
        read, edits = replace_spans(text, changes)
        token_ids = tokenizer.target_ids(read)
        if token_ids is None:
            return None, {}
        located = tokenizer.target_tokens(token_ids)
        by_token = {token.span: token_id for token, token_id in zip(located, token_ids, strict=True)}
        new = {number: place for (number, _), place in zip(found, edits.new, strict=True)}
        is_slot = [number for number, place in new.items() if number in slots and by_token.get(place) == slots[number]]
        if all(number in is_slot for number in new if number in slots):
            return token_ids, {number: place for number, place in new.items() if number not in is_slot}
        slots = {number: slots[number] for number in slots if number in is_slot or number not in new}


def _kept_in(text: str, sentence: Sentence, passage: PreparedPassage) -> Iterator[tuple[int, Span]]:
    """Yield the kept spans of a sentence that are in its beginning, in order, each by its number."""
    taken: dict[int, Span] = {}
    for number in passage.protected.numbers_in(sentence.span):
        placeholder = passage.protected.placeholders[number]
        for written in (placeholder.written, placeholder.at_start):
            at = text.find(written) if written else -1
            while at >= 0 and any(at < span.end and span.start < at + len(written or "") for span in taken.values()):
                at = text.find(written or "", at + 1)
            if at >= 0 and number not in taken:
                taken[number] = Span(at, at + len(written or ""))
    yield from sorted(taken.items(), key=lambda item: item[1].pair)


def _kept_piece(number: int, slots: Mapping[int, int], passage: PreparedPassage, tokenizer: Tokenizer) -> bytes:
    """Return what the token of a slot stands for."""
    piece = tokenizer.piece(slots[number])
    space = " " * (isinstance(piece, bytes) and piece.startswith(b" "))
    return f"{space}{passage.protected.placeholders[number].written}".encode()


def _start_of_kept_span(text: str, pieces: Mapping[int, bytes]) -> int | None:
    """Return where the kept span starts whose beginning ends a text. No space need be before it: "開いて{na"."""
    kept = [piece.decode().strip() for piece in pieces.values()]
    for start in range(max(0, len(text) - max(map(len, kept), default=0)), len(text)):
        inside_word = text[start].isalnum() and text[start - 1 : start].isalnum() and not is_unspaced(text[start - 1])
        if not inside_word and any(written.startswith(text[start:]) for written in kept):
            return start
    return None


def _start_of_last_word(token_ids: list[int], slots: Mapping[int, bytes], tokenizer: Tokenizer) -> int:
    n = len(token_ids)
    for i in range(n - 1, max(-1, n - 1 - MAX_CHOSEN), -1):
        if token_ids[i] in slots:
            return i + 1
        if next(_pieces_of([token_ids[i]], tokenizer)).startswith(b" "):
            return i
    return max(0, n - MAX_CHOSEN_INSIDE)


def _pieces_of(token_ids: SequenceOf[int], tokenizer: Tokenizer) -> Iterator[bytes]:
    for token_id in token_ids:
        piece = tokenizer.piece(token_id)
        yield piece if isinstance(piece, bytes) else b""


def _refused(prefix: str, message: str) -> InvalidFields:
    shown = prefix if len(prefix) <= 40 else f"{prefix[:40]}..."
    return InvalidFields([(("target_prefix",), f"{message}: {shown!r}")])


def end_of_beginning(
    passage: PreparedPassage, targets: list[Span], moves: list[Edits], rank: int, tokenizer: Tokenizer
) -> tuple[int, str]:
    """Return where the beginning of a passage ends in the translation of its sentences, and the rest of a kept span
    in which it ends."""
    all_of = zip(passage.sentences, targets, moves, strict=True)
    sentence, target, edits = [whole for whole in all_of if whole[0].beginning is not None][-1]
    if sentence.beginning is None or sentence.beginning.is_whole:
        return target.end, ""
    n, following = _end_in_sentence(sentence.beginning, sentence.hypothesis(rank), tokenizer)
    return min(target.start + edits.after(Span(0, n)).end, target.end), following


def with_beginning(restored: Restored, beginning: str, end: int) -> Restored:
    """Return a translation that begins with exactly these characters. They end where `end` was before placeholders were
    put back."""
    if restored.text.startswith(beginning):
        return restored
    after = restored.edits.after(Span(0, end)).end
    by, edits = len(beginning) - after, restored.edits
    later = [n for n, span in enumerate(edits.old) if span.start >= end]
    old = Span(0, end), *(edits.old[n] for n in later)
    new = Span(0, len(beginning)), *(edits.new[n].moved(by) for n in later)
    copies = [(span, place.moved(by)) for span, place in restored.copies if place.start >= after]
    return replace(restored, text=beginning + restored.text[after:], edits=Edits(old, new), copies=copies)


def _end_in_sentence(beginning: Beginning, hypothesis: Hypothesis, tokenizer: Tokenizer) -> tuple[int, str]:
    """Return the number of characters of a translation with which it begins as it must, and what follows these in the
    kept span where they end."""
    left = len(b"".join(_shown_pieces(beginning, beginning.token_ids, tokenizer)) + beginning.rest)
    written, after, token_ids = b"", "", hypothesis.token_ids
    for token_id, shown in zip(token_ids, _shown_pieces(beginning, token_ids, tokenizer), strict=True):
        if left <= 0:
            break
        [piece] = _pieces_of([token_id], tokenizer)
        if token_id in beginning.pieces:
            written, after = written + piece, shown[left:].decode(errors="ignore")
        else:
            written += piece[:left]
        left -= len(shown)
    return len(written.decode(errors="ignore")) - written.startswith(b" "), after


def _shown_pieces(beginning: Beginning, token_ids: SequenceOf[int], tokenizer: Tokenizer) -> list[bytes]:
    pieces = zip(token_ids, _pieces_of(token_ids, tokenizer), strict=True)
    return [beginning.pieces.get(token_id, piece) for token_id, piece in pieces]


class Path(NamedTuple):
    """Tokens behind those of whole words, and how much they write."""

    log_prob: float
    token_ids: tuple[int, ...] = ()
    n_bytes: int = 0


class Walk:
    """The way to the most probable tokens that write the rest of a beginning, by beam search.

    Args:
        width: number of paths that are kept.
        goes_beyond: whether the tokens must write more than the rest, and `width` paths are looked for, not one.

    Attributes:
        live: paths to be continued.
        found: finished paths, best first.
    """

    def __init__(self, sentence: Sentence, tokenizer: Tokenizer, width: int, goes_beyond: bool = False) -> None:
        assert sentence.beginning is not None
        self._sentence, self._beginning, self._tokenizer = sentence, sentence.beginning, tokenizer
        self._width, self._n_wanted = width, width if goes_beyond else 1
        self._n_bytes = len(self._beginning.rest) + goes_beyond
        self.live = [Path(0.0)] if self._n_bytes else []
        self.found = [] if self._n_bytes else [Path(0.0)]
        self.probes: list[Sequence[Search]] = []

    def probe(self) -> list[Sequence[Search]]:
        """Return a search for each live path that records the next tokens."""
        sequence, self.probes = self._sentence.sequence, []
        for path in self.live:
            prefix = (*sequence.output.prefix, *self._beginning.token_ids, *path.token_ids)
            n = min(N_NEXT_TOKENS, self._tokenizer.vocabulary_size)
            probe = Search(len(prefix) + 1, prefix=prefix, may_end=True, n_next_tokens=n)
            self.probes.append(Sequence(sequence.source_ids, probe))
        return self.probes

    def advance(self) -> None:
        """Continue the live paths with the tokens that the probes have found."""
        longer = [*self.found]
        for path, probe in zip(self.live, self.probes, strict=True):
            left = self._beginning.rest[path.n_bytes :]
            [hypothesis] = probe.output.finished
            for token_id, log_prob in hypothesis.next_tokens:
                shown = self._shown(token_id, path)
                if shown and (shown.startswith(left) or left.startswith(shown)):
                    token_ids, n_bytes = (*path.token_ids, token_id), path.n_bytes + len(shown)
                    longer.append(Path(path.log_prob + log_prob, token_ids, n_bytes))
        best = sorted(longer, key=attrgetter("log_prob"), reverse=True)[: self._width]
        self.found, self.live = [], []
        for path in best:
            if path.n_bytes >= self._n_bytes:
                self.found.append(path)
            elif len(self.found) < self._n_wanted and len(path.token_ids) < self._most_tokens:
                self.live.append(path)

    def searches(self) -> list[tuple[Path, Sequence[Search]]]:
        """Return a search for each path that was found."""
        assert self._beginning is not None
        sequence, searches = self._sentence.sequence, []
        for path in self.found:
            prefix = (*sequence.output.prefix, *self._beginning.token_ids, *path.token_ids)
            search = replace(sequence.output, prefix=prefix, may_end=True, finished=[])
            searches.append((path, Sequence(sequence.source_ids, search, n_rows=sequence.n_rows)))
        return searches

    @property
    def _most_tokens(self) -> int:
        output = self._sentence.sequence.output
        return output.max_target_tokens - len(output.prefix) - len(self._beginning.token_ids) - 1

    def _shown(self, token_id: int, path: Path) -> bytes:
        """Return what a token writes, nothing if it cannot come next."""
        if token_id not in self._beginning.pieces:
            piece = self._tokenizer.piece(token_id)
            return piece if isinstance(piece, bytes) else b""
        is_written = token_id in self._beginning.token_ids or token_id in path.token_ids
        return b"" if is_written else self._beginning.pieces[token_id]


def continue_sentence(sentence: Sentence, walk: Walk) -> None:
    """Let the search of a sentence begin with what a walk has found, or else with the tokens that the tokenizer makes
    of the rest."""
    beginning, output = sentence.beginning, sentence.sequence.output
    assert beginning is not None
    if walk.found:
        path = walk.found[0]
    else:
        path = Path(0.0, tuple(beginning.usual))
        sentence.beginning = replace(beginning, rest=beginning.rest if beginning.usual else b"")
    output.prefix = (*output.prefix, *beginning.token_ids, *path.token_ids)
    output.may_end = bool(beginning.text)


def continuations(sentence: Sentence, searched: SequenceOf[tuple[Path, Sequence[Search]]]) -> list[Continuation]:
    """Return the continuations of a sentence, the one that its translation has first."""
    first = sentence.hypothesis().token_ids
    made = [(path, sequence.output) for path, sequence in searched]
    is_first = [tuple(first[: len(output.prefix)]) == output.prefix for _, output in made]
    found = [Continuation(output.best()[0], path.log_prob) for path, output in made]
    own = [item.log_prob for item, is_own in zip(found, is_first, strict=True) if is_own]
    others = [item for item, is_own in zip(found, is_first, strict=True) if not is_own]
    return [Continuation(sentence.hypothesis(), own[0] if own else None), *others]


def kept_places(sentence: Sentence, target: Span) -> dict[int, Span]:
    """Return the places of kept spans without slots that the beginning of a translation has."""
    places = sentence.beginning.places if sentence.beginning is not None else {}
    return {number: place.moved(target.start) for number, place in places.items()}
