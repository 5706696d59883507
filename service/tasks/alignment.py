"""Alignment, read from cross-attention: which source token and word each target token and word was made of.

Legend: T target tokens, S source tokens, W words.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, pre_tokenizers

from service.base.artifact import AlignmentChoice
from service.schemas.answers import Alignment, Links, ShownToken
from service.text.spans import Span
from service.text.tokens import Token

Weights = NDArray[np.float32]

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_LETTER = rf"[\p{{L}}&&[^{_UNSPACED}]]"
_IN_WORD = rf"{_LETTER}(?:{_LETTER}|[\p{{M}}\p{{N}}])*"
_ELIDED = "[b-df-hj-np-tv-xz]|(?:jus|lors|puis|quoi)?qu|(?:[ac]|[dn]e|da|su|be|que)?ll|un|gl|ch|dov|com|cos|anch|quest"
"""Short words of French and Italian that lose their last letter before a vowel; in other words an apostrophe parts
nothing."""
_WORDS = pre_tokenizers.Split(
    Regex(
        r"[\p{Katakana}ー]+\p{M}*|[\p{Han}\p{Hiragana}]\p{M}*"  # kanji and hiragana one by one: no spaces are written
        rf"|(?i:{_ELIDED})['’](?={_LETTER})(?!(?i:[tsmd]|re|ve|ll)(?!{_LETTER}))"  # noqa: RUF001
        rf"|{_IN_WORD}(?:['’]{_IN_WORD})*"  # noqa: RUF001
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

    def moved(self, source: int, target: int) -> "AlignedSentence":
        """The same in texts that have so many more characters before it."""
        return AlignedSentence(
            [token.moved(source) for token in self.source], [token.moved(target) for token in self.target], self.weights
        )


def aligning(cross: Weights, choice: AlignmentChoice) -> Weights:
    """(T, S): of a sentence's cross-attention (layers, heads, T, S), what its model's manifest chooses."""
    weights: Weights = cross[choice.layer, list(choice.heads)].mean(axis=0)
    return np.concatenate([weights[1:], weights[-1:]]) if choice.next_row else weights


def after_prefix(weights: Weights, n_prefix: int) -> Weights:
    """(T, S): without attention to the first tokens of the source, which name a language and are translated to nothing.
    Each row still sums to 1."""
    if not n_prefix:
        return weights
    rest = weights.copy()
    rest[:, :n_prefix] = 0
    total: Weights = rest.sum(axis=1, keepdims=True)
    return np.divide(rest, total, out=rest, where=total > 0)


def split_words(text: str) -> list[Token]:
    """Words, numbers and runs of punctuation of a text, without what is between them."""
    pieces = _WORDS.pre_tokenize_str(text)
    return [Token(piece, start, end) for piece, (start, end) in pieces if not piece.isspace()]


@dataclass(frozen=True)
class View:
    """A text as the model has it, and as the user has it: they differ where something stands for something else."""

    text: str
    shown: str
    to_shown: Callable[[Span], Span]
    """Where a span of the model's text is in the user's."""

    def token(self, token: Token) -> ShownToken:
        """A token of the model."""
        span = self.to_shown(token.span)
        return ShownToken.model_construct(token=token.token, span=span.pair)

    def word(self, word: Token) -> ShownToken:
        """A word, as the user has it."""
        span = self.to_shown(word.span)
        return ShownToken.model_construct(token=span.of(self.shown), span=span.pair)


def aligned(sentences: list[AlignedSentence], source: View, target: View) -> Alignment:
    """Token and word links of a text that was translated sentence by sentence."""
    by_tokens, by_words = [], []
    for sentence in sentences:
        source_words, target_words = words_of(sentence.source, source.text), words_of(sentence.target, target.text)
        weights = word_weights(sentence, source_words, target_words)
        by_tokens.append((sentence.source, sentence.target, _token_links(sentence)))
        by_words.append((source_words, target_words, _word_links(weights)))
    words = _joined(by_words, source.word, target.word)
    return Alignment.model_construct(**dict(_joined(by_tokens, source.token, target.token)), words=words)


def _joined(
    sentences: list[tuple[list[Token], list[Token], list[tuple[int, int]]]],
    show_source: Callable[[Token], ShownToken],
    show_target: Callable[[Token], ShownToken],
) -> Links:
    """The links of all sentences of a text; tokens are numbered through the whole text."""
    sources: list[ShownToken] = []
    targets: list[ShownToken] = []
    links: list[tuple[int, int]] = []
    for source, target, own in sentences:
        links += [(len(sources) + s, len(targets) + t) for s, t in own]
        sources += map(show_source, source)
        targets += map(show_target, target)
    return _links(sources, targets, links)


def _links(sources: list[ShownToken], targets: list[ShownToken], links: list[tuple[int, int]]) -> Links:
    pairs = " ".join([f"{s}-{t}" for s, t in links])
    return Links(
        source=sources, target=targets, pairs=pairs, spans=[(sources[s].span, targets[t].span) for s, t in links]
    )


def composed(first: Alignment, second: Alignment) -> Alignment:
    """That of a translation's translation: from the first one's source to the second one's target."""
    words = _composed(first.words, second.words)
    return Alignment.model_construct(**dict(_composed(first, second)), words=words)


