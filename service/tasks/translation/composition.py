"""Compose texts and answers of finished sentences: kept spans are put back, and tags are placed around their words."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, get_args

import numpy as np

from service.base.contract import FinishReason
from service.kept.placeholders import Protected
from service.kept.restoration import Restored, keep_original, restore
from service.markup.passages import ParsedText
from service.numbers.written_numbers import FIXED, write_numbers
from service.numbers.written_numbers import HINT as WRITTEN
from service.schemas.answers import Alternative, Attention, Segment, Translation
from service.tasks.attention import Selection, prefix_of
from service.tasks.translation.alignment import (
    AlignedSentence,
    TextView,
    after_prefix,
    align,
    split_words,
    word_weights,
    words_of,
)
from service.tasks.translation.beginning import end_of_beginning, kept_places, with_beginning
from service.tasks.translation.checking import checks_of
from service.tasks.translation.confidence import Sureness, words_of_passage
from service.tasks.translation.reading import PreparedPassage, PreparedText, Sentence
from service.text.aligned_words import AlignedWords
from service.text.capitals import in_capitals, with_capital
from service.text.languages import Direction
from service.text.sentences import (
    NOTHING_BEFORE,
    UNSPACED,
    Before,
    join_sentences,
    speaker_name,
    with_wide_marks,
    without_new_stop,
)
from service.text.spans import NO_EDITS, Edits, Span, overlapping, replace_spans
from service.text.tokenization import Tokenizer
from service.text.tokens import Token
from service.text.touching_signs import excess_blanks

NO_WEIGHTS = np.zeros((0, 0), np.float32)
WORST_LAST = get_args(FinishReason)


@dataclass(frozen=True)
class Rendering:
    """The translation of a passage."""

    passage: PreparedPassage
    written: str
    """The model's translations of the sentences, with the text between them."""
    targets: list[Span]
    """The spans of the sentences in `written`."""
    moves: list[Edits]
    """What was taken out of the model's translation of each sentence."""
    sentences: list[AlignedSentence]
    """The sentences with an attention pass."""
    restored: Restored
    """The translation with its placeholders put back."""

    @property
    def source_view(self) -> TextView:
        protected, parsed = self.passage.protected, self.passage.parsed
        to_original = Edits(protected.edits.new, protected.edits.old)
        return TextView(protected.text, to_original, parsed.text, *parsed.with_marks())

    @property
    def target_view(self) -> TextView:
        restored, parsed = self.restored, self.passage.parsed
        return TextView(self.written, restored.edits, restored.text, *parsed.with_marks(restored))


def renderings(
    prepared: PreparedText, tokenizer: Tokenizer, direction: Direction, before: Before = NOTHING_BEFORE, rank: int = 0
) -> Iterator[Rendering]:
    """Yield the translation of each passage, from the hypothesis with this rank of each sentence; 0 is the best. A
    piece of a plain text has characters `before` it."""
    for passage in prepared.passages:
        protected, sentences = passage.protected, passage.sentences
        source, target = direction.source_subtag, direction.target_subtag
        decoded = tokenizer.decode([sentence.hypothesis(rank).token_ids for sentence in sentences])
        spans = [sentence.span for sentence in sentences]
        edited = [_edited(text, s, rank, protected, target) for s, text in zip(sentences, decoded, strict=True)]
        translated, moves = [text for text, _ in edited], [edits for _, edits in edited]
        blanks = protected.added_blanks if protected.edits.old else ()
        written, targets = join_sentences(protected.text, spans, translated, source, target, before, blanks)
        attended = []
        if rank == 0 and any(sentence.attention_pass is not None for sentence in sentences):
            attended = _aligned_sentences(passage, targets, moves, tokenizer, direction.source_prefix)
        words: list[AlignedWords] = []
        if rank > 0:
            words = _words_in_order(passage, written, targets)
        elif passage.needs_alignment:  # only then does every attention pass have weights
            words = [_aligned_words(sentence, protected.text, written) for sentence in attended]
        end, following = end_of_beginning(passage, targets, moves, rank, tokenizer) if passage.beginning else (0, "")
        if not sentences:
            restored = keep_original(protected)
        elif protected.edits.old:
            slots = _slot_places(passage, targets, moves, tokenizer, rank)
            starts = _starts(passage, targets, slots) if target not in UNSPACED else ()
            restored = restore(protected, written, slots, words, before, starts, target, end)
        else:
            restored = Restored(written, NO_EDITS, (), partial(list, words))
        if passage.beginning is not None:
            restored = with_beginning(restored, passage.beginning + following, end)
        if WRITTEN.search(protected.original) and direction.is_translation:
            restored = _with_numbers(restored, passage, direction)
        yield Rendering(passage, written, targets, moves, attended, restored)
        if prepared.parsed.is_plain:
            before = Before(protected.text[-1:], written[-1:])


