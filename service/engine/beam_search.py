"""Beam search inside continuous batching: every sequence has its own beam, and all share the decoder's steps.

Each live hypothesis is one decoder row. At every step the most probable continuations of a sequence's rows live on;
one that ends leaves the beam, which is narrower from then on, and one that has fallen too far behind is given up: rows
are what a step costs. With a beam of one this is greedy search. A sequence gets what `beam_search` of
model/decoding/search.py gives it, whatever else shares its steps.

Legend: N sequences, W the most live hypotheses of one of them, R rows, k candidates per row.
"""

import math
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Literal, NamedTuple

from service.base.contract import DecoderRows, FinishReason, Ints
from service.engine.scheduler import Sequence

Stop = Literal["empty", "no_better", "full", "full_no_better"]
"""When a search ends.

A hypothesis that ends makes the beam narrower: the search ends when the beam is empty, as Marian's does; or already
when no live hypothesis is better, at its present length, than the n_best that have ended.

The beam keeps its width: the search ends when as many as that have ended (`full`), as CTranslate2's does; or when no
live hypothesis is better, at its present length, than the worst of these either, as in transformers.
"""

Target = tuple[int, "Target | None"]
"""The last token and those before it, which several hypotheses may share; the first is beginning of sequence."""


class TokenScores(NamedTuple):
    """Of a token that was chosen.

    Attributes:
        log_prob: its own; 0 in a prefix.
        shortfalls: by how many nats each token of `Search.once_tokens` was less probable; infinite where it had been written,
            or was none of the `WATCHED_CANDIDATES` best, and in a prefix.
    """

    log_prob: float
    shortfalls: tuple[float, ...]


@dataclass(frozen=True)
class Hypothesis:
    """A target: its tokens, end of sequence included where it was produced, and the sum of their log-probabilities.

    Attributes:
        token_scores: of each token, where tokens are watched for.
    """

    token_ids: list[int]
    log_prob: float
    finish_reason: FinishReason
    token_scores: "SequenceOf[TokenScores]" = ()

    def rank(self, length_penalty: float) -> tuple[bool, float]:
        """Higher is better: those that ended by themselves first, then by log-probability over length^penalty."""
        return self.finish_reason == "eos", self.log_prob / len(self.token_ids) ** length_penalty


@dataclass
class Search:
    """How one sequence is searched, and its hypotheses that have ended."""

    max_target_tokens: int
    beam_size: int = 1
    length_penalty: float = 1.0
    n_best: int = 1
    beam_threshold: float = math.inf
    """Nats by which a hypothesis may be less probable than the n_best-th one and live on (threshold pruning; Freitag
    and Al-Onaizan 2017, "Beam Search Strategies for Neural Machine Translation")."""
    stop: Stop = "empty"
    prefix: tuple[int, ...] = ()
    """Tokens with which every hypothesis begins, whatever their probability, which is not counted."""
    once_tokens: tuple[int, ...] = ()
    """Tokens that a hypothesis writes at most once each, and is watched for."""
    finished: list[Hypothesis] = field(default_factory=list)

    def best(self) -> list[Hypothesis]:
        """The n_best, best first."""
        rank = methodcaller("rank", self.length_penalty)
        return sorted(self.finished, key=rank, reverse=True)[: self.n_best]

    @property
    def keeps_width(self) -> bool:
        """Whether its beam is as wide as before when a hypothesis has ended."""
        return self.stop in ("full", "full_no_better") and self.beam_size > 1

    def bar(self) -> float:
        """The rank that the best live hypothesis must exceed, or the search ends."""
        if self.stop == "empty":
            return -math.inf
        ranks = sorted((h.rank(self.length_penalty) for h in self.finished if h.finish_reason == "eos"), reverse=True)
        enough = self.n_best if self.stop == "no_better" else self.beam_size
        if len(ranks) < enough:
            return -math.inf
        return math.inf if self.stop == "full" else ranks[enough - 1][1]


WATCHED_CANDIDATES = 16
"""Candidates of a row that is watched for tokens."""

Live = tuple[float, int, Target]
"""A hypothesis that lives: the sum of its log-probabilities, its row, and its target."""

NO_ROW = -1
"""Of a hypothesis that has just been begun."""