def _composed(first: Links, second: Links) -> Links:
    """Wherever links meet in the text between them, which the two may cut into other tokens."""
    sources: dict[int, list[int]] = {}
    for s, middle in _numbers(first):
        sources.setdefault(middle, []).append(s)
    found = {
        (s, t)
        for middle, t in _numbers(second)
        for other in _overlapping(first.target, second.source[middle])
        for s in sources.get(other, [])
    }
    return _links(first.source, second.target, sorted(found, key=lambda link: (link[1], link[0])))


def _numbers(links: Links) -> list[tuple[int, int]]:
    return [(int(s), int(t)) for s, _, t in (pair.partition("-") for pair in links.pairs.split())]


def _overlapping(tokens: list[ShownToken], token: ShownToken) -> range:
    """Numbers of the tokens, which are in order, that have a character of another one."""
    start, end = token.span
    first = bisect_left(tokens, start + 1, key=lambda one: one.span[1])
    last = bisect_left(tokens, end, key=lambda one: one.span[0])
    return range(first, max(first, last))


def words_of(tokens: list[Token], text: str) -> list[Token]:
    """The words of a sentence that has these tokens of a text.

    Where a script has no spaces, every letter is a word, and letters that share a token are one word.
    """
    start, end = tokens[0].start, tokens[-1].end
    inside = {position for token in tokens for position in range(token.start + 1, token.end)}
    whole: list[Token] = []
    for word in (word.moved(start) for word in split_words(text[start:end])):
        if whole and word.start == whole[-1].end and word.start in inside:
            first = whole.pop()
            word = Token(first.token + word.token, first.start, word.end)
        whole.append(word)
    return whole


def word_weights(sentence: AlignedSentence, source_words: list[Token], target_words: list[Token]) -> Weights:
    """(W target, W source): how much of each target word is attention to each source word; a row sums to 1 at most.

    A source word has what its tokens have together; a target word is the mean of its tokens.
    """
    in_source, in_target = _membership(sentence.source, source_words), _membership(sentence.target, target_words)
    counts = np.maximum(in_target.sum(axis=0), np.float32(1))
    weights: Weights = in_target.T @ sentence.weights @ in_source / counts[:, None]
    return weights


def _word_links(weights: Weights) -> list[tuple[int, int]]:
    """Source and target of each link. A word that attends most to the end of the source has none."""
    return [(int(row.argmax()), t) for t, row in enumerate(weights) if row.any() and row.max() > 1 - row.sum()]


def _membership(tokens: list[Token], of_text: list[Token]) -> Weights:
    """(tokens, words), 1 where a token is in a word: white space and the end of sequence are in none."""
    starts = [word.start for word in of_text]
    members = np.zeros((len(tokens), len(of_text)), np.float32)
    for t, token in enumerate(tokens):
        word = int(np.searchsorted(starts, token.start, side="right")) - 1
        if word >= 0 and token.start < token.end and token.start < of_text[word].end:
            members[t, word] = 1
    return members


def _token_links(sentence: AlignedSentence) -> list[tuple[int, int]]:
    """Source and target of each link. A token that attends most to the end of the source has none."""
    best = sentence.weights.argmax(axis=1).tolist()
    links = [(s, t, sentence.source[s], sentence.target[t]) for t, s in enumerate(best)]
    return [(s, t) for s, t, source, target in links if source.start < source.end and target.start < target.end]