def _with_numbers(restored: Restored, passage: PreparedPassage, direction: Direction) -> Restored:
    """Return a translation whose numbers are written as its language does. Spans that the request keeps, and kept spans
    with letters (not those of °C), stay as they are."""
    copies = restored.copies if passage.sentences or passage.named else ()
    text = restored.text
    kept = [place for span, place in copies if span in passage.named or FIXED.search(place.of(text))]
    if passage.beginning:
        begins = Span(0, len(passage.beginning))
        kept = [begins, *(place for place in kept if place.start >= begins.end)]
    languages = direction.source_subtag, direction.target_subtag
    return replace(restored, text=write_numbers(passage.protected.original, text, languages, kept))


def _edited(target: str, sentence: Sentence, rank: int, protected: Protected, language: str) -> tuple[str, Edits]:
    """Return the translation of a sentence with the end marks that its source calls for, and what was taken out of it.
    The name of a speaker stays as it is if the model is not sure of it."""
    source = sentence.span.of(protected.text)
    shown = in_capitals if sentence.is_capitals else with_capital if sentence.is_small else str
    target = shown(target)
    edits = NO_EDITS
    if protected.edits.old and (signs := protected.set_apart_in(sentence.span)):
        target, edits = replace_spans(target, [(span, "") for span in excess_blanks(target, source, signs)])
    if sentence.is_speaker:
        name = speaker_name(target, source) if sentence.is_sure(rank) else None
        return name or shown(source), edits
    if any(protected.placeholders[number].stand_in for number in protected.numbers_in(sentence.span)):
        target = without_new_stop(target, source)
    return with_wide_marks(target, source, language), edits


def render(prepared: PreparedText, tokenizer: Tokenizer, direction: Direction, before: Before) -> tuple[str, Before]:
    """Return the translation of a piece of a text, and the characters before the next piece."""
    rendered = [*renderings(prepared, tokenizer, direction, before)]
    text = prepared.parsed.render(rendering.restored for rendering in rendered)
    if not prepared.parsed.is_plain:
        return text, NOTHING_BEFORE
    return text, Before(rendered[-1].passage.protected.text[-1:], rendered[-1].written[-1:])


def translated_text(prepared: PreparedText, tokenizer: Tokenizer, direction: Direction) -> ParsedText:
    """Return the translation of a text, to be translated again; its sentences and kept spans are known."""
    passages = []
    for rendering in renderings(prepared, tokenizer, direction):
        passage, restored = rendering.passage, rendering.restored
        keep = [target for source, target in restored.copies if len(set(overlapping(passage.named, source))) == 2]
        sentences = [restored.edits.after(target) for target in rendering.targets]
        passages.append(passage.parsed.with_translation(restored, keep, sentences))
    return prepared.parsed.with_passages(passages)


def compose_answer(
    prepared: PreparedText,
    tokenizer: Tokenizer,
    direction: Direction,
    selection: Selection | None,
    alignment: bool,
    checks: bool,
    sureness: Sureness | None = None,
) -> Translation:
    """Return the answer to one text, all sentences of which are finished. The attention matrices of `selection`, the
    alignment, the checks, and what `sureness` tells are part of it if they are wanted."""
    sentences = prepared.sentences
    rendered = [*renderings(prepared, tokenizer, direction)]
    text = prepared.parsed.render(rendering.restored for rendering in rendered)
    source_tokens = sum([len(sentence.sequence.source_ids) for sentence in sentences])
    translation = Translation(**_scored(sentences, 0, text), source_tokens=source_tokens)
    if checks:
        is_name = partial(_is_name, tokenizer=tokenizer, direction=direction)
        by_passage = (checks_of(r.passage, r.written, r.targets, is_name) for r in rendered)
        translation.checks = [*chain.from_iterable(by_passage)]
    if sureness is not None:
        words = [words_of_passage(r.passage, r.written, r.targets, r.moves, r.restored, tokenizer) for r in rendered]
        sureness.show(translation, prepared, [r.restored for r in rendered], words)
    if not prepared.parsed.is_plain:
        return translation
    if any(sentence.sequence.output.n_best > 1 or sentence.continuations for sentence in sentences):
        translation.alternatives = _alternatives(prepared, text, tokenizer, direction)
    if len(sentences) > 1 or selection is not None or alignment:
        _show_parts(translation, sentences, rendered, selection, alignment)
    return translation