class BeamSearch:
    """The computation of a translation engine: running[i] is in place i.

    The work around a step is plain Python over short lists. In numpy it took 1.6 to 3.5 times as long, because each
    call on arrays of this size costs as much as a hypothesis does here.

    Args:
        rows: enough for all that run at once; a sequence needs as many as its beam is wide.
    """

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos

    def warm_up(self) -> None:
        self._decoder.encode(0, [[self._eos]])
        self._decoder.step([self._bos], [0], [[0]], [0], 1)

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._decoder.encode(first_place, [sequence.source_ids for sequence in sequences])
        for sequence in sequences:
            sequence.state = Beam(sequence, self._bos)

    def step(self, running: list[Sequence[Search]]) -> int:
        beams: list[Beam] = [sequence.state for sequence in running]
        R = self._place(beams)
        W = max([len(beam.live) for beam in beams])
        token_ids, positions, places = [0] * R, [0] * R, [0] * R
        rows_of_sources = []
        for place, beam in enumerate(beams):
            rows = [row for _, row, _ in beam.live]
            rows_of_sources.append(rows + rows[:1] * (W - len(rows)))
            for column, (_, row, target) in enumerate(beam.live, place * W):
                token_ids[row], positions[row], places[row] = target[0], beam.length, column
        k = max([beam.n_candidates for beam in beams])
        best, log_probs = self._decoder.step(token_ids, positions, rows_of_sources, places, k)
        for sequence, beam in zip(running, beams, strict=True):
            sequence.finished = beam.advance(best, log_probs, self._eos)
        return R

    def move(self, source_place: int, target_place: int, _sequence: Sequence[Search]) -> None:
        self._decoder.move(source_place, target_place)

    def _place(self, beams: "list[Beam]") -> int:
        """Give their live hypotheses the rows from 0 on without gaps; most stay in the row of their parent. Returns how
        many these are."""
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
        for (beam, i), row in moves:  # only now: if the copy fails, nothing has moved
            log_prob, _, target = beam.live[i]
            beam.live[i] = log_prob, row, target
        return n


