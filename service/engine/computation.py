"""The contract between an engine and the computation of a task."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from service.engine.scheduler import Sequence

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over running sequences, each in its place. `sequence.state` holds the state of a sequence.

    Any call may raise, and the next one must still work.
    """

    def warm_up(self) -> None:
        """Run one real forward pass; only called while nothing runs."""

    def prefill(self, first_place: int, sequences: list[Sequence[Output]], /) -> None:
        """Encode the sources, one into each place from `first_place` on; this may finish sequences."""

    def step(self, running: list[Sequence[Output]], /) -> int:
        """Advance running[i], which is in place i, by one token; this may finish sequences. Return the number of rows
        of the pass."""

    def move(self, source_place: int, target_place: int, sequence: Sequence[Output], /) -> None:
        """Copy the state of a sequence from its place to another place."""


RunPass = Callable[[list[Sequence[Output]]], None]
"""Runs one forward pass that does all work of some sequences, and fills in their outputs."""


class OnePass(Generic[Output]):
    """The computation of sequences that a single forward pass finishes.

    Args:
        new_probe: returns a sequence with which to prove that the pass works.
    """

    def __init__(self, run: RunPass[Output], new_probe: Callable[[], Sequence[Output]]) -> None:
        self._run = run
        self._new_probe = new_probe

    def warm_up(self) -> None:
        self._run([self._new_probe()])

    def prefill(self, _first_place: int, sequences: list[Sequence[Output]]) -> None:
        self._run(sequences)
        for sequence in sequences:
            sequence.finished = True

    def step(self, _running: list[Sequence[Output]]) -> int:
        raise AssertionError("a single pass has no steps: prefill finishes its sequences")

    def move(self, _source_place: int, _target_place: int, _sequence: Sequence[Output]) -> None:
        """Do nothing: no state is kept in places."""