def _is_name(word: str, tokenizer: Tokenizer, direction: Direction) -> bool:
    """Return whether a word is an abbreviation, or has fewer tokens with its capital, which all German nouns have."""
    if len(word) > 1 and word.isupper():
        return True
    has_capital = word[:1].isupper() and direction.source_subtag != "de"
    return has_capital and tokenizer.n_tokens(word) < tokenizer.n_tokens(word.lower())


def _show_parts(
    translation: Translation,
    sentences: list[Sentence],
    rendered: list[Rendering],
    selection: Selection | None,
    is_aligned: bool,
) -> None:
    pairs: list[tuple[Span, Span]] = []
    attended: list[AlignedSentence] = []
    n_source = n_target = 0
    for rendering in rendered:
        for sentence, place in zip(rendering.passage.sentences, rendering.targets, strict=True):
            pairs.append((sentence.span.moved(n_source), place.moved(n_target)))
        attended += [sentence.moved(n_source, n_target) for sentence in rendering.sentences]
        n_source, n_target = n_source + len(rendering.passage.protected.text), n_target + len(rendering.written)
    source = TextView.joined([rendering.source_view for rendering in rendered])
    target = TextView.joined([rendering.target_view for rendering in rendered])
    if len(sentences) > 1:
        translation.segments = [
            Segment(source=_with_marks(source, span).pair, target=_with_marks(target, place).pair)
            for span, place in pairs
        ]
    if selection is not None:
        translation.attention = _attention(sentences, attended, source, target, selection)
    if is_aligned:
        translation.alignment = align(attended, source, target)


def _with_marks(view: TextView, sentence: Span) -> Span:
    """Return the place of a sentence in the user's text, with marks that touch it but no other visible text."""
    sentence, marks, text = view.to_shown(sentence), view.marks.new, view.shown
    start, end = sentence.pair
    first = bisect_right(marks, start, key=lambda mark: mark.end) - 1
    while first >= 0 and marks[first].end == start:
        first, start = first - 1, marks[first].start
    after = bisect_left(marks, end, key=lambda mark: mark.start)
    while after < len(marks) and marks[after].start == end:
        after, end = after + 1, marks[after].end
    start = sentence.start if text[max(0, start - 1) : start].strip() else start
    return Span(start, sentence.end if text[end : end + 1].strip() else end)


def _alternatives(
    prepared: PreparedText, best: str, tokenizer: Tokenizer, direction: Direction
) -> list[Alternative] | None:
    """Return the texts of the second best hypotheses of all sentences, of the third best, and so on, without copies of
    the `best` or of one another."""
    by_text: dict[str, Alternative] = {}
    n_best = max([len(sentence.hypotheses) for sentence in prepared.sentences])
    for rank in range(1, n_best):
        rendered = renderings(prepared, tokenizer, direction, rank=rank)
        text = prepared.parsed.render(rendering.restored for rendering in rendered)
        if text != best and text not in by_text:
            by_text[text] = Alternative(**_scored(prepared.sentences, rank, text))
    return list(by_text.values()) or None


def _scored(sentences: list[Sentence], rank: int, text: str) -> dict[str, Any]:
    """Return the fields of a translation, or of an alternative."""
    hypotheses = [sentence.hypothesis(rank) for sentence in sentences]
    target_tokens = sum([len(hypothesis.token_ids) for hypothesis in hypotheses])
    reasons = [hypothesis.finish_reason for hypothesis in hypotheses]
    score = sum([hypothesis.log_prob for hypothesis in hypotheses]) / max(1, target_tokens)
    answer = {"text": text, "score": score, "finish_reason": worst_reason(reasons), "target_tokens": target_tokens}
    for continuation in (item for sentence in sentences for item in sentence.continuations[rank : rank + 1]):
        answer["probability"] = None if continuation.log_prob is None else math.exp(continuation.log_prob)
    return answer


def worst_reason(reasons: SequenceOf[FinishReason]) -> FinishReason:
    """Return the worst of several finish reasons; `eos` if there are none."""
    return max(reasons, key=WORST_LAST.index, default="eos")


