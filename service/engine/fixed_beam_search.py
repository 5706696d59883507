"""Beam search in fixed places: the results of `BeamSearch`, by arrays over all beams.

A sequence has a place, and as many rows as its beam is wide. A hypothesis keeps the row of its parent. If a parent has
several children, the others get free rows of the beam, and one run copies all of them.

Legend: P running beams, W width of the widest, up to a power of two, k candidates of a row, R rows and N places that a
step runs over, T tokens.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.base.contract import FixedRows, IntArray
from service.base.manifest import MAX_BEAM_SIZE
from service.engine.beam_search import (
    WATCHED_CANDIDATES,
    Hypothesis,
    Search,
    TokenScores,
    prefix_scores,
    reason_of,
    score_token,
)
from service.engine.places import Booleans, Places, are_runaway, check_due, smallest_size, step_sizes, with_length
from service.engine.scheduler import Sequence

WIDTHS = (2, 4, MAX_BEAM_SIZE)
"""Widths of steps, none of them 1: for one query attention's sums end in other bits than for several."""

Floats = NDArray[np.float64]

ScoreHistory = list[TokenScores]
"""The scores of each token of a hypothesis."""


@dataclass
class _Continuations:
    """The best continuations of each beam, best first. All arrays are (P, W), or (P, 2W) if a beam keeps its width."""

    totals: Floats
    tokens: IntArray
    parents: IntArray
    """Which of the beam's rows, counted from 0, each continues."""
    kept: Booleans
    """Whether each is within the beam."""
    token_scores: dict[int, list[ScoreHistory]]
    """The scores of each continuation, by place, for sequences that have `once_tokens`."""


