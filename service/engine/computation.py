"""What an engine runs: the contract between the worker thread's loop and a task."""

from typing import Generic, Protocol, TypeVar

from service.engine.scheduler import Sequence

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over running sequences, each in its place.

    Every call comes from one thread; any may raise, and the next call must still work.
    """

    def warm_up(self) -> None:
        """One real forward pass; only called while nothing runs."""

    def prefill(self, first_place: int, sequences: list[Sequence[Output]], /) -> None:
        """Read the sources, one into each place from `first_place` on; may finish them."""

    def step(self, running: list[Sequence[Output]], /) -> list[int]:
        """Advance running[i], which is in place i, by one token; may finish some. Returns the rows of each pass."""

    def move(self, source_place: int, target_place: int, /) -> None:
        """Copy what is in a place over another one."""


class Pass(Protocol[Output]):
    """A forward pass that does all that there is to do for a sequence."""

    def warm_up(self) -> None:
        """One real forward pass."""

    def read(self, sequences: list[Sequence[Output]], /) -> None:
        """Fill in the outputs of all."""


class OnePass(Generic[Output]):
    """Runs such a pass: a sequence is finished as soon as it is read."""

    def __init__(self, whole: Pass[Output]) -> None:
        self._whole = whole

    def warm_up(self) -> None:
        self._whole.warm_up()

    def prefill(self, _first_place: int, sequences: list[Sequence[Output]]) -> None:
        self._whole.read(sequences)
        for sequence in sequences:
            sequence.finished = True

    def step(self, _running: list[Sequence[Output]]) -> list[int]:
        raise AssertionError("one pass has no steps: prefill finishes its sequences")

    def move(self, _source_place: int, _target_place: int) -> None:
        """Nothing is kept in places."""
