"""Hard attention over the cross-attention: which source token, and which source word, a target was made of.

Legend: T target tokens, S source tokens, W words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, pre_tokenizers

from service.artifact import AlignmentChoice
from service.schemas import Alignment, Links, ShownToken
from service.sentences import Span
from service.tokens import Token

Weights = NDArray[np.float32]

_WORDS = pre_tokenizers.Split(
    Regex(
        r"[\p{Han}\p{Hiragana}\p{Katakana}]\p{M}*"  # one by one: these languages write no spaces
        r"|\p{L}[\p{L}\p{M}\p{N}]*(?:['’](?:\p{L}{1,2}(?!\p{L})|(?=\p{L})))?"  # noqa: RUF001 don't; l' of l'homme
        r"|\p{N}+(?:[.,]\p{N}+)*|[^\s\p{L}\p{N}]+"
    ),
    behavior="isolated",
)


@dataclass(frozen=True)
class AlignedSentence:
    """Tokens of a sentence and of its translation, with spans in the whole texts, and what aligns them."""

    source: list[Token]
    target: list[Token]
    weights: Weights
    """(T, S), each row sums to 1."""


def aligning(cross: Weights | None, choice: AlignmentChoice) -> Weights:
    """(T, S): of a sentence's cross-attention (layers, heads, T, S), what its model's manifest chooses."""
    if cross is None:
        return np.zeros((0, 0), np.float32)  # nobody asked for it
    weights: Weights = cross[choice.layer, list(choice.heads)].mean(axis=0)
    return np.concatenate([weights[1:], weights[-1:]]) if choice.next_row else weights


def words(text: str) -> list[Token]:
    """Words, numbers and runs of punctuation of a text, without what is between them."""
    pieces = _WORDS.pre_tokenize_str(text)
    return [Token(piece, start, end) for piece, (start, end) in pieces if not piece.isspace()]


@dataclass(frozen=True)
class View:
    """A text as the model has it, and as the user does, where the two differ by what the model is not shown."""

    text: str
    shown: str
    to_shown: Callable[[Span], Span]
    """Where a span of the one is in the other."""

    @classmethod
    def of(cls, text: str) -> "View":
        """A text that is shown as it is."""
        return cls(text, text, lambda span: span)

    def token(self, token: Token) -> ShownToken:
        """A token of the model."""
        span = self.to_shown(Span(token.start, token.end))
        return ShownToken.model_construct(token=token.token, span=span.pair)

    def word(self, word: Token) -> ShownToken:
        """A word, as the user has it."""
        span = self.to_shown(Span(word.start, word.end))
        return ShownToken.model_construct(token=span.of(self.shown), span=span.pair)


def aligned(sentences: list[AlignedSentence], source: View, target: View) -> Alignment:
    """Token and word links of a text that was translated sentence by sentence."""
    links: list[tuple[int, int]] = []
    first_source = first_target = 0
    for sentence in sentences:
        links += [(first_source + s, first_target + t) for s, t in _token_links(sentence)]
        first_source += len(sentence.source)
        first_target += len(sentence.target)
    source_tokens = [source.token(token) for sentence in sentences for token in sentence.source]
    target_tokens = [target.token(token) for sentence in sentences for token in sentence.target]
    source_words, target_words = words(source.text), words(target.text)
    weights = word_weights(sentences, source_words, target_words)
    word_links = [(int(row.argmax()), t) for t, row in enumerate(weights) if row.any() and row.max() > 1 - row.sum()]
    of_words = _links([*map(source.word, source_words)], [*map(target.word, target_words)], word_links)
    return Alignment(**_links(source_tokens, target_tokens, links).model_dump(), words=of_words)


def word_weights(sentences: list[AlignedSentence], source_words: list[Token], target_words: list[Token]) -> Weights:
    """(W target, W source): how much of each target word is attention to each source word; a row sums to 1 at most.

    A source word has what its tokens have together; a target word is the mean of its tokens.
    """
    weights = np.zeros((len(target_words), len(source_words)), np.float32)
    counts = np.zeros(len(target_words), np.int64)
    for sentence in sentences:
        source_at, target_at = _words_at(sentence.source, source_words), _words_at(sentence.target, target_words)
        for t, target_word in enumerate(target_at):
            if target_word is None:
                continue
            counts[target_word] += 1
            for s, source_word in enumerate(source_at):
                if source_word is not None:
                    weights[target_word, source_word] += sentence.weights[t, s]
    weights /= np.maximum(counts, 1)[:, None].astype(np.float32)
    return weights


def _words_at(tokens: Iterable[Token], of_text: list[Token]) -> list[int | None]:
    """The word that each token is in; None for white space and the end of sequence."""
    starts = [word.start for word in of_text]
    at: list[int | None] = []
    for token in tokens:
        i = int(np.searchsorted(starts, token.start, side="right")) - 1
        inside = i >= 0 and token.start < token.end and token.start < of_text[i].end
        at.append(i if inside else None)
    return at


def _token_links(sentence: AlignedSentence) -> list[tuple[int, int]]:
    """Source and target of each link; what attends most to the end of the source is made of nothing."""
    best = sentence.weights.argmax(axis=1).tolist()
    end = len(sentence.source) - 1
    return [(s, t) for t, s in enumerate(best) if s != end and sentence.target[t].start < sentence.target[t].end]


def _links(source: list[ShownToken], target: list[ShownToken], links: list[tuple[int, int]]) -> Links:
    pairs = " ".join(f"{s}-{t}" for s, t in links)
    return Links(source=source, target=target, pairs=pairs, spans=[(source[s].span, target[t].span) for s, t in links])
