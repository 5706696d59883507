"""What an engine runs: the contract between its places and a task."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from service.engine.scheduler import Sequence

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over running sequences, each in its place.

    Any call may raise, and the next one must still work. What a computation knows of a sequence is in `sequence.state`.
    """

    def warm_up(self) -> None:
        """One real forward pass; only called while nothing runs."""

    def prefill(self, first_place: int, sequences: list[Sequence[Output]], /) -> None:
        """Read the sources, one into each place from `first_place` on; may finish them."""

    def step(self, running: list[Sequence[Output]], /) -> int:
        """Advance running[i], which is in place i, by one token; may finish some. Returns the rows of the pass."""

    def move(self, source_place: int, target_place: int, sequence: Sequence[Output], /) -> None:
        """Copy what is in a place, which is of this sequence, over another place."""


Read = Callable[[list[Sequence[Output]]], None]
"""One forward pass that does all that there is to do for sequences, and fills in their outputs."""


class OnePass(Generic[Output]):
    """The computation of such a pass: a sequence is finished as soon as it is read.

    Args:
        new_probe: makes a sequence that proves the pass.
    """

    def __init__(self, read: Read[Output], new_probe: Callable[[], Sequence[Output]]) -> None:
        self._read = read
        self._new_probe = new_probe

    def warm_up(self) -> None:
        self._read([self._new_probe()])

    def prefill(self, _first_place: int, sequences: list[Sequence[Output]]) -> None:
        self._read(sequences)
        for sequence in sequences:
            sequence.finished = True

    def step(self, _running: list[Sequence[Output]]) -> int:
        raise AssertionError("one pass has no steps: prefill finishes its sequences")

    def move(self, _source_place: int, _target_place: int, _sequence: Sequence[Output]) -> None:
        """Nothing is kept in places."""
