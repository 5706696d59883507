"""Greedy search and beam search in one engine, each over decoder rows of its own.

For one query cross-attention uses another kernel than for several: it takes half the time, and its sums end in other
bits. An answer must not depend on what shares its steps, so a beam of one never shares steps with wider ones.
"""

from service.engine.beam_search import BeamSearch, Search
from service.engine.computation import Computation
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Sequence


class Searches:
    """The computation of a translation engine: a step is one of greedy search, one of beam search, or both."""

    def __init__(self, greedy: GreedySearch, beams: BeamSearch) -> None:
        self._searches: tuple[Computation[Search], Computation[Search]] = greedy, beams
        self._running: tuple[list[Sequence[Search]], list[Sequence[Search]]] = [], []
        """Of each search: running[i] is in its place i."""
        self._in_places: list[Sequence[Search]] = []

    def warm_up(self) -> None:
        self._truncate(0)
        for search in self._searches:
            search.warm_up()

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._truncate(first_place)
        greedy = [sequence for sequence in sequences if sequence.output.beam_size == 1]
        wider = [sequence for sequence in sequences if sequence.output.beam_size > 1]
        for search, running, newcomers in zip(self._searches, self._running, (greedy, wider), strict=True):
            if newcomers:
                search.prefill(len(running), newcomers)
        for running, newcomers in zip(self._running, (greedy, wider), strict=True):  # once both have read theirs
            running += newcomers
        self._in_places += sequences

    def step(self, running: list[Sequence[Search]]) -> list[int]:
        self._truncate(len(running))
        return [
            rows for search, own in zip(self._searches, self._running, strict=True) if own for rows in search.step(own)
        ]

    def move(self, source_place: int, target_place: int) -> None:
        self._truncate(source_place + 1)
        self._remove(self._in_places[target_place])
        self._in_places[target_place] = self._in_places.pop()

    def _truncate(self, n_places: int) -> None:
        """Forget the sequences from place `n_places` on, which have left."""
        if n_places == 0:  # whatever has failed before
            for running in (*self._running, self._in_places):
                running.clear()
        while len(self._in_places) > n_places:
            self._remove(self._in_places[-1])
            self._in_places.pop()

    def _remove(self, sequence: Sequence[Search]) -> None:
        """From its search, where the last one takes its place."""
        is_wider = sequence.output.beam_size > 1
        search, running = self._searches[is_wider], self._running[is_wider]
        place, last = running.index(sequence), len(running) - 1
        if place != last:
            search.move(last, place)
            running[place] = running[last]
        running.pop()
