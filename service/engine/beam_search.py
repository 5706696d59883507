"""Beam search inside continuous batching: every sequence has its own beam, and all share the decoder's steps.

Each live hypothesis is one decoder row. At every step the most probable continuations of a sequence's rows live on. One
that ends leaves the beam, which is narrower from then on. One that is much less probable than the best is dropped: the
cost of a step is its number of rows. With a beam of one this is greedy search. A sequence gets the result of
`beam_search` in model/decoding/search.py, whatever other sequences share its steps.

Legend: N sequences, W most live hypotheses of a sequence, R rows, k candidates of a row.
"""

import math
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Literal, NamedTuple

from service.base.contract import BeamLayout, DecoderRows, FinishReason, Ints
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

Target = tuple[int, "Target | None"]
"""A target as a linked list: its last token, and the target before it, which several hypotheses may share. The first
token is beginning of sequence."""


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
    """A target that has ended.

    Attributes:
        token_ids: its tokens, with end of sequence if that was produced.
        log_prob: sum of the tokens' log-probabilities.
        token_scores: the scores of each token, if the search has `once_tokens`.
    """

    token_ids: list[int]
    log_prob: float
    finish_reason: FinishReason
    token_scores: "SequenceOf[TokenScores]" = ()

    def rank(self, length_penalty: float) -> tuple[bool, float]:
        """Return a key by which better hypotheses are larger: first those that ended by themselves, then by
        log-probability / length^penalty."""
        return self.finish_reason == "eos", self.log_prob / len(self.token_ids) ** length_penalty


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

    def __reduce__(self) -> tuple[type["Search"], tuple[object, ...]]:
        """Send another process the best hypotheses only, and values without the names of their fields."""
        settings = self.max_target_tokens, self.beam_size, self.length_penalty, self.n_best, self.beam_threshold
        return Search, (*settings, self.stop, self.prefix, self.once_tokens, self.best())

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

LiveHypothesis = tuple[float, int, Target]
"""The sum of a hypothesis's log-probabilities, its row, and its target."""

NO_ROW = -1
"""The row of a hypothesis that has just begun."""


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