def _aligned_sentences(
    passage: PreparedPassage,
    targets: list[Span],
    moves: list[Edits],
    tokenizer: Tokenizer,
    prefix: SequenceOf[int],
) -> list[AlignedSentence]:
    sentences = []
    for sentence, target_span, edits in zip(passage.sentences, targets, moves, strict=True):
        if sentence.attention_pass is None:
            continue
        source = tokenizer.source_tokens(sentence.span.of(passage.protected.text), prefix)
        target = tokenizer.target_tokens(sentence.hypothesis().token_ids, edits)
        weights = sentence.attention_pass.output.weights
        source = [token.moved(sentence.span.start) for token in source]
        target = [_clipped(token.moved(target_span.start), target_span.end) for token in target]
        weights = after_prefix(weights, len(prefix)) if weights is not None else NO_WEIGHTS
        sentences.append(AlignedSentence(source, target, weights))
    return sentences


def _clipped(token: Token, end: int) -> Token:
    """Return a token that ends where its sentence does: a full stop may be left out."""
    return Token(token.token, min(token.start, end), min(token.end, end))


def _aligned_words(sentence: AlignedSentence, text: str, translated: str) -> AlignedWords:
    source, target = words_of(sentence.source, text), words_of(sentence.target, translated)
    weights = word_weights(sentence, source, target)
    return AlignedWords([word.span for word in source], [word.span for word in target], weights)


def _words_in_order(passage: PreparedPassage, translated: str, targets: list[Span]) -> list[AlignedWords]:
    sentences = []
    for sentence, target_span in zip(passage.sentences, targets, strict=True):
        source, target = (
            [word.moved(span.start).span for word in split_words(span.of(text))]
            for span, text in ((sentence.span, passage.protected.text), (target_span, translated))
        )
        weights = np.zeros((len(target), len(source)), np.float32)
        for t in range(len(target) if source else 0):
            weights[t, t * len(source) // len(target)] = 1
        sentences.append(AlignedWords(source, target, weights))
    return sentences


def _starts(passage: PreparedPassage, targets: list[Span], slots: Mapping[int, Span]) -> list[int]:
    """Return the starts of translated sentences, unless their sources begin with a small letter, and the places of
    placeholders outside sentences, if they begin with a capital."""
    protected, starts = passage.protected, []
    for sentence, target in zip(passage.sentences, targets, strict=True):
        source = protected.edits.before(sentence.span).of(protected.original)
        if not next(filter(str.isalpha, source), "").islower():
            starts.append(target.start)
    spans = [sentence.span for sentence in passage.sentences]
    for number, place in slots.items():
        placeholder = protected.placeholders[number]
        begins_upper = placeholder.span.of(protected.original)[:1].isupper()
        if begins_upper and len(set(overlapping(spans, placeholder.place))) == 1:
            starts.append(place.start)
    return sorted(starts)


def _slot_places(
    passage: PreparedPassage, targets: list[Span], moves: list[Edits], tokenizer: Tokenizer, rank: int
) -> dict[int, Span]:
    places: dict[int, Span] = {}
    for sentence, target, edits in zip(passage.sentences, targets, moves, strict=True):
        token_ids = sentence.hypothesis(rank).token_ids if sentence.slots else []
        written = [(number, slot) for number, slot in sentence.slots if slot.target_id in token_ids]
        tokens = tokenizer.target_tokens(token_ids, edits) if written else []
        places |= kept_places(sentence, target)
        for number, slot in written:
            places[number] = tokens[token_ids.index(slot.target_id)].moved(target.start).span
    spans, blanks = [sentence.span for sentence in passage.sentences], passage.protected.added_blanks
    for number, placeholder in enumerate(passage.protected.placeholders):
        first, last = overlapping(spans, placeholder.place)
        if placeholder.stand_in and first == last:  # the text between sentences is the same in both texts
            start, moved = (spans[first - 1].end, targets[first - 1].end) if first else (0, 0)
            n_left_out = bisect_left(blanks, placeholder.place.start) - bisect_left(blanks, start)
            places[number] = placeholder.place.moved(moved - start - n_left_out)
    return places


def _attention(
    sentences: list[Sentence], aligned: list[AlignedSentence], source: TextView, target: TextView, selection: Selection
) -> Attention:
    matrices, first_source, first_target = [], 0, 0
    for sentence, tokens in zip(sentences, aligned, strict=True):
        assert sentence.attention_pass is not None
        matrices += selection.matrices_of_sentence(sentence.attention_pass.output.matrices, first_source, first_target)
        first_source += len(tokens.source)
        first_target += len(tokens.target)
    return Attention.model_construct(
        source=[source.token(token) for tokens in aligned for token in tokens.source],
        target=[target.token(token) for tokens in aligned for token in tokens.target],
        prefix=[target.token(token) for tokens in aligned for token in prefix_of(tokens.target)],
        matrices=matrices,
    )
