"""Greedy search inside continuous batching: one decoder row for every sequence, its place.

It gives what beam search with a beam of one gives, for less work: nothing is selected, and no row changes hands.
"""

from service.contract import DecoderRows
from service.engine.beam_search import Hypothesis, Search, is_runaway, reason_of, repetition_check_due
from service.engine.scheduler import Sequence


class GreedySearch:
    """The computation of sequences with a beam of one: running[i] is in place i, and in row i.

    Args:
        rows: enough for all that run at once.
    """

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos
        # Of each place:
        self._targets: list[list[int]] = []
        """Beginning of sequence included."""
        self._log_probs: list[float] = []

    def warm_up(self) -> None:
        self._decoder.encode(0, [[self._eos]])
        self._decoder.step([self._bos], [0], [[0]], [0], 2)

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._truncate(first_place)
        self._decoder.encode(first_place, [sequence.source_ids for sequence in sequences])
        self._targets += [[self._bos] for _ in sequences]
        self._log_probs += [0.0] * len(sequences)

    def step(self, running: list[Sequence[Search]]) -> list[int]:
        N = len(running)
        self._truncate(N)
        token_ids = [target[-1] for target in self._targets]
        positions = [len(target) - 1 for target in self._targets]
        places = list(range(N))
        k = 2 if 0 in positions else 1
        best, log_probs = self._decoder.step(token_ids, positions, [[place] for place in places], places, k)
        for place, sequence in enumerate(running):
            choice = int(positions[place] == 0 and best[place][0] == self._eos)  # a translation is never empty
            self._log_probs[place] += log_probs[place][choice]
            self._append(sequence, self._targets[place], best[place][choice], self._log_probs[place])
        return [N]

    def move(self, source_place: int, target_place: int) -> None:
        n_tokens = len(self._targets[source_place]) - 1
        self._decoder.move(source_place, target_place)
        self._decoder.copy([source_place], [target_place], n_tokens)
        self._targets[target_place] = self._targets[source_place]
        self._log_probs[target_place] = self._log_probs[source_place]
        self._truncate(source_place)

    def _truncate(self, n_places: int) -> None:
        """Forget the sequences from place `n_places` on, which have left."""
        del self._targets[n_places:], self._log_probs[n_places:]

    def _append(self, sequence: Sequence[Search], target: list[int], token: int, log_prob: float) -> None:
        target.append(token)
        length, limit = len(target) - 1, sequence.output.max_target_tokens
        runaway = repetition_check_due(length) and is_runaway(target[1:], len(sequence.source_ids))
        if token == self._eos or length == limit or runaway:
            reason = reason_of(target[1:], self._eos, limit)
            sequence.output.finished.append(Hypothesis(target[1:], log_prob, reason))
            sequence.finished = True
