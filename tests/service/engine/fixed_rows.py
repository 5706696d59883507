"""A fake decoder with fixed rows, and a loop in which sequences enter and leave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.base.contract import FixedRows, IntArray
from service.engine.engine import Admitted, Engine, Failed, Finished, Outcome, Ran
from service.engine.fixed_beam_search import FixedBeamSearch
from service.engine.fixed_engine import FixedComputation, FixedEngine
from service.engine.fixed_greedy_search import FixedGreedySearch
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from tests.service.engine.test_beam_search import BOS, RUBBISH, next_log_probs

Array = NDArray[Any]
KINDS = ["greedy", "greedy ahead", "beam", "beam ahead"]


class Rows:
    """Checks the contract of `FixedRows`: a cache holds tokens, and rows that are not in use hold rubbish. The call
    named by `failing` raises."""

    def __init__(self, n_rows: int, n_places: int) -> None:
        self._sources: list[tuple[int, ...] | None] = [None] * n_places
        self._tokens = np.full((n_rows, 128), RUBBISH)
        self.failing: str | None = None
        self.n_launched = self.n_fetched = 0
        self.shapes: set[tuple[int, ...]] = set()

    def warm_up(self) -> list[int]:
        self._enter("warm_up")
        return [1, 3]

    def encode(self, places: IntArray, sources: list[list[int]]) -> None:
        assert all(self._sources[place] is None for place in places), "newcomers are put into empty places"
        assert len(set(places.tolist())) == len(places) == len(sources)
        self._enter("encode")
        for place, source in zip(places.tolist(), sources, strict=True):
            self._sources[place] = tuple(source)

    def launch(
        self, token_ids: IntArray, positions: IntArray, rows_of_sources: IntArray, places_of_rows: IntArray, k: int
    ) -> None:
        self._enter("launch")
        self.n_launched += 1
        (M, R), (N, W) = positions.shape, rows_of_sources.shape
        self.shapes.add((M, R, N, W, k))
        assert token_ids.shape == places_of_rows.shape == (R,)
        assert rows_of_sources.min() >= 0
        assert rows_of_sources.max() < R
        assert not any(self._sources[N:]), "a step goes over all that run"
        assert M == 1 or k == 1
        found = []
        for at in positions:
            self._tokens[np.arange(R), at] = token_ids
            log_probs = np.stack([self._next(row, int(places_of_rows[row]) // W, int(at[row])) for row in range(R)])
            best = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
            for row in np.flatnonzero(at):
                assert rows_of_sources.ravel()[places_of_rows[row]] == row, "a row is a query of its own source"
            found.append((best, np.take_along_axis(log_probs, best, axis=1)))
            token_ids = best[:, 0]
        self._found = np.stack([best for best, _ in found]), np.stack([log_probs for _, log_probs in found])

    def fetch(self) -> tuple[IntArray, NDArray[np.float32]]:
        self._enter("fetch")
        self.n_fetched += 1
        return self._found

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        assert len(source_rows) == len(target_rows) == len(set(target_rows.tolist())) > 0
        assert not set(source_rows.tolist()) & set(target_rows.tolist()), "no row is copied over and copied from"
        self._enter("copy")
        self._tokens[target_rows] = self._tokens[source_rows]

    def leave(self, places: IntArray) -> None:
        for place in places.tolist():
            self._sources[place] = None

    def clean(self) -> None:
        self._enter("clean")

    def _next(self, row: int, place: int, position: int) -> Array:
        source, tokens = self._sources[place], self._tokens[row, : position + 1].tolist()
        if source is None:
            assert position == 0, "what is not in use is fed at position 0"
            return np.zeros_like(next_log_probs((4,), ()))
        if tokens[0] != BOS:
            assert position == 0
        assert RUBBISH not in tokens
        return next_log_probs(source, tuple(tokens[1:]))

    def _enter(self, call: str) -> None:
        if call == self.failing:
            raise RuntimeError("told to fail")


def fixed_engine(
    kind: str, rows: FixedRows, n_rows: int, special: tuple[int, int, int], prefill_padded_tokens: int
) -> FixedEngine[Search]:
    """An engine of a kind of search; "ahead" is one that launches the next step early."""
    make = FixedBeamSearch if kind.startswith("beam") else FixedGreedySearch
    search: FixedComputation[Search] = make(rows, n_rows, *special, ahead=kind.endswith("ahead"))
    return FixedEngine(search, Scheduler(n_rows, max_waiting=1000, prefill_padded_tokens=prefill_padded_tokens))


def searched_by(kind: str, everybody: list[Sequence[Search]]) -> list[Sequence[Search]]:
    """The sequences as this kind of search takes them: greedy search has a single hypothesis."""
    if kind.startswith("beam"):
        return everybody
    kept = ("once_tokens", "scored", "may_end")
    options = [{name: getattr(sequence.output, name) for name in kept} for sequence in everybody]
    return [
        Sequence(sequence.source_ids, Search(sequence.output.max_target_tokens, **of_sequence))
        for sequence, of_sequence in zip(everybody, options, strict=True)
    ]


def search_all(
    engine: Engine[Search], everybody: list[Sequence[Search]], rng: np.random.Generator, leaving: float = 0.0
) -> set[Sequence[Search]]:
    """Run sequences through an engine; a few enter at a time.

    Args:
        leaving: the probability with which a sequence is cancelled before a step, whether it waits or runs; and another
            one whenever it is told of a pass.

    Returns:
        Those that were cancelled, or failed.
    """
    pending, inside = list(everybody), set[Sequence[Search]]()
    gone = set[Sequence[Search]]()

    def cancel_some(sequences: list[Sequence[Search]]) -> None:
        cancelled = [sequence for sequence in sequences if sequence in inside and rng.random() < leaving]
        engine.cancel(cancelled)
        inside.difference_update(cancelled)
        gone.update(cancelled)

    def tell(outcome: Outcome[Search]) -> None:
        sequences = [sequence for sequence in outcome.sequences if sequence not in gone]
        match outcome:
            case Admitted() | Ran():
                cancel_some(sequences)
            case Finished():
                assert inside.issuperset(sequences), "each is told once, and no other"
                inside.difference_update(sequences)
            case Failed():
                assert inside.issuperset(sequences)
                inside.difference_update(sequences)
                gone.update(sequences)

    while pending or inside:
        n_new = int(rng.integers(0, 4))
        engine.scheduler.add(pending[:n_new])
        inside.update(pending[:n_new])
        del pending[:n_new]
        cancel_some(everybody)
        engine.step(tell)
    assert not engine.n_running
    assert not engine.scheduler.waiting
    return gone
