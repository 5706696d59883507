"""What an engine runs: the contract between the worker thread's loop and a task."""

from typing import Protocol, TypeVar

from service.scheduler import Sequence

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over running sequences, each in its place.

    Every call comes from one thread; any may raise, and the next call must still work.
    """

    def warm_up(self) -> None:
        """One real forward pass; only called while nothing runs."""

    def prefill(self, first_place: int, sequences: list[Sequence[Output]], /) -> None:
        """Read the sources, one into each place from `first_place` on; may finish them."""

    def step(self, running: list[Sequence[Output]], /) -> int:
        """Advance running[i], which is in place i, by one token, and may finish some; how many rows that took."""

    def move(self, source_place: int, target_place: int, /) -> None:
        """Copy what is in a place over another one."""
