"""How sure a model is of a translation: of each word that it wrote, and of the whole."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from manifest.schema import Confidence
from service.kept.restoration import Restored
from service.markup.draft import OPAQUE
from service.markup.passages import ParsedText
from service.schemas.answers import Translation, WordConfidence
from service.tasks.translation.alignment import words_of
from service.tasks.translation.reading import PreparedPassage, PreparedText, Sentence
from service.text.spans import Edits, Span
from service.text.tokenization import Tokenizer

LogProbs = list[tuple[Span, float]]
"""Spans of a translation, in order, and the log-probability of each."""


@dataclass(frozen=True)
class Sureness:
    """Adds to answers how sure a model is of them. A model without a calibration tells it of words alone."""

    calibration: Confidence | None

    def show(
        self,
        translation: Translation,
        prepared: PreparedText,
        restored: SequenceOf[Restored],
        words: SequenceOf[LogProbs],
    ) -> None:
        """Add the words of each passage and the confidence of the whole text."""
        translation.words = [*_shown_words(prepared.parsed, restored, words)]
        if self.calibration is not None:
            translation.confidence = confidence_of(prepared.sentences, self.calibration)


def confidence_of(sentences: Iterable[Sentence], calibration: Confidence) -> float:
    """Return the confidence of the least sure sentence. A sentence that did not end by itself has 0, and a text without
    sentences, which stays as it is, has 1."""
    hypotheses = [sentence.hypothesis() for sentence in sentences]
    return min(
        (calibration.of(h.log_prob / len(h.token_ids)) if h.finish_reason == "eos" else 0.0 for h in hypotheses),
        default=1.0,
    )


def words_of_passage(
    passage: PreparedPassage,
    written: str,
    targets: SequenceOf[Span],
    moves: SequenceOf[Edits],
    restored: Restored,
    tokenizer: Tokenizer,
) -> LogProbs:
    """Return the words of a passage's translation that the model wrote, as spans of the restored text. A kept span is
    one word.

    Args:
        written: the model's translation, with stand-ins in place of kept spans.
        targets: the spans of its sentences in `written`.
        moves: what was taken out of the translation of each sentence.
    """
    words: LogProbs = []
    for sentence, target, edits in zip(passage.sentences, targets, moves, strict=True):
        for word, log_prob in _words_of_sentence(sentence, target, edits, written, tokenizer):
            span = restored.edits.after(word)
            if words and span.start < words[-1][0].end:
                before, log_prob_before = words.pop()
                span, log_prob = Span(before.start, max(before.end, span.end)), log_prob_before + log_prob
            words.append((span, log_prob))
    return words


def _words_of_sentence(sentence: Sentence, target: Span, edits: Edits, written: str, tokenizer: Tokenizer) -> LogProbs:
    """Return the words of a sentence. Each token counts in one of them: the end of sequence in the last one."""
    hypothesis = sentence.hypothesis()
    tokens = [token.moved(target.start) for token in tokenizer.target_tokens(hypothesis.token_ids, edits)]
    tokens = [token._replace(start=min(token.start, target.end), end=min(token.end, target.end)) for token in tokens]
    words = words_of(tokens, written)
    starts, sums = [word.start for word in words], [0.0] * len(words)
    for token, scores in zip(tokens if words else (), hypothesis.token_scores, strict=bool(words)):
        sums[max(0, bisect_right(starts, token.start) - 1)] += scores.log_prob
    return [(word.span, log_prob) for word, log_prob in zip(words, sums, strict=True)]


def _shown_words(
    parsed: ParsedText, translations: SequenceOf[Restored], words: Iterable[LogProbs]
) -> Iterator[WordConfidence]:
    """Yield the words of all passages with their places in the rendered text. Values of attributes have no places, and
    so no words; neither have elements that stay whole."""
    for places, restored, of_passage in zip(parsed.places(translations), translations, words, strict=True):
        for span, log_prob in of_passage if places else ():
            text = span.of(restored.text)
            if text and OPAQUE not in text:
                place = places[span.start].start, places[span.end - 1].end
                yield WordConfidence.model_construct(text=text, span=place, probability=math.exp(log_prob))
