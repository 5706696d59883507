"""Find mistakes in the translation of a passage, except lost numbers, which verification.py finds and mends."""

import re
from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf

from service.numbers.verified_spans import narrow
from service.schemas.answers import Check, CheckKind
from service.tasks.translation.reading import PreparedPassage, Sentence
from service.text.spans import Span

_MARKS: dict[CheckKind, str] = {"brackets": "()[]{}", "quotes": '"'}
_QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』", '"'))
"""Languages have quotation marks of their own."""
MAX_PERIOD, MIN_TIMES = 8, 3
"""Up to `MAX_PERIOD` tokens that come `MIN_TIMES` times, one after the other, are repeated."""
MIN_REPEATED = 6


def checks_of(
    passage: PreparedPassage, written: str, targets: SequenceOf[Span], is_name: Callable[[str], bool] = lambda _: False
) -> Iterator[Check]:
    """Yield losses and apparent mistakes in the translation of a passage.

    Args:
        written: the translation, with stand-ins in place of kept spans.
        targets: the spans of its sentences in `written`.
        is_name: returns whether a word is a name, which is the same in the translation.
    """
    yield from passage.checks
    protected = passage.protected
    for sentence, target in zip(passage.sentences, targets, strict=True):
        source = protected.edits.before(sentence.span).of(protected.original)
        for kind in _wrong_in(sentence, sentence.span.of(protected.text), target.of(written), is_name):
            yield Check(kind=kind, source=source, mended=False)
        for number in _lost_placeholders(passage, sentence):
            yield Check(kind="kept", source=protected.placeholders[number].span.of(protected.original), mended=True)


def _wrong_in(sentence: Sentence, source: str, target: str, is_name: Callable[[str], bool]) -> Iterator[CheckKind]:
    shown = [narrow(text).translate(_QUOTES) for text in (source, target)]
    for kind, marks in _MARKS.items():
        if any(shown[0].count(mark) != shown[1].count(mark) for mark in marks):
            yield kind
    token_ids, reason = sentence.hypothesis().token_ids, sentence.hypothesis().finish_reason
    if reason == "length":
        yield "end"
    if reason == "repetition" or (_repeats(token_ids) and not _repeats(sentence.sequence.source_ids)):
        yield "repetition"
    words = re.findall(r"[^\W\d_]+", source)
    may_differ = words and (len(words) > 1 or not is_name(words[0]))
    if may_differ and shown[0].casefold().strip() == shown[1].casefold().strip():
        yield "untranslated"


def _lost_placeholders(passage: PreparedPassage, sentence: Sentence) -> Iterator[int]:
    token_ids = sentence.hypothesis().token_ids
    written = {number for number, slot in sentence.slots if slot.target_id in token_ids}
    placeholders = passage.protected.placeholders
    for number in passage.protected.numbers_in(sentence.span):
        if placeholders[number].stand_in and number not in written:
            yield number


def _repeats(token_ids: SequenceOf[int]) -> bool:
    for period in range(1, MAX_PERIOD + 1):
        n = 0
        for token, before in zip(token_ids[period:], token_ids, strict=False):
            n = n + 1 if token == before else 0
            if n >= max(MIN_REPEATED, period * MIN_TIMES) - period:
                return True
    return False
