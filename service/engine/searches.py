"""Greedy search and beam search in one engine, each over decoder rows of its own.

Cross-attention multiplies one query by another kernel than several, in half the time, and its sums end in other bits. A
sequence must not notice who shares its steps, so those with a beam of one never share them with wider ones.
"""

from service.engine.beam_search import BeamSearch, Search
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Sequence


class Searches:
    """The computation of a translation engine: a step is one of greedy search, one of beam search, or both."""

    def __init__(self, greedy: GreedySearch, beams: BeamSearch) -> None:
        self._greedy, self._beams = _Share(greedy), _Share(beams)
        self._in_places: list[Sequence[Search]] = []

    def warm_up(self) -> None:
        """One source, one step, of each."""
        self._truncate(0)
        for share in (self._greedy, self._beams):
            share.computation.warm_up()

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        """Read the sources; each begins as one hypothesis."""
        self._truncate(first_place)
        greedy = [sequence for sequence in sequences if sequence.output.beam_size == 1]
        wider = [sequence for sequence in sequences if sequence.output.beam_size > 1]
        for share, newcomers in ((self._greedy, greedy), (self._beams, wider)):
            if newcomers:
                share.computation.prefill(len(share.running), newcomers)
        self._greedy.running += greedy
        self._beams.running += wider
        self._in_places += sequences

    def step(self, running: list[Sequence[Search]]) -> list[int]:
        """One more token for every hypothesis; how many there were in each kind of search."""
        self._truncate(len(running))
        shares = [share for share in (self._greedy, self._beams) if share.running]
        return [rows for share in shares for rows in share.computation.step(share.running)]

    def move(self, source_place: int, target_place: int) -> None:
        """The last sequence takes a free place."""
        self._truncate(source_place + 1)
        left = self._in_places[target_place]
        self._share(left).remove(left)
        self._in_places[target_place] = self._in_places.pop()

    def _truncate(self, n_places: int) -> None:
        """Forget the sequences from place `n_places` on, which have left."""
        if n_places == 0:  # whatever has failed before
            self._greedy.running.clear()
            self._beams.running.clear()
            self._in_places.clear()
        while len(self._in_places) > n_places:
            self._share(self._in_places[-1]).remove(self._in_places[-1])
            self._in_places.pop()

    def _share(self, sequence: Sequence[Search]) -> "_Share":
        return self._greedy if sequence.output.beam_size == 1 else self._beams


class _Share:
    """Those of one kind: running[i] is in place i of their computation."""

    def __init__(self, computation: GreedySearch | BeamSearch) -> None:
        self.computation = computation
        self.running: list[Sequence[Search]] = []

    def remove(self, sequence: Sequence[Search]) -> None:
        """The last one takes its place."""
        place, last = self.running.index(sequence), len(self.running) - 1
        if place != last:
            self.computation.move(last, place)
            self.running[place] = self.running[last]
        self.running.pop()
