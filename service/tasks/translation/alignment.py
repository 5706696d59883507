"""Alignment from cross-attention: links each target token and word to the source token and word that it translates.

Legend: T target tokens, S source tokens, W words.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, pre_tokenizers

from service.schemas.answers import Alignment, Links, ShownToken
from service.text.spans import Edits, Span, chain_edits
from service.text.tokens import Token

Weights = NDArray[np.float32]
Show = Callable[[Token], ShownToken]
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_LETTER = rf"[\p{{L}}&&[^{_UNSPACED}]]"
_IN_WORD = rf"{_LETTER}(?:{_LETTER}|[\p{{M}}\p{{N}}])*"
_ELIDED = "[b-df-hj-np-tv-xz]|(?:jus|lors|puis|quoi)?qu|(?:[ac]|[dn]e|da|su|be|que)?ll|un|gl|ch|dov|com|cos|anch|quest"
"""Short words of French and Italian that lose their last letter before a vowel: only their apostrophes part words."""
_WORDS = pre_tokenizers.Split(
    Regex(
        r"[\p{Katakana}ー]+\p{M}*|[\p{Han}\p{Hiragana}]\p{M}*"  # kanji and hiragana singly, as Japanese has no spaces
        rf"|(?i:{_ELIDED})['’](?={_LETTER})(?!(?i:[tsmd]|re|ve|ll)(?!{_LETTER}))"  # noqa: RUF001
        rf"|{_IN_WORD}(?:['’]{_IN_WORD})*"  # noqa: RUF001
        r"|\p{N}+(?:[.,]\p{N}+)*|[^\s\p{L}\p{N}]+"
    ),
    behavior="isolated",
)


@dataclass(frozen=True)
class AlignedSentence:
    """The tokens of a sentence and of its translation, with spans in the whole texts, and the weights between them."""

    source: list[Token]
    target: list[Token]
    weights: Weights
    """(T, S); each row sums to 1."""

    def moved(self, source: int, target: int) -> "AlignedSentence":
        """Return the sentence with all spans moved by a number of characters."""
        sources = [token.moved(source) for token in self.source]
        return AlignedSentence(sources, [token.moved(target) for token in self.target], self.weights)


def after_prefix(weights: Weights, n_prefix: int) -> Weights:
    """Return the weights (T, S) without attention to the first `n_prefix` source tokens, which name a language and have
    no translation. Each row still sums to 1."""
    if not n_prefix:
        return weights
    rest = weights.copy()
    rest[:, :n_prefix] = 0
    total: Weights = rest.sum(axis=1, keepdims=True)
    return np.divide(rest, total, out=rest, where=total > 0)


def split_words(text: str) -> list[Token]:
    """Return the words, numbers and runs of punctuation of a text, without the space between them."""
    pieces = _WORDS.pre_tokenize_str(text)
    return [Token(piece, start, end) for piece, (start, end) in pieces if not piece.isspace()]


@dataclass(frozen=True)
class TextView:
    """A text as the model and as the user have it. They differ where the model reads a placeholder.

    Args:
        text: the model's text.
        kept: the edits that put kept spans back.
        bare: the result, without marks.
        shown: the user's text.
        marks: the edits that insert the marks.
    """

    text: str
    kept: Edits
    bare: str
    shown: str
    marks: Edits

    @classmethod
    def joined(cls, views: Sequence["TextView"]) -> "TextView":
        """Return the view of a whole text from the views of its pieces."""
        return cls(
            "".join([view.text for view in views]),
            chain_edits((view.kept, len(view.text), len(view.bare)) for view in views),
            "".join([view.bare for view in views]),
            "".join([view.shown for view in views]),
            chain_edits((view.marks, len(view.bare), len(view.shown)) for view in views),
        )

    def to_shown(self, span: Span) -> Span:
        """Return the place in the user's text of a span of the model's text."""
        return self.marks.after(self.kept.after(span))

    def token(self, token: Token) -> ShownToken:
        """Return a token of the model, with its place in the user's text."""
        span = self.to_shown(token.span)
        return ShownToken.model_construct(token=token.token, span=span.pair)

    def word(self, word: Token) -> ShownToken:
        """Return a word as it is in the user's text."""
        span = self.to_shown(word.span)
        return ShownToken.model_construct(token=span.of(self.shown), span=span.pair)