class Beam:
    """The hypotheses of one sequence that live.

    Attributes:
        width: how many may live.
        length: of each of them, in tokens.
        live: best first.
    """

    def __init__(self, sequence: Sequence[Search], bos: int) -> None:
        self._search = sequence.output
        self._n_source = len(sequence.source_ids)
        self._bar = -math.inf
        self.width = self._search.beam_size
        self.length = 0
        self.live: list[Live] = [(0.0, NO_ROW, (bos, None))]
        self._scores: dict[int, TokenScores] = {}
        """Of the last token of each target, by the target's id."""

    @property
    def n_candidates(self) -> int:
        """How many continuations of each row are enough: at first one of them may be the end, and others barred."""
        enough = self.width + (self._search.keeps_width or self.length == len(self._search.prefix))
        return max(WATCHED_CANDIDATES, enough + len(self._search.once_tokens)) if self._search.once_tokens else enough

    def advance(self, token_ids: list[Ints], log_probs: list[list[float]], eos: int) -> bool:
        """Go on with the best continuations of its rows, given the candidates (R, k) of all rows; True if it is done.

        Those that live on have the rows of their parents, several of them perhaps the same one.
        """
        if self.length < len(self._search.prefix):
            [(total, row, target)] = self.live
            self.live = [(total, row, (self._search.prefix[self.length], target))]
            self.length += 1
            return False
        k = min(self.n_candidates, len(log_probs[self.live[0][1]]))  # others may need more
        totals = [total + log_prob for total, row, _ in self.live for log_prob in log_probs[row][:k]]
        if self.length == len(self._search.prefix):  # a translation is never empty
            candidates = token_ids[self.live[0][1]][:k]
            totals = [-math.inf if token == eos else total for token, total in zip(candidates, totals, strict=True)]
        if self._search.once_tokens:
            self._bar_what_is_written(totals, token_ids, k)
        keeps_width = self._search.keeps_width
        n = 2 * self.width if keeps_width else self.width  # half of them may have ended
        best = sorted(range(len(totals)), key=totals.__getitem__, reverse=True)[:n]
        least = totals[best[: self._search.n_best][-1]] - self._search.beam_threshold
        self.length += 1
        at_limit = self.length >= self._search.max_target_tokens
        check_repetition = repetition_check_due(self.length)
        living: list[Live] = []
        n_going_on = 0
        for rank, i in enumerate(best):
            if totals[i] < least or (keeps_width and (n_going_on == self.width or totals[i] == -math.inf)):
                break
            _, row, target = self.live[i // k]
            token = token_ids[row][i % k]
            if keeps_width:
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
        if living and living[0][0] / self.length**self._search.length_penalty > self._bar:
            self.live = living
            return False
        self.live = []
        return True

    def _bar_what_is_written(self, totals: list[float], token_ids: list[Ints], k: int) -> None:
        """Of the k candidates of each row."""
        for n, (_, row, target) in enumerate(self.live):
            written = {token for token in self._search.once_tokens if is_in(token, target)}
            for j, token in enumerate(token_ids[row][:k] if written else ()):
                if token in written:
                    totals[n * k + j] = -math.inf

    def _watch(self, target: Target, candidates: Ints, log_probs: list[float], chosen: float) -> None:
        """Note how far what is watched for was from the last token of a target."""
        _, before = target
        assert before is not None
        self._scores[id(target)] = token_scores_of(
            self._search.once_tokens, candidates, log_probs, chosen, lambda token: is_in(token, before)
        )

    def _end(self, target: Target, log_prob: float, eos: int) -> None:
        """A hypothesis leaves the beam."""
        token_ids = tokens_of(target)
        reason = reason_of(token_ids, eos, self._search.max_target_tokens)
        token_scores: list[TokenScores] | tuple[()] = ()
        if self._search.once_tokens:
            of_prefix = prefix_scores(self._search.once_tokens)
            token_scores = [self._scores.get(id(node), of_prefix) for node in nodes_of(target)]
        self._search.finished.append(Hypothesis(token_ids, log_prob, reason, token_scores))
        self._bar = self._search.bar()
        self.width -= not self._search.keeps_width


def tokens_of(target: Target) -> list[int]:
    """In order, without beginning of sequence."""
    tokens = []
    token, before = target
    while before is not None:
        tokens.append(token)
        token, before = before
    return tokens[::-1]


def nodes_of(target: Target) -> list[Target]:
    """The target up to each of its tokens, in order."""
    nodes = []
    node: Target | None = target
    while node is not None and node[1] is not None:
        nodes.append(node)
        node = node[1]
    return nodes[::-1]


def is_in(token: int, target: Target | None) -> bool:
    """Whether a target has this token."""
    while target is not None:
        if target[0] == token:
            return True
        target = target[1]
    return False


def token_scores_of(
    once: SequenceOf[int],
    candidates: SequenceOf[int],
    log_probs: SequenceOf[float],
    chosen: float,
    is_written: Callable[[int], bool],
) -> TokenScores:
    """Score a chosen token.

    Args:
        candidates, log_probs: of one row, best first.
        chosen: the log-probability of the token.
    """
    found = dict(zip(candidates, log_probs, strict=False))
    missed = [math.inf if token not in found or is_written(token) else chosen - found[token] for token in once]
    return TokenScores(chosen, tuple(missed))


def prefix_scores(once: SequenceOf[int]) -> TokenScores:
    """Return the scores of a token of a prefix."""
    return TokenScores(0.0, (math.inf,) * len(once))


REPETITION_INTERVAL = 8
MIN_RUNAWAY_TOKENS = 24


def reason_of(token_ids: list[int], eos: int, max_target_tokens: int) -> FinishReason:
    """Why a target has ended."""
    if token_ids[-1] == eos:
        return "eos"
    return "length" if len(token_ids) >= max_target_tokens else "repetition"


def repetition_check_due(length: int) -> bool:
    """Whether a target of this length is checked for runaway repetition: to check at every step would take too long."""
    return length >= MIN_RUNAWAY_TOKENS and length % REPETITION_INTERVAL == 0


def is_runaway(token_ids: list[int], n_source: int) -> bool:
    """Whether a target goes round in circles: its last tokens, as many as the source has and at least 24, are 4 or more
    equal pieces.

    A source that repeats itself may have such a target, as long as itself.
    """
    n = max(MIN_RUNAWAY_TOKENS, n_source)
    if len(token_ids) < n:
        return False
    tail = token_ids[-n:]
    return any(tail[period:] == tail[:-period] for period in range(1, n // 4 + 1))
