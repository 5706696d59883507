"""What an engine runs: the contract between the worker thread's loop and a task."""

from typing import Protocol, TypeVar

from service.scheduler import Sequence

Output = TypeVar("Output")


class Computation(Protocol[Output]):
    """Forward passes over slots. Every call comes from one thread; any may raise, and the next call must still work."""

    def warm_up(self) -> None:
        """One real forward pass; only called while no slot is taken."""

    def prefill(self, first_slot: int, sequences: list[Sequence[Output]], /) -> None:
        """Read the sources, one into each slot from `first_slot` on; may finish them."""

    def step(self, running: list[Sequence[Output]], /) -> None:
        """Advance running[i], which is in slot i, by one token; may finish some."""

    def move(self, source_slot: int, target_slot: int, /) -> None:
        """Copy a slot over another one."""
