"""What greedy and beam search share: a search's settings, its hypotheses, and when one ends."""

import math
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from operator import attrgetter, methodcaller
from typing import Any, Literal, NamedTuple

from service.base.contract import DecoderRows, FinishReason
from service.engine.scheduler import Sequence

Stop = Literal["empty", "no_better", "full", "full_no_better"]
"""When a search ends.

empty: each hypothesis that ends makes the beam narrower, and the search ends with an empty beam, as in Marian.
no_better: the same, but the search ends already when no live hypothesis is better, at its present length, than the
    n_best that have ended.
full: the beam keeps its width, and the search ends when beam_size hypotheses have ended, as in CTranslate2.
full_no_better: the same, but the search goes on while a live hypothesis is better, at its present length, than the
    worst of these, as in transformers.
"""


class TokenScores(NamedTuple):
    """How probable a chosen token was.

    Attributes:
        log_prob: log-probability of the token; 0 in a prefix.
        shortfalls: by how many nats each token of `Search.once_tokens` was less probable; infinite if it had been
            written before or was not among the `WATCHED_CANDIDATES` best, and in a prefix.
    """

    log_prob: float
    shortfalls: tuple[float, ...]


@dataclass(frozen=True)
class Hypothesis:
    """A target that has ended. `token_ids` has end of sequence if that was produced, `log_prob` is the sum of the
    tokens' log-probabilities, and `token_scores` has the scores of each token if the search is `scored` or has
    `once_tokens`."""

    token_ids: list[int]
    log_prob: float
    finish_reason: FinishReason
    token_scores: "SequenceOf[TokenScores]" = ()
    next_tokens: "SequenceOf[tuple[int, float]]" = ()
    """The most probable tokens behind the prefix with their log-probabilities, if the search has `n_next_tokens`."""

    def rank(self, length_penalty: float) -> tuple[bool, float]:
        """Return a key by which better hypotheses are larger: first those that ended by themselves, then by
        log-probability / length^penalty."""
        return self.finish_reason == "eos", self.log_prob / len(self.token_ids) ** length_penalty


_VALUES_OF_HYPOTHESIS = attrgetter("token_ids", "log_prob", "finish_reason", "token_scores", "next_tokens")


@dataclass
class Search:
    """The settings of one sequence's search, and its hypotheses that have ended."""

    max_target_tokens: int
    beam_size: int = 1
    length_penalty: float = 1.0
    n_best: int = 1
    beam_threshold: float = math.inf
    """By how many nats a live hypothesis may be less probable than the n_best-th one (threshold pruning; Freitag and
    Al-Onaizan 2017, "Beam Search Strategies for Neural Machine Translation")."""
    stop: Stop = "empty"
    prefix: tuple[int, ...] = ()
    """Tokens with which every hypothesis begins. Their probability does not count."""
    once_tokens: tuple[int, ...] = ()
    """Tokens that a hypothesis writes at most once each, and whose probabilities are recorded."""
    finished: list[Hypothesis] = field(default_factory=list)
    scored: bool = False
    """Whether the probability of each token is recorded, also without `once_tokens`."""
    may_end: bool = False
    """Whether end of sequence may follow the prefix immediately."""
    n_next_tokens: int = 0
    """How many of the most probable tokens behind the prefix are recorded; by greedy search alone."""

    def values(self) -> tuple[object, ...]:
        """Return what another process needs to make the same search: the best hypotheses only, and no objects of our
        classes. pickle finds each class by its name, which takes longer than all the rest."""
        settings = self.max_target_tokens, self.beam_size, self.length_penalty, self.n_best, self.beam_threshold
        best = [*map(_VALUES_OF_HYPOTHESIS, self.best())] if self.finished else ()
        rare = self.scored, self.may_end, self.n_next_tokens
        return *settings, self.stop, self.prefix, self.once_tokens, best, *(rare if any(rare) else ())

    @classmethod
    def of(cls, values: tuple[Any, ...]) -> "Search":
        """Return the search with these values."""
        search = cls(*values)
        search.finished = [Hypothesis(*of_hypothesis) for of_hypothesis in values[8]]
        return search

    def best(self) -> list[Hypothesis]:
        """Return the n_best hypotheses, best first."""
        rank = methodcaller("rank", self.length_penalty)
        return sorted(self.finished, key=rank, reverse=True)[: self.n_best]

    @property
    def has_fixed_width(self) -> bool:
        """Whether the beam keeps its width when a hypothesis ends."""
        return self.stop in ("full", "full_no_better") and self.beam_size > 1

    def rank_to_beat(self) -> float:
        """Return the rank that the best live hypothesis must exceed, or the search ends."""
        if self.stop == "empty":
            return -math.inf
        ranks = sorted((h.rank(self.length_penalty) for h in self.finished if h.finish_reason == "eos"), reverse=True)
        enough = self.n_best if self.stop == "no_better" else self.beam_size
        if len(ranks) < enough:
            return -math.inf
        return math.inf if self.stop == "full" else ranks[enough - 1][1]