def align(sentences: list[AlignedSentence], source: TextView, target: TextView) -> Alignment:
    """Return the token and word links of a text that was translated sentence by sentence."""
    by_tokens, by_words = [], []
    for sentence in sentences:
        source_words, target_words = words_of(sentence.source, source.text), words_of(sentence.target, target.text)
        weights = word_weights(sentence, source_words, target_words)
        by_tokens.append((sentence.source, sentence.target, _token_links(sentence)))
        by_words.append((source_words, target_words, _word_links(weights)))
    words = _join_links(by_words, source.word, target.word)
    return Alignment.model_construct(**dict(_join_links(by_tokens, source.token, target.token)), words=words)


def _join_links(
    sentences: list[tuple[list[Token], list[Token], list[tuple[int, int]]]], show_source: Show, show_target: Show
) -> Links:
    sources: list[ShownToken] = []
    targets: list[ShownToken] = []
    links: list[tuple[int, int]] = []
    for source, target, links_of_sentence in sentences:
        links += [(len(sources) + s, len(targets) + t) for s, t in links_of_sentence]
        sources += map(show_source, source)
        targets += map(show_target, target)
    return _links(sources, targets, links)


def _links(sources: list[ShownToken], targets: list[ShownToken], links: list[tuple[int, int]]) -> Links:
    pairs = " ".join([f"{s}-{t}" for s, t in links])
    spans = [(sources[s].span, targets[t].span) for s, t in links]
    return Links(source=sources, target=targets, pairs=pairs, spans=spans)


def compose(first: Alignment, second: Alignment) -> Alignment:
    """Return the alignment from the source of the first translation to the target of the second translation."""
    words = _compose_links(first.words, second.words)
    return Alignment.model_construct(**dict(_compose_links(first, second)), words=words)


def _compose_links(first: Links, second: Links) -> Links:
    """Join links that meet in the text in between, which both sides may split into different tokens."""
    sources: dict[int, list[int]] = {}
    for s, middle in _numbers(first):
        sources.setdefault(middle, []).append(s)
    meeting = ((_overlapping(first.target, second.source[middle]), t) for middle, t in _numbers(second))
    links = {(s, t) for others, t in meeting for other in others for s in sources.get(other, [])}
    return _links(first.source, second.target, sorted(links, key=lambda link: (link[1], link[0])))


def _numbers(links: Links) -> list[tuple[int, int]]:
    return [(int(s), int(t)) for s, _, t in (pair.partition("-") for pair in links.pairs.split())]


def _overlapping(tokens: list[ShownToken], token: ShownToken) -> range:
    start, end = token.span
    first = bisect_left(tokens, start + 1, key=lambda other: other.span[1])
    last = bisect_left(tokens, end, key=lambda other: other.span[0])
    return range(first, max(first, last))


def words_of(tokens: list[Token], text: str) -> list[Token]:
    """Return the words of a sentence, whose tokens have spans in the text. In scripts without spaces every letter is a
    word, except that letters of one token are one word."""
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
    """Return how much each target word attends to each source word, (W target, W source); rows sum to at most 1. A
    source word has the sum of its tokens, a target word the mean."""
    in_source, in_target = _membership(sentence.source, source_words), _membership(sentence.target, target_words)
    counts = np.maximum(in_target.sum(axis=0), np.float32(1))
    weights: Weights = in_target.T @ sentence.weights @ in_source / counts[:, None]
    return weights


def _word_links(weights: Weights) -> list[tuple[int, int]]:
    """A word that attends most to the end of the source has no link."""
    return [(int(row.argmax()), t) for t, row in enumerate(weights) if row.any() and row.max() > 1 - row.sum()]


def _membership(tokens: list[Token], words: list[Token]) -> Weights:
    """Return (tokens, words), 1 where a token is in a word. White space and the end of sequence are in no word."""
    starts = [word.start for word in words]
    members = np.zeros((len(tokens), len(words)), np.float32)
    for t, token in enumerate(tokens):
        word = int(np.searchsorted(starts, token.start, side="right")) - 1
        if word >= 0 and token.start < token.end and token.start < words[word].end:
            members[t, word] = 1
    return members


def _token_links(sentence: AlignedSentence) -> list[tuple[int, int]]:
    """A token that attends most to the end of the source has no link."""
    best = sentence.weights.argmax(axis=1).tolist()
    links = [(s, t, sentence.source[s], sentence.target[t]) for t, s in enumerate(best)]
    return [(s, t) for s, t, source, target in links if source.start < source.end and target.start < target.end]