class BeamSearch:
    """The `Computation` of sequences with beams: running[i] is in place i.

    The work around a step is plain Python over short lists. In numpy it took 1.6 to 3.5 times as long, because a call
    on arrays of this size costs as much as a whole hypothesis does here.

    Args:
        rows: the decoder, with a row for each hypothesis that runs.
    """

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos

    def warm_up(self) -> None:
        try_out(self._decoder, self._bos, self._eos, k=1)

    def encode(self, sequences: list[Sequence[Search]]) -> None:
        encode_sources(self._decoder, sequences)

    def enter(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._decoder.enter(first_place, [sequence.state for sequence in sequences])
        for sequence in sequences:
            sequence.state = Beam(sequence, self._bos)

    def step(self, running: list[Sequence[Search]]) -> int:
        beams: list[Beam] = [sequence.state for sequence in running]
        R = self._assign_rows(beams)
        W = max([len(beam.live) for beam in beams])
        token_ids, positions, places = [0] * R, [0] * R, [0] * R
        rows_of_sources = []
        for place, beam in enumerate(beams):
            rows = [row for _, row, _ in beam.live]
            rows_of_sources.append(rows + rows[:1] * (W - len(rows)))
            for column, (_, row, target) in enumerate(beam.live, place * W):
                token_ids[row], positions[row], places[row] = target[0], beam.length, column
        k = max([beam.n_candidates for beam in beams])
        length = max([beam.length for beam in beams]) + 1
        found = self._decoder.step(token_ids, positions, length, k, BeamLayout(rows_of_sources, places))
        best, log_probs = found[0].tolist(), found[1].tolist()
        if math.isnan(sum([row[0] for row in log_probs])):
            fail_without_numbers(self._decoder, [one for one in running if one.state.lacks_numbers(log_probs)])
        for sequence, beam in zip(running, beams, strict=True):
            sequence.finished = sequence.finished or beam.advance(best, log_probs, self._eos)
        return R

    def move(self, source_place: int, target_place: int, _sequence: Sequence[Search]) -> None:
        self._decoder.move(source_place, target_place)

    def _assign_rows(self, beams: "list[Beam]") -> int:
        """Give live hypotheses the rows from 0 on without gaps; most keep the row of their parent. Return the number of
        rows."""
        n = sum([len(beam.live) for beam in beams])
        free = [True] * n
        moving = []
        for beam in beams:
            for i, (_, row, _) in enumerate(beam.live):
                if 0 <= row < n and free[row]:
                    free[row] = False
                else:
                    moving.append((beam, i))
        if not moving:
            return n
        moves = list(zip(moving, [row for row in range(n) if free[row]], strict=True))
        written = [(beam.live[i][1], row, beam.length) for (beam, i), row in moves if beam.length > 0]
        if written:
            sources, targets, lengths = zip(*written, strict=True)
            self._decoder.copy(list(sources), list(targets), max(lengths))
        for (beam, i), row in moves:  # after the copy: if that fails, nothing has moved
            log_prob, _, target = beam.live[i]
            beam.live[i] = log_prob, row, target
        return n


class Beam:
    """The live hypotheses of one sequence.

    Attributes:
        width: most live hypotheses.
        length: number of tokens of each.
        live: the live hypotheses, best first.
    """

    def __init__(self, sequence: Sequence[Search], bos: int) -> None:
        self._search = sequence.output
        self._n_source = len(sequence.source_ids)
        self._rank_to_beat = -math.inf
        self.width = self._search.beam_size
        self.length = 0
        self.live: list[LiveHypothesis] = [(0.0, NO_ROW, (bos, None))]
        self._scores: dict[int, TokenScores] = {}
        """The scores of the last token of each target, by the target's id()."""

    @property
    def n_candidates(self) -> int:
        """The number of candidates that each row needs: one may be end of sequence, and others may be forbidden."""
        enough = self.width + (self._search.has_fixed_width or self.length == len(self._search.prefix))
        return max(WATCHED_CANDIDATES, enough + len(self._search.once_tokens)) if self._search.once_tokens else enough

    def lacks_numbers(self, log_probs: list[list[float]]) -> bool:
        """Whether a live hypothesis has log-probabilities (R, k) that are not numbers."""
        return any(math.isnan(log_probs[row][0]) for _, row, _ in self.live)

    def advance(self, token_ids: list[Ints], log_probs: list[list[float]], eos: int) -> bool:
        """Continue the live hypotheses with the best of the candidates (R, k). Return True if the search has ended.

        The new hypotheses have the rows of their parents, so that several may have the same row.
        """
        if self.length < len(self._search.prefix):
            [(total, row, target)] = self.live
            self.live = [(total, row, (self._search.prefix[self.length], target))]
            self.length += 1
            return False
        k = min(self.n_candidates, len(log_probs[self.live[0][1]]))  # other sequences may need more
        totals = [total + log_prob for total, row, _ in self.live for log_prob in log_probs[row][:k]]
        if self.length == len(self._search.prefix):  # a translation is never empty
            candidates = token_ids[self.live[0][1]][:k]
            totals = [-math.inf if token == eos else total for token, total in zip(candidates, totals, strict=True)]
        if self._search.once_tokens:
            self._bar_written(totals, token_ids, k)
        has_fixed_width = self._search.has_fixed_width
        n = 2 * self.width if has_fixed_width else self.width  # half of them may end
        best = sorted(range(len(totals)), key=totals.__getitem__, reverse=True)[:n]
        least = totals[best[: self._search.n_best][-1]] - self._search.beam_threshold
        self.length += 1
        at_limit = self.length >= self._search.max_target_tokens
        check_repetition = self.length >= MIN_RUNAWAY_TOKENS and self.length % REPETITION_INTERVAL == 0
        living: list[LiveHypothesis] = []
        n_going_on = 0
        for rank, i in enumerate(best):
            if totals[i] < least or (has_fixed_width and (n_going_on == self.width or totals[i] == -math.inf)):
                break
            _, row, target = self.live[i // k]
            token = token_ids[row][i % k]
            if has_fixed_width:
                if token == eos and rank >= self.width:
                    continue
                n_going_on += token != eos
            longer = token, target
            if self._search.once_tokens:
                self._watch(longer, token_ids[row][:k], log_probs[row], log_probs[row][i % k])
            if token == eos or at_limit or (check_repetition and is_runaway(tokens_of(longer), self._n_source)):
                self._end(longer, totals[i], eos)
            else:
                living.append((totals[i], row, longer))
        if living and living[0][0] / self.length**self._search.length_penalty > self._rank_to_beat:
            self.live = living
            return False
        self.live = []
        return True

    def _bar_written(self, totals: list[float], token_ids: list[Ints], k: int) -> None:
        """Forbid candidates that are among `once_tokens` and that their hypothesis has written."""
        for n, (_, row, target) in enumerate(self.live):
            written = {token for token in self._search.once_tokens if is_in(token, target)}
            for j, token in enumerate(token_ids[row][:k] if written else ()):
                if token in written:
                    totals[n * k + j] = -math.inf

    def _watch(self, target: Target, candidates: Ints, log_probs: list[float], chosen: float) -> None:
        """Record the scores of the last token of a target."""
        _, before = target
        assert before is not None
        self._scores[id(target)] = score_token(
            self._search.once_tokens, candidates, log_probs, chosen, lambda token: is_in(token, before)
        )

    def _end(self, target: Target, log_prob: float, eos: int) -> None:
        """Let a hypothesis leave the beam."""
        token_ids = tokens_of(target)
        reason = reason_of(token_ids, eos, self._search.max_target_tokens)
        token_scores: list[TokenScores] | tuple[()] = ()
        if self._search.once_tokens:
            of_prefix = prefix_scores(self._search.once_tokens)
            token_scores = [self._scores.get(id(node), of_prefix) for node in nodes_of(target)]
        self._search.finished.append(Hypothesis(token_ids, log_prob, reason, token_scores))
        self._rank_to_beat = self._search.rank_to_beat()
        self.width -= not self._search.has_fixed_width


def tokens_of(target: Target) -> list[int]:
    """Return the tokens of a target in order, without beginning of sequence."""
    tokens = []
    token, before = target
    while before is not None:
        tokens.append(token)
        token, before = before
    return tokens[::-1]


def nodes_of(target: Target) -> list[Target]:
    """Return the target up to each of its tokens, in order."""
    nodes = []
    node: Target | None = target
    while node is not None and node[1] is not None:
        nodes.append(node)
        node = node[1]
    return nodes[::-1]


def is_in(token: int, target: Target | None) -> bool:
    """Whether a target contains a token."""
    while target is not None:
        if target[0] == token:
            return True
        target = target[1]
    return False


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
    found = dict(zip(candidates, log_probs, strict=False))
    missed = [math.inf if token not in found or is_written(token) else chosen - found[token] for token in once]
    return TokenScores(chosen, tuple(missed))


def prefix_scores(once: SequenceOf[int]) -> TokenScores:
    """Return the scores of a token of a prefix."""
    return TokenScores(0.0, (math.inf,) * len(once))


def no_numbers() -> FloatingPointError:
    return FloatingPointError("the decoder's log-probabilities are not numbers")


def fail_without_numbers(decoder: DecoderRows, sequences: SequenceOf[Sequence[Search]]) -> None:
    """Let sequences fail whose log-probabilities are not numbers. Others of the same pass go on: nothing of theirs
    depends on it, once the caches have numbers only."""
    for sequence in sequences:
        sequence.finished, sequence.failure = True, no_numbers()
    decoder.clean()


REPETITION_INTERVAL = 8
"""Targets are checked for runaway repetition every so many tokens; a check at every step would take too long."""
MIN_RUNAWAY_TOKENS = 24


def reason_of(token_ids: list[int], eos: int, max_target_tokens: int) -> FinishReason:
    """Return why a target has ended."""
    if token_ids[-1] == eos:
        return "eos"
    return "length" if len(token_ids) >= max_target_tokens else "repetition"


def is_runaway(token_ids: list[int], n_source: int) -> bool:
    """Whether a target repeats itself endlessly: its last tokens, as many as the source has and at least 24, are 4 or
    more equal pieces.

    A source that repeats itself may have such a target, as long as itself.
    """
    n = max(MIN_RUNAWAY_TOKENS, n_source)
    if len(token_ids) < n:
        return False
    tail = token_ids[-n:]
    return any(tail[period:] == tail[:-period] for period in range(1, n // 4 + 1))
