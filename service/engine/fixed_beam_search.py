"""Beam search in fixed places: the results of `BeamSearch`, by arrays over all beams.

A sequence has a place, and a row for each live hypothesis. A hypothesis keeps the row of its parent, unless fewer rows
are enough now. If a parent has several children, the others get free rows. One run copies all that change their row.

Arrays cover all places up to the last one in use: slices cost less than picking the places in use.

Legend: P places up to the last one in use, W width of the widest beam, up to a power of two, n continuations of a beam
(W, or 2W if a beam keeps its width), k candidates of a row, R rows and N places that a step runs over, L live
hypotheses, T tokens.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifest.schema import MAX_BEAM_SIZE
from service.base.contract import FixedRows, IntArray
from service.engine.places import (
    MIN_STEP_SIZE,
    Booleans,
    Places,
    are_runaway,
    check_due,
    smallest_size,
    step_sizes,
    with_length,
)
from service.engine.scheduler import Sequence
from service.engine.search import (
    WATCHED_CANDIDATES,
    Hypothesis,
    Search,
    TokenScores,
    no_numbers,
    prefix_scores,
    reason_of,
    score_token,
)

WIDTHS = (2, 4, MAX_BEAM_SIZE)
"""Widths of steps, none of them 1: for one query attention's sums end in other bits than for several."""
Floats = NDArray[np.float64]

ScoreHistory = list[TokenScores]
"""The scores of each token of a hypothesis."""


@dataclass
class _Continuations:
    """The best continuations of each beam, best first. All arrays are (P, n)."""

    totals: Floats
    tokens: IntArray
    parents: IntArray
    """The index in the beam of the hypothesis that each continuation continues."""
    kept: Booleans
    """Whether each continuation is within the beam."""
    token_scores: dict[int, list[ScoreHistory]]
    """The scores of each continuation, by place, for sequences whose scores are recorded."""

    def narrowed(self, every: IntArray, W: int) -> "_Continuations":  # noqa: N803
        """Return W continuations of each beam, among them all that are kept."""
        if self.kept.shape[1] == W:
            return self
        order = np.argsort(~self.kept, axis=1, kind="stable")[:, :W]
        scores = {
            place: [of[j] for j in order[place].tolist() if j < len(of)] for place, of in self.token_scores.items()
        }
        chosen = every, order
        return _Continuations(self.totals[chosen], self.tokens[chosen], self.parents[chosen], self.kept[chosen], scores)


class _Ended(NamedTuple):
    """Hypotheses that have ended, E of them.

    Attributes:
        targets: (E, T), the tokens before the last one, and others behind them.
        lengths: with the last token.
    """

    places: IntArray
    targets: IntArray
    lengths: IntArray
    last_tokens: IntArray
    totals: Floats
    token_scores: list[ScoreHistory | tuple[()]]


class _Launched(NamedTuple):
    """The sizes of a launched step: P, W and R."""

    n_places: int
    width: int
    n_rows: int


