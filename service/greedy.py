"""Greedy search inside continuous batching: one decoder row for every sequence, its place.

It is beam search with a beam of one, for less: nothing is selected, and no row is anybody else's.
"""

import numpy as np

from service.decoding import (
    REPETITION_INTERVAL,
    SHORTEST_RUNAWAY,
    DecoderRows,
    Hypothesis,
    Search,
    is_runaway,
    reason_of,
)
from service.scheduler import Sequence


class GreedySearch:
    """The computation of sequences with a beam of one: running[i] is in place i, and in row i.

    Args:
        rows: at least `slots` of them.
        slots: most sequences at once.
    """

    def __init__(self, rows: DecoderRows, slots: int, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos
        self._places = np.arange(slots)
        # Of each place, in one array of each kind so that a sequence moves in few assignments:
        self._integers = np.zeros((slots, 3), np.int64)
        self._last_token, self._length, self._limit = self._integers.T
        self._log_prob = np.zeros(slots)
        self._tokens = np.zeros((slots, 32), np.int64)

    def warm_up(self) -> None:
        """One source, one step."""
        self._decoder.encode(0, [[self._eos]])
        zero = np.zeros(1, np.int64)
        self._decoder.step(np.array([self._bos]), zero, zero[:, None], zero, 1)

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        """Read the sources; each begins as one hypothesis."""
        self._decoder.encode(first_place, [sequence.source_ids for sequence in sequences])
        places = slice(first_place, first_place + len(sequences))
        self._last_token[places] = self._bos
        self._length[places] = 0
        self._limit[places] = [sequence.output.max_target_tokens for sequence in sequences]
        self._log_prob[places] = 0.0

    def step(self, running: list[Sequence[Search]]) -> int:
        """One more token for every sequence; how many there were."""
        N = len(running)
        places, length = self._places[:N], self._length[:N]
        token_ids, log_probs = self._decoder.step(self._last_token[:N], length, places[:, None], places, 1)
        token = token_ids[:, 0]
        longest = max(length.tolist())
        if longest == self._tokens.shape[1]:
            self._tokens = np.concatenate([self._tokens, np.zeros_like(self._tokens)], axis=1)
        self._tokens[places, length] = token
        self._last_token[:N] = token
        self._log_prob[:N] += log_probs[:, 0]
        length += 1
        ending = (token == self._eos) | (length == self._limit[:N])
        if longest + 1 >= SHORTEST_RUNAWAY:
            looked_at = (length % REPETITION_INTERVAL == 0) & (length >= SHORTEST_RUNAWAY)
            for place in looked_at.nonzero()[0].tolist():
                ending[place] |= is_runaway(self._target(place), len(running[place].source_ids))
        for place in ending.nonzero()[0].tolist():
            search, token_ids_of = running[place].output, self._target(place)
            reason = reason_of(token_ids_of, self._eos, search.max_target_tokens)
            search.finished.append(Hypothesis(token_ids_of, float(self._log_prob[place]), reason))
            running[place].finished = True
        return N

    def move(self, source_place: int, target_place: int) -> None:
        """The last sequence takes a free place."""
        n_tokens = int(self._length[source_place])
        self._decoder.move(source_place, target_place)
        self._decoder.copy(self._places[[source_place]], self._places[[target_place]], n_tokens)
        self._integers[target_place] = self._integers[source_place]
        self._log_prob[target_place] = self._log_prob[source_place]
        self._tokens[target_place] = self._tokens[source_place]

    def _target(self, place: int) -> list[int]:
        target: list[int] = self._tokens[place, : self._length[place]].tolist()
        return target