WATCHED_CANDIDATES = 16
"""Number of candidates of each row if a search has `once_tokens`."""


def try_out(decoder: DecoderRows, bos: int, eos: int, k: int) -> None:
    """Run one forward pass of a source and a step. Raises FloatingPointError: its results are not numbers."""
    decoder.enter(0, decoder.encode([[eos]]))
    _, log_probs = decoder.step([bos], [0], length=1, k=k)
    if math.isnan(log_probs.sum()):
        decoder.clean()
        raise no_numbers()


def encode_sources(decoder: DecoderRows, sequences: list[Sequence[Search]]) -> None:
    """Encode the sources of sequences, whose state they become until they enter."""
    sources = decoder.encode([sequence.source_ids for sequence in sequences])
    for sequence, source in zip(sequences, sources, strict=True):
        sequence.state = source


def score_token(
    once: SequenceOf[int],
    candidates: SequenceOf[int],
    log_probs: SequenceOf[float],
    chosen: float,
    is_written: Callable[[int], bool],
) -> TokenScores:
    """Score a chosen token.

    Args:
        once: `Search.once_tokens`.
        candidates, log_probs: the candidates of one row and their log-probabilities, best first.
        chosen: log-probability of the chosen token.
        is_written: tells whether the hypothesis has a token.
    """
    known = dict(zip(candidates, log_probs, strict=False))
    missed = [math.inf if token not in known or is_written(token) else chosen - known[token] for token in once]
    return TokenScores(chosen, tuple(missed))


def prefix_scores(once: SequenceOf[int]) -> TokenScores:
    """Return the scores of a token of a prefix."""
    return TokenScores(0.0, (math.inf,) * len(once))


def no_numbers() -> FloatingPointError:
    return FloatingPointError("the decoder's log-probabilities are not numbers")


def fail_without_numbers(decoder: DecoderRows, sequences: SequenceOf[Sequence[Search]]) -> None:
    """Sequences fail whose log-probabilities are not numbers. Others of the same pass go on: nothing of theirs depends
    on it, once the caches have numbers only."""
    for sequence in sequences:
        sequence.finished, sequence.failure = True, no_numbers()
    decoder.clean()


REPETITION_INTERVAL = 8
"""Targets are checked for runaway repetition every so many tokens; a check at every step would take too long."""
MIN_RUNAWAY_TOKENS = 24


def reason_of(token_ids: list[int], eos: int, max_target_tokens: int) -> FinishReason:
    if token_ids[-1] == eos:
        return "eos"
    return "length" if len(token_ids) >= max_target_tokens else "repetition"


def is_runaway(token_ids: list[int], n_source: int) -> bool:
    """Whether a target repeats itself endlessly: its last tokens, as many as the source has and at least 24, are 4 or
    more equal pieces. A source that repeats itself may have such a target, as long as itself."""
    n = max(MIN_RUNAWAY_TOKENS, n_source)
    if len(token_ids) < n:
        return False
    tail = token_ids[-n:]
    return any(tail[period:] == tail[:-period] for period in range(1, n // 4 + 1))