class FixedBeamSearch:
    """A `FixedComputation` of sequences with beams.

    Args:
        n_rows: most hypotheses that run at once; there are half as many places.
        ahead: whether the next step is launched before the engine reports the last one, so that the device computes
            meanwhile. It is launched again if newcomers enter, which must change nothing: keys and values are written
            anew, but the state of an SSRU would advance twice.
    """

    def __init__(self, rows: FixedRows, n_rows: int, bos: int, eos: int, pad: int, ahead: bool = False) -> None:
        self._decoder = rows
        self._ahead = ahead
        self._bos, self._eos, self._pad = bos, eos, pad
        self._sizes = step_sizes(n_rows)
        n_rows, n_places = self._sizes[-1], max(MIN_STEP_SIZE, n_rows // 2)
        self.places = Places[Search](n_places)
        self._every, self._own = np.arange(n_places)[:, None], np.arange(n_rows)
        # By row: its place, its index in the beam, its next token and position.
        self._is_taken = np.zeros(n_rows, np.bool_)
        self._place_of, self._index_of = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        self._tokens, self._positions = np.full(n_rows, pad), np.zeros(n_rows, np.int64)
        self._first_child = np.zeros(n_rows, np.int64)
        self._targets = np.zeros((n_rows, 0), np.int64)
        """(n_rows, T): the tokens written so far; at first a beam's first row has the prefix."""
        # By place and index in the beam: the row of each live hypothesis, and the sum of its log-probabilities; 0 and
        # -inf where there is none.
        self._rows = np.zeros((n_places, MAX_BEAM_SIZE), np.int64)
        self._totals: Floats = np.full((n_places, MAX_BEAM_SIZE), -np.inf)
        self._beam_sizes, self._widths, self._n_best, self._lengths, self._limits, self._n_prefix, self._n_source = (
            np.zeros(n_places, np.int64) for _ in range(7)
        )
        self._penalties, self._thresholds, self._ranks_to_beat = (np.zeros(n_places) for _ in range(3))
        self._has_fixed_width, self._has_rank_to_beat, self._may_end = np.zeros((3, n_places), np.bool_)
        self._watched: dict[int, list[ScoreHistory]] = {}
        """The scores of each of the live hypotheses, by place, for sequences whose scores are recorded."""
        self._launched: _Launched | None = None
        """The step that was launched and whose results have not been used."""
        self._is_warm = False

    @property
    def n_rows(self) -> int:
        return int(self._beam_sizes[self.places.in_use].sum())

    def warm_up(self) -> None:
        lengths, shapes, counts = [1], [(self._sizes[0], WIDTHS[0], WIDTHS[0] + 1)], [2]
        if not self._is_warm:
            lengths = self._decoder.warm_up()
            shapes = [(R, W, k) for R in self._sizes for W in WIDTHS for k in (W + 1, WATCHED_CANDIDATES)]
            counts = [1 << i for i in range(1, len(self._own).bit_length())]
        for length in lengths:
            self._decoder.encode(self._own[:1], [[self._eos] * length])
            for R, W, k in shapes:
                self._launch_sizes(R, W, k)
                self._decoder.fetch()
            for n in counts:
                self._decoder.copy(np.zeros(n - 1, np.int64), self._own[1:n])
            self._decoder.leave(self._own[:1])
        self._is_warm = True

    def prefill(self, sequences: list[Sequence[Search]]) -> None:
        self._launched = None
        places = self.places.first_empty(len(sequences))
        self._decoder.encode(places, [sequence.source_ids for sequence in sequences])
        rows = np.flatnonzero(~self._is_taken)[: len(sequences)]
        for place, row, sequence in zip(places.tolist(), rows.tolist(), sequences, strict=True):
            self._begin(place, row, sequence)

    def step(self) -> tuple[int, list[Sequence[Search]]]:
        P, W, R = self._launched or self._launch()
        self._launched = None
        (best,), (log_probs,) = self._decoder.fetch()
        candidates = self._select(P, W, best, log_probs)
        self._lengths[:P] += 1
        ended = self._end(P, candidates)
        counts_now = bool(self._has_rank_to_beat[:P].any())
        if counts_now:
            self._record(ended)
        finished = self._go_on(P, W, candidates)
        if self._ahead and len(finished) < len(self.places.running):
            self._launched = self._launch()
        if not counts_now:  # while the device computes
            self._record(ended)
        for sequence in finished:
            sequence.finished = True
        self.evict(finished)
        if any(sequence.failure is not None for sequence in finished):
            self._decoder.clean()
        return R, finished

    def evict(self, sequences: Collection[Sequence[Search]]) -> None:
        places = self.places.leave(sequences)
        if len(places) == 0:
            return
        for place in places.tolist() if self._watched else ():
            self._watched.pop(place, None)
        rows = self._rows[places][self._totals[places] > -np.inf]  # the rows of other hypotheses have a new owner
        self._is_taken[rows] = False
        self._place_of[rows], self._index_of[rows] = 0, 0
        self._tokens[rows], self._positions[rows] = self._pad, 0
        self._rows[places], self._totals[places], self._beam_sizes[places] = 0, -np.inf, 0
        self._decoder.leave(places)

    def _begin(self, place: int, row: int, sequence: Sequence[Search]) -> None:
        """A sequence begins with one empty hypothesis."""
        search, n_prefix = sequence.output, len(sequence.output.prefix)
        self._is_taken[row], self._place_of[row], self._index_of[row] = True, place, 0
        self._tokens[row], self._positions[row] = self._bos, 0
        self._rows[place], self._totals[place] = 0, -np.inf
        self._rows[place, 0], self._totals[place, 0] = row, 0.0
        self._targets = with_length(self._targets, max(search.max_target_tokens, n_prefix + 1))
        self._targets[row, :n_prefix] = search.prefix
        self._beam_sizes[place] = self._widths[place] = search.beam_size
        self._lengths[place], self._n_prefix[place], self._n_source[place] = 0, n_prefix, len(sequence.source_ids)
        self._n_best[place], self._limits[place] = search.n_best, search.max_target_tokens
        self._penalties[place], self._thresholds[place] = search.length_penalty, search.beam_threshold
        self._ranks_to_beat[place], self._has_rank_to_beat[place] = -np.inf, search.stop != "empty"
        self._has_fixed_width[place], self._may_end[place] = search.has_fixed_width, search.may_end
        if search.scored or search.once_tokens:
            self._watched[place] = [[prefix_scores(search.once_tokens)] * n_prefix] * MAX_BEAM_SIZE
        self.places.enter(sequence, place)

    def _launch(self) -> _Launched:
        P = int(np.flatnonzero(self.places.in_use)[-1]) + 1
        W = smallest_size(int(self._beam_sizes[:P].max()), WIDTHS)
        R = smallest_size(max(P, int(np.flatnonzero(self._is_taken)[-1]) + 1), self._sizes)
        self._launch_sizes(R, W, WATCHED_CANDIDATES if self._watched else W + 1)
        return _Launched(P, W, R)

    def _launch_sizes(self, R: int, W: int, k: int) -> None:  # noqa: N803
        """Launch a decoder step of R rows and as many places, which are few shapes. There is one candidate more than a
        beam is wide, since no target begins with end of sequence."""
        places_of_rows = self._place_of[:R] * W + self._index_of[:R]
        self._decoder.launch(self._tokens[:R], self._positions[None, :R], self._rows[:R, :W], places_of_rows, k)

    def _select(self, P: int, W: int, best: IntArray, log_probs: NDArray[np.float32]) -> _Continuations:  # noqa: N803
        """Return the most probable continuations of each beam, or the next token of its prefix."""
        every, rows, lengths = self._every[:P], self._rows[:P, :W], self._lengths[:P]
        widths, n_prefix = self._widths[:P, None], self._n_prefix[:P]
        k = best.shape[1]
        if (is_bad := self._is_taken[: len(best)] & np.isnan(log_probs[:, 0])).any():
            log_probs = self._fail_without_numbers(is_bad, log_probs)
        totals = self._totals[:P, :W, None] + log_probs[rows]  # (P, W, k)
        begins = lengths <= n_prefix
        has_new = bool(begins.any())
        if has_new:  # a translation is never empty
            never_ends = (lengths == n_prefix) & ~self._may_end[:P]
            totals[never_ends[:, None, None] & (best[rows] == self._eos)] = -np.inf
        for place in self._watched:
            for j, row in enumerate(rows[place].tolist()):
                totals[place, j, np.isin(best[row], self._written_once(place, row))] = -np.inf
        totals = totals.reshape(P, -1)
        has_fixed_width = bool(self._has_fixed_width[:P].any())
        n = 2 * W if has_fixed_width else W  # half of them may end
        order = np.argsort(-totals, axis=1, kind="stable")[:, :n]
        totals, parents = totals[every, order], order // k
        tokens = best[rows[every, parents], order - parents * k]
        n_best = np.minimum(self._n_best[:P], self._widths[:P])
        least = totals[every[:, 0], n_best - 1] - self._thresholds[:P]
        kept = self._own[:n] < widths
        if has_fixed_width:
            goes_on = tokens != self._eos
            in_full_beam = np.where(goes_on, goes_on.cumsum(axis=1) <= widths, kept)
            kept = np.where(self._has_fixed_width[:P, None], in_full_beam, kept)
        kept = kept & (totals >= least[:, None]) & (totals > -np.inf)
        for place in np.flatnonzero((lengths < n_prefix) & self.places.in_use[:P]).tolist() if has_new else ():
            tokens[place, 0] = self._targets[rows[place, 0], lengths[place]]
            parents[place, 0], totals[place, 0], kept[place] = 0, 0.0, self._own[:n] == 0
        scores = {place: self._scores(place, order[place], best, log_probs) for place in self._watched}
        return _Continuations(totals, tokens, parents, kept, scores)

    def _fail_without_numbers(self, is_bad: Booleans, log_probs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sequences with a bad row fail. Return log-probabilities with which none of them goes on."""
        place_of = self._place_of[: len(log_probs)]
        bad_places = np.unique(place_of[is_bad])
        for place in bad_places.tolist():
            self.places.sequence(place).failure = no_numbers()
        is_lost = self._is_taken[: len(log_probs)] & np.isin(place_of, bad_places)
        return np.where(is_lost[:, None], np.float32(-np.inf), log_probs)

    def _scores(
        self, place: int, order: IntArray, best: IntArray, log_probs: NDArray[np.float32]
    ) -> list[ScoreHistory]:
        """Return the scores of each continuation of a beam, whose candidates (W * k) are in this order."""
        histories, k = self._watched[place], best.shape[1]
        if self._lengths[place] < self._n_prefix[place]:
            return histories
        once = self.places.sequence(place).output.once_tokens
        scores = []
        for at in order.tolist():
            row = int(self._rows[place, at // k])
            written, chosen = self._written_once(place, row), float(log_probs[row, at % k])
            missed = score_token(once, best[row].tolist(), log_probs[row].tolist(), chosen, written.__contains__)
            scores.append([*histories[at // k], missed])
        return scores

    def _written_once(self, place: int, row: int) -> list[int]:
        written = self._targets[row, : self._lengths[place]].tolist()
        return [token for token in self.places.sequence(place).output.once_tokens if token in written]

    def _end(self, P: int, candidates: _Continuations) -> _Ended:  # noqa: N803
        """Return the hypotheses that have ended, which are no longer among the kept continuations."""
        lengths, (_, n) = self._lengths[:P], candidates.tokens.shape
        ended = (candidates.tokens == self._eos) | (lengths >= self._limits[:P])[:, None]
        due = np.flatnonzero(check_due(lengths) & self.places.in_use[:P])
        if len(due):
            targets = self._targets[self._rows[due[:, None], candidates.parents[due]]].reshape(len(due) * n, -1)
            last = lengths[due].repeat(n)
            np.put_along_axis(targets, last[:, None] - 1, candidates.tokens[due].reshape(-1, 1), axis=1)
            ended[due] |= are_runaway(targets, last, self._n_source[due].repeat(n)).reshape(-1, n)
        ended &= candidates.kept & (lengths > self._n_prefix[:P])[:, None]
        candidates.kept &= ~ended
        places, ranks = np.nonzero(ended)
        if not self._has_fixed_width[:P].all():
            self._widths[:P] -= ended.sum(axis=1) * ~self._has_fixed_width[:P]
        scores = candidates.token_scores
        return _Ended(
            places,
            self._targets[self._rows[places, candidates.parents[ended]]],
            lengths[places],
            candidates.tokens[ended],
            candidates.totals[ended],
            [scores.get(place, [()] * n)[rank] for place, rank in zip(places.tolist(), ranks.tolist(), strict=True)],
        )

    def _record(self, ended: _Ended) -> None:
        for place, target, length, token, total, token_scores in zip(
            *(array.tolist() for array in ended[:-1]), ended.token_scores, strict=True
        ):
            search = self.places.sequence(place).output
            token_ids = [*target[: length - 1], token]
            reason = reason_of(token_ids, self._eos, search.max_target_tokens)
            search.finished.append(Hypothesis(token_ids, total, reason, token_scores))
            if self._has_rank_to_beat[place]:
                self._ranks_to_beat[place] = search.rank_to_beat()

    def _go_on(self, P: int, W: int, candidates: _Continuations) -> list[Sequence[Search]]:  # noqa: N803
        """Live continuations get their rows. Return the sequences that have none."""
        candidates, lengths = candidates.narrowed(self._every[:P], W), self._lengths[:P]
        totals = np.where(candidates.kept, candidates.totals, -np.inf)
        goes_on = totals.max(axis=1) / lengths ** self._penalties[:P] > self._ranks_to_beat[:P]
        live = candidates.kept & goes_on[:, None]
        places, ranks = np.nonzero(live)  # (L)
        tokens, at = candidates.tokens[live], lengths[places]
        parents = self._rows[places, candidates.parents[live]]
        rows = self._rows_of_children(P, parents)
        moved = rows != parents
        if moved.any():
            sources, targets = parents[moved], rows[moved]
            longest = int(np.maximum(at, self._n_prefix[places]).max())  # what is still to come of a prefix moves too
            self._decoder.copy(sources, targets)
            self._targets[targets, :longest] = self._targets[sources, :longest]
        self._targets[rows, at - 1] = tokens
        for array, unused, used in (
            (self._place_of, 0, places),
            (self._index_of, 0, ranks),
            (self._tokens, self._pad, tokens),
            (self._positions, 0, at),
        ):
            array.fill(unused)
            array[rows] = used
        self._rows[:P], self._totals[:P, :W] = 0, np.where(live, totals, -np.inf)
        self._rows[places, ranks] = rows
        for place, scores in candidates.token_scores.items():
            self._watched[place] = (scores * MAX_BEAM_SIZE)[:MAX_BEAM_SIZE]
        return [self.places.sequence(place) for place in np.flatnonzero(self.places.in_use[:P] & ~goes_on).tolist()]

    def _rows_of_children(self, P: int, parents: IntArray) -> IntArray:  # noqa: N803
        """Return the row of each child (L). It is its parent's, except for other children of the same parent, and where
        a step would run over more rows than are needed: these get free rows."""
        children = self._own[: len(parents)]
        self._first_child[parents[::-1]] = children[::-1]
        stays = (self._first_child[parents] == children) & (parents < smallest_size(max(P, len(parents)), self._sizes))
        self._is_taken.fill(False)
        self._is_taken[parents[stays]] = True
        rows = parents.copy()
        rows[~stays] = np.flatnonzero(~self._is_taken)[: len(parents) - int(stays.sum())]
        self._is_taken[rows] = True
        return rows
