"""Beam search inside continuous batching: every sequence has its own beam, and all share the decoder's steps.

Each live hypothesis is one decoder row. At every step the most probable continuations of a sequence's rows live on;
one that ends leaves the beam, which is narrower from then on. With a beam of one this is greedy search. What a
sequence gets is what `model.search.beam_search` gives it, whoever shares its steps.

Legend: N sequences, W the most live hypotheses of one of them, R rows, k candidates per row.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from service.scheduler import Sequence

MAX_BEAM_SIZE = 8

FinishReason = Literal["eos", "length", "repetition"]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Hypothesis:
    """A target: its tokens, end of sequence included where it was produced, and the sum of their log-probabilities."""

    token_ids: list[int]
    log_prob: float
    finish_reason: FinishReason

    def rank(self, length_penalty: float) -> tuple[bool, float]:
        """Higher is better: those that ended by themselves first, then by log-probability over length^penalty."""
        return self.finish_reason == "eos", self.log_prob / len(self.token_ids) ** length_penalty


@dataclass
class Search:
    """What is asked of one sequence, and the hypotheses that have ended."""

    max_target_tokens: int
    beam_size: int = 1
    length_penalty: float = 1.0
    n_best: int = 1
    finished: list[Hypothesis] = field(default_factory=list)

    def best(self) -> list[Hypothesis]:
        """The n_best, best first."""
        return sorted(self.finished, key=lambda hypothesis: hypothesis.rank(self.length_penalty), reverse=True)[
            : self.n_best
        ]

    def bar(self) -> float:
        """What a live hypothesis must exceed to be among the n_best: -inf while fewer have ended by themselves."""
        ranks = sorted((h.rank(self.length_penalty) for h in self.finished if h.finish_reason == "eos"), reverse=True)
        return ranks[self.n_best - 1][1] if len(ranks) >= self.n_best else -np.inf


class DecoderRows(Protocol):
    """Sources in places, and hypotheses in rows; both in use from 0 on without gaps."""

    def encode(self, first_place: int, sources: list[list[int]]) -> None:
        """Read sources, one into each place from `first_place` on."""

    def step(
        self, token_ids: Integers, positions: Integers, rows_of_sources: Integers, places_of_rows: Integers, k: int
    ) -> tuple[Integers, NDArray[np.float32]]:
        """Feed token_ids (R) at positions (R): the k most probable next tokens and their log-probabilities, (R, k).

        Args:
            rows_of_sources: (N, W), the rows of the source in each place, filled up with any row.
            places_of_rows: (R), where in rows_of_sources, flattened, each row stands.
        """

    def copy(self, source_rows: Integers, target_rows: Integers, n_tokens: int) -> None:
        """Copy what rows hold of their first n_tokens over other rows; none of these is also copied from."""

    def move(self, source_place: int, target_place: int) -> None:
        """Copy a source over another one."""


class BeamSearch:
    """The computation of a translation engine: running[i] is in place i.

    Args:
        rows: at least `slots` of them.
        slots: most rows in use at once, and so most sequences; one needs as many as its beam is wide.
    """

    def __init__(self, rows: DecoderRows, slots: int, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos
        # Of each place, in one array of each kind so that a sequence moves in two assignments:
        self._integers = np.zeros((slots, MAX_BEAM_SIZE + 4), np.int64)
        self._rows_of = self._integers[:, :MAX_BEAM_SIZE]
        self._n_live, self._width, self._length, self._limit = self._integers[:, MAX_BEAM_SIZE:].T
        self._floats = np.zeros((slots, 2))
        self._length_penalty, self._bar = self._floats.T
        # Of each row:
        self._last_token = np.zeros(slots, np.int64)
        self._position = np.zeros(slots, np.int64)
        self._log_prob = np.zeros(slots)
        self._tokens = np.zeros((slots, 32), np.int64)
        self._places = np.arange(slots)
        self._n_places = 0
        self._n_rows = 0

    def warm_up(self) -> None:
        """One source, one step."""
        self._decoder.encode(0, [[self._eos]])
        zero = np.zeros(1, np.int64)
        self._decoder.step(np.array([self._bos]), zero, zero.reshape(1, 1), zero, 1)
        self._n_places = self._n_rows = 0

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        """Read the sources; each begins as one hypothesis."""
        self._truncate(first_place)
        self._decoder.encode(first_place, [sequence.source_ids for sequence in sequences])
        searches = [sequence.output for sequence in sequences]
        places = slice(first_place, first_place + len(sequences))
        rows = np.arange(self._n_rows, self._n_rows + len(sequences))
        self._rows_of[places, 0] = rows
        self._n_live[places] = 1
        self._length[places] = 0
        self._width[places] = [search.beam_size for search in searches]
        self._limit[places] = [search.max_target_tokens for search in searches]
        self._length_penalty[places] = [search.length_penalty for search in searches]
        self._bar[places] = -np.inf
        self._last_token[rows] = self._bos
        self._position[rows] = 0
        self._log_prob[rows] = 0.0
        self._n_places += len(sequences)
        self._n_rows += len(sequences)

    def step(self, running: list[Sequence[Search]]) -> int:
        """One more token for every hypothesis; how many there were."""
        N = len(running)
        self._truncate(N)
        R = self._n_rows
        n_live, width = self._n_live[:N], self._width[:N]
        W, k = max(n_live.tolist()), max(width.tolist())  # of few numbers, faster than numpy's
        live = COLUMNS[:W] < n_live[:, None]  # (N, W)
        rows = np.where(live, self._rows_of[:N, :W], self._rows_of[:N, :1])  # (N, W)
        places = np.empty(R, np.int64)
        places[rows[live]] = live.ravel().nonzero()[0]
        token_ids, log_probs = self._decoder.step(self._last_token[:R], self._position[:R], rows, places, k)

        totals = self._log_prob[rows][:, :, None] + log_probs[rows]  # (N, W, k)
        totals[~live] = -np.inf
        totals = totals.reshape(N, W * k)
        everywhere = self._places[:N, None]
        order = (-totals).argsort(axis=1, kind="stable")[:, :k]  # (N, k): the best continuations
        log_prob = totals[everywhere, order]
        parent = rows[everywhere, order // k]
        token = token_ids[parent, order % k]
        self._length[:N] += 1
        length = self._length[:N]
        chosen = COLUMNS[:k] < width[:, None]
        ending = chosen & ((token == self._eos) | (length == self._limit[:N])[:, None])
        if (length % REPETITION_INTERVAL == 0).any():
            ending |= self._runaway(running, chosen & ~ending, parent, token)
        staying = chosen & ~ending
        places_ending, columns_ending = ending.nonzero()
        for place, column in zip(places_ending.tolist(), columns_ending.tolist(), strict=True):
            self._end(
                running[place].output, place, parent[place, column], token[place, column], log_prob[place, column]
            )
        best_alive = np.where(staying, log_prob, -np.inf).max(axis=1) / length ** self._length_penalty[:N]
        done = best_alive <= self._bar[:N]  # an empty beam is -inf
        if done.any():
            staying[done] = False
            for place in np.flatnonzero(done).tolist():
                running[place].finished = True
        self._advance(staying, parent, token, log_prob)
        return R

    def move(self, source_place: int, target_place: int) -> None:
        """The last sequence takes a free place."""
        self._decoder.move(source_place, target_place)
        abandoned = self._n_live[target_place] > 0
        self._integers[target_place] = self._integers[source_place]
        self._floats[target_place] = self._floats[source_place]
        self._n_places = source_place
        if abandoned:
            self._compact()

    def _truncate(self, n_places: int) -> None:
        """Forget the sequences from place `n_places` on, which have left."""
        abandoned = self._n_live[n_places : self._n_places].any()
        self._n_places = n_places
        if abandoned:
            self._compact()

    def _compact(self) -> None:
        """Close the gaps between the rows of the sequences that stay."""
        N = self._n_places
        live = self._n_live[:N, None] > COLUMNS
        rows = self._rows_of[:N]
        self._advance(live, rows.copy(), self._last_token[rows], self._log_prob[rows])

    def _advance(
        self, staying: NDArray[np.bool_], parent: Integers, token: Integers, log_prob: NDArray[np.float64]
    ) -> None:
        """Place the hypotheses that stay, (N, k) each, in rows 0 .. n - 1; most stay in the row of their parent."""
        place, column = staying.nonzero()
        parents = parent[place, column]
        n = len(parents)
        items = self._places[:n]
        first_child = np.empty(self._n_rows, np.int64)
        first_child[parents[::-1]] = items[::-1]
        in_place = (first_child[parents] == items) & (parents < n)
        rows = parents.copy()
        if not in_place.all():
            free = np.ones(n, bool)
            free[parents[in_place]] = False
            moving = ~in_place
            rows[moving] = free.nonzero()[0]
            n_tokens = int(self._length[place[moving]].max())
            self._decoder.copy(parents[moving], rows[moving], n_tokens)
            self._tokens[rows[moving], :n_tokens] = self._tokens[parents[moving], :n_tokens]
        length = self._length[place]
        tokens = token[place, column]
        if n and length.max() > self._tokens.shape[1]:
            self._tokens = np.concatenate([self._tokens, np.zeros_like(self._tokens)], axis=1)
        self._tokens[rows, length - 1] = tokens
        self._last_token[rows] = tokens
        self._position[rows] = length
        self._log_prob[rows] = log_prob[place, column]
        self._n_live[: len(staying)] = staying.sum(axis=1)
        self._rows_of[place, (staying.cumsum(axis=1) - 1)[place, column]] = rows
        self._n_rows = n

    def _end(self, search: Search, place: int, parent: int, token: int, log_prob: float) -> None:
        """A hypothesis leaves its beam."""
        token_ids = [*self._tokens[parent, : self._length[place] - 1].tolist(), int(token)]
        reason = reason_of(token_ids, self._eos, search.max_target_tokens)
        search.finished.append(Hypothesis(token_ids, float(log_prob), reason))
        self._width[place] -= 1
        self._bar[place] = search.bar()

    def _runaway(
        self, running: list[Sequence[Search]], looked_at: NDArray[np.bool_], parent: Integers, token: Integers
    ) -> NDArray[np.bool_]:
        """Which of the hypotheses go round in circles, (N, k)."""
        runaway = np.zeros_like(looked_at)
        length = self._length[: len(running)]
        looked_at = looked_at & ((length % REPETITION_INTERVAL == 0) & (length >= SHORTEST_RUNAWAY))[:, None]
        for place, column in np.argwhere(looked_at).tolist():
            token_ids = [*self._tokens[parent[place, column], : self._length[place] - 1].tolist(), token[place, column]]
            runaway[place, column] = is_runaway(token_ids, len(running[place].source_ids))
        return runaway


COLUMNS = np.arange(MAX_BEAM_SIZE)

REPETITION_INTERVAL = 8
SHORTEST_RUNAWAY = 24


def reason_of(token_ids: list[int], eos: int, max_target_tokens: int) -> FinishReason:
    """Why a target has ended."""
    if token_ids[-1] == eos:
        return "eos"
    return "length" if len(token_ids) == max_target_tokens else "repetition"


def is_runaway(token_ids: list[int], n_source: int) -> bool:
    """Whether a target goes round in circles: as many tokens as the source has, and 24, are 4 or more equal pieces.

    A source that repeats itself may be translated by such a target.
    """
    n = max(SHORTEST_RUNAWAY, n_source)
    if len(token_ids) < n:
        return False
    tail = token_ids[-n:]
    return any(tail[period:] == tail[:-period] for period in range(1, n // 4 + 1))
