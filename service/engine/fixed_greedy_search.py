"""Greedy search in fixed places: the results of `GreedySearch`, by arrays over all places. Place i is row i.

Legend: M steps that are launched together, R places that they run over, N places in use, T tokens.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from service.base.contract import FixedRows, IntArray
from service.engine.greedy_search import chosen_once
from service.engine.places import Places, are_runaway, check_due, smallest_size, step_sizes, with_length
from service.engine.scheduler import Sequence
from service.engine.search import (
    WATCHED_CANDIDATES,
    Hypothesis,
    Search,
    TokenScores,
    no_numbers,
    prefix_scores,
    reason_of,
)

K = 2
"""Number of candidates of each row: the second replaces end of sequence at the beginning of a target. There are more if
a running sequence's scores are recorded, and while one records the next tokens behind its prefix."""
STEPS_TOGETHER = 2
"""Number of steps that are launched together, where each is fed the most probable token of the step before. The host
takes about as long for a launch as the device for a step. With 4 a single sentence is 3% faster, and 64 or 256 are 3 to
17% slower, since sequences that have ended run in vain."""


class FixedGreedySearch:
    """A `FixedComputation` of sequences with a beam of one.

    Args:
        places: most sequences that run at once; there are as many rows.
        ahead: whether a step is launched before the results of the last one are used, so that the device computes
            meanwhile.
    """

    def __init__(self, rows: FixedRows, places: int, bos: int, eos: int, pad: int, ahead: bool = False) -> None:
        self._decoder = rows
        self._ahead = ahead
        self._bos, self._eos, self._pad = bos, eos, pad
        self._sizes = step_sizes(places)
        places = self._sizes[-1]
        self.places = Places[Search](places)
        self._rows = np.arange(places)
        self._tokens, self._positions = np.full(places, pad), np.zeros(places, np.int64)
        self._limits, self._n_prefix, self._n_source, self._n_next = (np.zeros(places, np.int64) for _ in range(4))
        self._may_end = np.zeros(places, np.bool_)
        self._log_probs = np.zeros(places)
        self._targets = np.zeros((places, 0), np.int64)
        """(places, T): the prefix, then the tokens written so far."""
        self._fed: IntArray | None = None
        """The places that were in use when the current step was launched; None if its results have been used."""
        self._watched: dict[int, list[TokenScores]] = {}
        """The token scores, by place, of the sequences whose scores are recorded."""
        self._next_tokens: dict[int, list[tuple[int, float]]] = {}
        """The recorded tokens, by place, of the sequences that have `n_next_tokens`."""
        self._has_changed = np.zeros(places, np.bool_)
        """Whether the sequence has left the place since the launch, perhaps for another one."""
        self._is_warm = False

    @property
    def n_rows(self) -> int:
        return len(self.places.running)

    def warm_up(self) -> None:
        lengths, launches = [1], [(1, self._sizes[0], K)]
        if not self._is_warm:
            lengths = self._decoder.warm_up()
            kinds = [(1, K), (1, WATCHED_CANDIDATES), *([(STEPS_TOGETHER, 1)] if self._ahead else [])]
            launches = [(M, R, k) for R in self._sizes for M, k in kinds]
        for length in lengths:
            self._decoder.encode(self._rows[:1], [[self._eos] * length])
            for M, R, k in launches:
                self._launch_sizes(np.full(R, self._pad), np.zeros((M, R), np.int64), k)
                self._decoder.fetch()
            self._decoder.leave(self._rows[:1])
        self._is_warm = True

    def prefill(self, sequences: list[Sequence[Search]]) -> None:
        places = self.places.first_empty(len(sequences))
        self._decoder.encode(places, [sequence.source_ids for sequence in sequences])
        for place, sequence in zip(places.tolist(), sequences, strict=True):
            search, prefix = sequence.output, sequence.output.prefix
            longest = max(search.max_target_tokens, len(prefix) + 1) + STEPS_TOGETHER
            self._targets = with_length(self._targets, longest)
            self._targets[place, : len(prefix)] = prefix
            self._limits[place], self._n_prefix[place] = search.max_target_tokens, len(prefix)
            self._n_source[place], self._log_probs[place] = len(sequence.source_ids), 0.0
            self._tokens[place], self._positions[place] = self._bos, 0
            self._n_next[place], self._may_end[place] = search.n_next_tokens, search.may_end
            if search.scored or search.once_tokens:
                self._watched[place] = [prefix_scores(search.once_tokens)] * len(prefix)
            self.places.enter(sequence, place)

    def step(self) -> tuple[int, list[Sequence[Search]]]:
        if self._fed is None or self._has_changed[self._fed].all():
            running = np.flatnonzero(self.places.in_use)
            self._launch(running, self._tokens[running], self._positions[running])
        assert self._fed is not None
        places, self._fed = self._fed[~self._has_changed[self._fed]], None  # (N)
        best, log_probs = self._decoder.fetch()
        M, R, _ = best.shape
        best, log_probs = best[:, places], log_probs[:, places]
        lengths = self._positions[places] + np.arange(1, M + 1)[:, None]  # (M, N)
        n_prefix = self._n_prefix[places]
        # A single sequence may have ended, and then the next one would wait for steps in vain.
        if self._ahead and not self._watched and 1 < len(places) == self.n_rows and (lengths[-1] > n_prefix + 1).all():
            self._launch(places, best[-1, :, 0], lengths[-1])
        is_bad = np.isnan(log_probs[..., 0]).any(axis=0)  # (N)
        tokens, log_probs = self._chosen(places, lengths, best, log_probs)
        self._targets[places, lengths - 1] = tokens
        ended = (tokens == self._eos) | (lengths >= self._limits[places])
        steps, due = np.nonzero(check_due(lengths))
        if len(due):
            targets, n_source = self._targets[places[due]], self._n_source[places[due]]
            ended[steps, due] |= are_runaway(targets, lengths[steps, due], n_source)
        ended &= lengths > n_prefix
        ended |= is_bad
        has_ended = ended.any(axis=0)
        n_written = np.where(has_ended, ended.argmax(axis=0) + 1, M)
        for i in range(M):
            self._log_probs[places] += np.where(i < n_written, log_probs[i], 0)
        self._tokens[places] = tokens[-1]
        self._positions[places] += n_written
        for place in places[is_bad].tolist():
            self.places.sequence(place).failure = no_numbers()
        finished = [self._finish(place) for place in places[has_ended].tolist()]
        self.evict(finished)
        if any(sequence.failure is not None for sequence in finished):
            self._decoder.clean()
        return R, finished

    def evict(self, sequences: Collection[Sequence[Search]]) -> None:
        places = self.places.leave(sequences)
        for place in places.tolist() if self._watched or self._next_tokens else ():
            self._watched.pop(place, None)
            self._next_tokens.pop(place, None)
        self._tokens[places], self._positions[places], self._has_changed[places] = self._pad, 0, True
        self._n_next[places] = 0
        self._decoder.leave(places)

    def _launch(self, places: IntArray, tokens: IntArray, positions: IntArray) -> None:
        """Launch steps of these places (N), which are in use. Some sequences may have ended: their results are dropped,
        and those of maximum length are fed at position 0."""
        R = smallest_size(int(places[-1]) + 1, self._sizes)
        is_first = positions == self._n_prefix[places]
        k = max(WATCHED_CANDIDATES if self._watched else K, int(self._n_next[places][is_first].max(initial=0)))
        M = 1
        if self._ahead and not self._watched and (positions > self._n_prefix[places]).all():
            M, k = STEPS_TOGETHER, 1
        fed, at = np.full(R, self._pad), np.zeros((M, R), np.int64)
        fed[places] = tokens
        positions = positions + np.arange(M)[:, None]
        at[:, places] = np.where(positions < np.maximum(self._limits, self._n_prefix + 1)[places], positions, 0)
        self._launch_sizes(fed, at, k)
        self._fed = places
        self._has_changed.fill(False)

    def _launch_sizes(self, tokens: IntArray, positions: IntArray, k: int) -> None:
        rows = self._rows[: len(tokens)]
        self._decoder.launch(tokens, positions, rows[:, None], rows, k)

    def _chosen(
        self, places: IntArray, lengths: IntArray, best: IntArray, log_probs: NDArray[np.float32]
    ) -> tuple[IntArray, NDArray[np.float32]]:
        """Return the written tokens and their log-probabilities, each (M, N). The tokens of a prefix have none."""
        if len(lengths) > 1:
            return best[..., 0], log_probs[..., 0]
        (positions,), (best,), (log_probs,), n_prefix = lengths - 1, best, log_probs, self._n_prefix[places]
        chooses, is_first = positions >= n_prefix, positions == n_prefix
        for at in np.flatnonzero(is_first & (self._n_next[places] > 0)).tolist():
            n = self._n_next[places[at]]
            recorded = best[at, :n].tolist(), log_probs[at, :n].tolist()
            self._next_tokens[int(places[at])] = [*zip(*recorded, strict=True)]
        never_ends = is_first & ~self._may_end[places]
        is_empty = never_ends & (best[:, 0] == self._eos)  # a translation is never empty
        choice = self._rows[: len(places)], is_empty.astype(np.int64)
        for i in (
            np.flatnonzero([place in self._watched for place in places.tolist()] & chooses) if self._watched else ()
        ):
            choice[1][i] = self._choose(int(places[i]), best[i].tolist(), log_probs[i].tolist(), bool(never_ends[i]))
        tokens = np.where(chooses, best[choice], self._targets[places, positions])
        return tokens[None], np.where(chooses, log_probs[choice], np.float32(0))[None]

    def _choose(self, place: int, candidates: list[int], log_probs: list[float], never_ends: bool) -> int:
        """Return the index of the best candidate that may be written, if the sequence's scores are recorded."""
        once, position = self.places.sequence(place).output.once_tokens, int(self._positions[place])
        written = self._targets[place, :position].tolist()
        choice, token_scores = chosen_once(once, candidates, log_probs, written, self._eos if never_ends else None)
        self._watched[place].append(token_scores)
        return choice

    def _finish(self, place: int) -> Sequence[Search]:
        sequence = self.places.sequence(place)
        sequence.finished = True
        if sequence.failure is not None:
            return sequence
        token_ids: list[int] = self._targets[place, : self._positions[place]].tolist()
        reason = reason_of(token_ids, self._eos, sequence.output.max_target_tokens)
        token_scores, next_tokens = self._watched.get(place, ()), self._next_tokens.get(place, ())
        hypothesis = Hypothesis(token_ids, float(self._log_probs[place]), reason, token_scores, next_tokens)
        sequence.output.finished.append(hypothesis)
        return sequence