class FixedBeamSearch:
    """A `FixedComputation` of sequences with beams.

    Args:
        n_rows: most hypotheses that run at once; there are half as many places.
    """

    def __init__(self, rows: FixedRows, n_rows: int, bos: int, eos: int, pad: int) -> None:
        self._decoder = rows
        self._bos, self._eos, self._pad = bos, eos, pad
        self._row_sizes, self._place_sizes = step_sizes(n_rows), step_sizes(n_rows // 2)
        n_rows, n_places = self._row_sizes[-1], self._place_sizes[-1]
        self.places = Places[Search](n_places)
        # By row: its place, its index in the beam, its next token and position.
        self._is_taken = np.zeros(n_rows, np.bool_)
        self._place_of, self._index_of = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        self._tokens, self._positions = np.full(n_rows, pad), np.zeros(n_rows, np.int64)
        self._targets = np.zeros((n_rows, 0), np.int64)
        """(n_rows, T): the tokens written so far; at first a beam's first row has the prefix."""
        # By place: its rows, padded with the first one; and for each hypothesis, best first, the index of its row.
        self._rows = np.zeros((n_places, MAX_BEAM_SIZE), np.int64)
        self._indices = np.zeros((n_places, MAX_BEAM_SIZE), np.int64)
        self._totals: Floats = np.full((n_places, MAX_BEAM_SIZE), -np.inf)
        self._beam_sizes, self._widths, self._n_best, self._lengths, self._limits, self._n_prefix, self._n_source = (
            np.zeros(n_places, np.int64) for _ in range(7)
        )
        self._penalties, self._thresholds, self._ranks_to_beat = (np.zeros(n_places) for _ in range(3))
        self._has_fixed_width = np.zeros(n_places, np.bool_)
        self._watched: dict[int, list[ScoreHistory]] = {}
        """The scores of each of the beam's rows, by place, for sequences that have `once_tokens`."""
        self._layout: tuple[IntArray, int, int, int] | None = None
        """The places in use, and R, N and W; None when sequences have entered or left."""
        self._is_warm = False

    @property
    def n_rows(self) -> int:
        return int(self._is_taken.sum())

    def warm_up(self) -> None:
        if not self._is_warm:
            self._decoder.warm_up()
        place = np.zeros(1, np.int64)
        for R in self._row_sizes[:1] if self._is_warm else self._row_sizes:
            for W in WIDTHS[:1] if self._is_warm else WIDTHS:
                self._decoder.encode(place, [[self._eos]])
                self._pass(R, smallest_size(min(R // W, self._place_sizes[-1]), self._place_sizes), W)
                self._decoder.leave(place)
        self._is_warm = True

    def prefill(self, sequences: list[Sequence[Search]]) -> None:
        places = self.places.first_empty(len(sequences))
        self._decoder.encode(places, [sequence.source_ids for sequence in sequences])
        for place, sequence in zip(places.tolist(), sequences, strict=True):
            self._begin(place, sequence)

    def step(self) -> tuple[int, list[Sequence[Search]]]:
        if self._layout is None:
            places = np.flatnonzero(self.places.in_use)
            W = smallest_size(int(self._beam_sizes[places].max()), WIDTHS)
            R = smallest_size(int(np.flatnonzero(self._is_taken)[-1]) + 1, self._row_sizes)
            self._layout = places, R, smallest_size(int(places[-1]) + 1, self._place_sizes), W
        places, R, N, W = self._layout
        best, log_probs = self._pass(R, N, W)
        candidates = self._select(places, W, best, log_probs)
        self._lengths[places] += 1
        self._end(places, candidates)
        finished = self._go_on(places, candidates)
        self.evict(finished)
        return R, finished

    def evict(self, sequences: Collection[Sequence[Search]]) -> None:
        places = self.places.leave(sequences)
        if len(places) == 0:
            return
        self._layout = None
        for place in places.tolist() if self._watched else ():
            self._watched.pop(place, None)
        rows = self._rows[places].ravel()
        self._is_taken[rows] = False
        self._place_of[rows], self._index_of[rows] = 0, 0
        self._tokens[rows], self._positions[rows] = self._pad, 0
        self._rows[places], self._totals[places] = 0, -np.inf
        self._decoder.leave(places)

    def _begin(self, place: int, sequence: Sequence[Search]) -> None:
        """Put a sequence into a place, with one empty hypothesis."""
        search, n_prefix = sequence.output, len(sequence.output.prefix)
        rows = np.flatnonzero(~self._is_taken)[: search.beam_size]
        self._is_taken[rows], self._place_of[rows], self._index_of[rows] = True, place, np.arange(len(rows))
        self._rows[place] = rows[0]
        self._rows[place, : len(rows)] = rows
        self._indices[place], self._totals[place] = 0, -np.inf
        self._totals[place, 0] = 0.0
        self._targets = with_length(self._targets, max(search.max_target_tokens, n_prefix + 1))
        self._targets[rows[0], :n_prefix] = search.prefix
        self._tokens[rows], self._positions[rows] = self._pad, 0
        self._tokens[rows[0]] = self._bos
        self._beam_sizes[place] = self._widths[place] = search.beam_size
        self._lengths[place], self._n_prefix[place], self._n_source[place] = 0, n_prefix, len(sequence.source_ids)
        self._n_best[place], self._limits[place] = search.n_best, search.max_target_tokens
        self._penalties[place], self._thresholds[place] = search.length_penalty, search.beam_threshold
        self._ranks_to_beat[place], self._has_fixed_width[place] = -np.inf, search.has_fixed_width
        if search.once_tokens:
            self._watched[place] = [[prefix_scores(search.once_tokens)] * n_prefix for _ in range(MAX_BEAM_SIZE)]
        self._layout = None
        self.places.enter(sequence, place)

    def _pass(self, R: int, N: int, W: int) -> tuple[IntArray, NDArray[np.float32]]:  # noqa: N803
        """Run a decoder step. There is one candidate more than a beam is wide, since no target begins with end of
        sequence."""
        places_of_rows = self._place_of[:R] * W + self._index_of[:R]
        k = WATCHED_CANDIDATES if self._watched else W + 1
        self._decoder.launch(self._tokens[:R], self._positions[:R], self._rows[:N, :W], places_of_rows, k)
        return self._decoder.fetch()

    def _select(self, places: IntArray, W: int, best: IntArray, log_probs: NDArray[np.float32]) -> _Continuations:  # noqa: N803
        """Return the most probable continuations of each beam, or the next token of its prefix."""
        P, every = len(places), np.arange(len(places))[:, None]
        indices, lengths = self._indices[places, :W], self._lengths[places]
        rows = self._rows[places[:, None], indices]  # (P, W)
        totals = self._totals[places, :W, None] + log_probs[rows]  # (P, W, k)
        if np.isnan(totals[:, :, 0]).any():
            raise FloatingPointError("the decoder's log-probabilities are not numbers")
        n_prefix = self._n_prefix[places]
        begins = bool((lengths <= n_prefix).any())
        if begins:  # a translation is never empty
            totals[(lengths == n_prefix)[:, None, None] & (best[rows] == self._eos)] = -np.inf
        watched = [(i, place) for i, place in enumerate(places.tolist()) if place in self._watched]
        for i, place in watched:
            for j, row in enumerate(rows[i].tolist()):
                totals[i, j, np.isin(best[row], self._written_once(place, row, int(lengths[i])))] = -np.inf
        totals = totals.reshape(P, -1)
        n = 2 * W if self._has_fixed_width[places].any() else W  # half of them may end
        order = np.argsort(-totals, axis=1, kind="stable")[:, :n]
        totals, parents = totals[every, order], order // best.shape[1]
        tokens = best[rows[every, parents], order % best.shape[1]]
        n_best = np.minimum(self._n_best[places], self._widths[places])
        least = totals[every[:, 0], n_best - 1] - self._thresholds[places]
        kept = np.arange(n) < self._widths[places, None]
        if n > W:
            goes_on = tokens != self._eos
            in_full_beam = np.where(goes_on, goes_on.cumsum(axis=1) <= self._widths[places, None], kept)
            kept = np.where(self._has_fixed_width[places, None], in_full_beam & (totals > -np.inf), kept)
        kept &= totals >= least[:, None]
        if begins and len(in_prefix := np.flatnonzero(lengths < n_prefix)):
            first_rows = self._rows[places[in_prefix], 0]
            tokens[in_prefix, 0], parents[in_prefix, 0] = self._targets[first_rows, lengths[in_prefix]], 0
            totals[in_prefix, 0], kept[in_prefix] = 0.0, np.arange(n) == 0
        token_scores = {}
        for i, place in watched:
            length, histories = int(lengths[i]), self._watched[place]
            if length < n_prefix[i]:
                token_scores[place] = histories[:W]
                continue
            once = self.places.sequence(place).output.once_tokens
            token_scores[place] = []
            for parent, at in zip(parents[i].tolist(), (order[i] % best.shape[1]).tolist(), strict=True):
                row = int(rows[i, parent])
                written = self._written_once(place, row, length)
                chosen = float(log_probs[row, at])
                missed = score_token(once, best[row].tolist(), log_probs[row].tolist(), chosen, written.__contains__)
                token_scores[place].append([*histories[int(indices[i, parent])], missed])
        return _Continuations(totals, tokens, indices[every, parents], kept, token_scores)

    def _written_once(self, place: int, row: int, length: int) -> list[int]:
        """Return the `once_tokens` that a hypothesis has written."""
        written = self._targets[row, :length].tolist()
        return [token for token in self.places.sequence(place).output.once_tokens if token in written]

    def _end(self, places: IntArray, candidates: _Continuations) -> None:
        """Record the hypotheses that have ended, and remove them from the kept continuations."""
        lengths, n = self._lengths[places], candidates.tokens.shape[1]
        ended = (candidates.tokens == self._eos) | (lengths >= self._limits[places])[:, None]
        due = np.flatnonzero(check_due(lengths))
        if len(due):
            targets = self._targets[self._rows[places[due, None], candidates.parents[due]]].reshape(len(due) * n, -1)
            last = lengths[due].repeat(n)
            np.put_along_axis(targets, last[:, None] - 1, candidates.tokens[due].reshape(-1, 1), axis=1)
            ended[due] |= are_runaway(targets, last, self._n_source[places[due]].repeat(n)).reshape(-1, n)
        ended &= candidates.kept & (lengths > self._n_prefix[places])[:, None]
        for i, j in zip(*np.nonzero(ended), strict=True):
            place, length = int(places[i]), int(lengths[i])
            search = self.places.sequence(place).output
            written = self._targets[self._rows[place, candidates.parents[i, j]], : length - 1].tolist()
            token_ids = [*written, int(candidates.tokens[i, j])]
            reason = reason_of(token_ids, self._eos, search.max_target_tokens)
            token_scores = candidates.token_scores[place][j] if place in candidates.token_scores else ()
            search.finished.append(Hypothesis(token_ids, float(candidates.totals[i, j]), reason, token_scores))
            self._ranks_to_beat[place] = search.rank_to_beat()
            self._widths[place] -= not search.has_fixed_width
        candidates.kept &= ~ended

    def _go_on(self, places: IntArray, candidates: _Continuations) -> list[Sequence[Search]]:
        """Give live continuations their rows. Return the sequences that have none."""
        P, W = len(places), smallest_size(int(self._beam_sizes[places].max()), WIDTHS)
        every, lengths = np.arange(P)[:, None], self._lengths[places]
        order = np.argsort(~candidates.kept, axis=1, kind="stable")[:, :W]
        live = candidates.kept[every, order]
        totals, parents = candidates.totals[every, order], candidates.parents[every, order]
        tokens = candidates.tokens[every, order]
        ranks = totals[:, 0] / lengths ** self._penalties[places]
        live &= (live[:, 0] & (ranks > self._ranks_to_beat[places]))[:, None]

        indices = self._indices_of_children(parents, live, self._beam_sizes[places])
        rows = self._rows[places[:, None], indices]
        moved = live & (indices != parents)
        if moved.any():
            sources, targets = self._rows[places[:, None], parents][moved], rows[moved]
            self._decoder.copy(sources, targets)
            self._targets[targets] = self._targets[sources]
        for i, place in enumerate(places.tolist() if candidates.token_scores else ()):
            for j in np.flatnonzero(live[i]).tolist() if place in candidates.token_scores else ():
                self._watched[place][indices[i, j]] = candidates.token_scores[place][order[i, j]]
        at = np.broadcast_to(lengths[:, None], (P, W))[live]
        self._tokens.fill(self._pad)
        self._positions.fill(0)
        self._tokens[rows[live]], self._positions[rows[live]] = tokens[live], at
        self._targets[rows[live], at - 1] = tokens[live]
        self._indices[places, :W], self._totals[places, :W] = indices, np.where(live, totals, -np.inf)
        finished = [self.places.sequence(place) for place in places[~live[:, 0]].tolist()]
        for sequence in finished:
            sequence.finished = True
        return finished

    @staticmethod
    def _indices_of_children(parents: IntArray, live: Booleans, beam_sizes: IntArray) -> IntArray:
        """Return which of its beam's rows each child gets (P, W): the first child of a parent gets the parent's row,
        the others get free rows."""
        P, W = parents.shape
        every = np.arange(P)
        taken = np.arange(W) >= beam_sizes[:, None]
        stays = np.zeros((P, W), np.bool_)
        for j in range(W):
            stays[:, j] = live[:, j] & ~taken[every, parents[:, j]]
            taken[every[stays[:, j]], parents[stays[:, j], j]] = True
        moves = live & ~stays
        left = np.argsort(taken, axis=1, kind="stable")
        indices = np.where(stays, parents, 0)
        place, child = np.nonzero(moves)
        indices[place, child] = left[place, (moves.cumsum(axis=1) - 1)[place, child]]
        return indices
