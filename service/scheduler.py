"""Who waits and who runs: continuous batching in plain Python.

A sequence waits, is admitted, runs in a slot (one decoder row) and leaves. `running[i]` is always in slot i, so that
the rows in use are the first rows of every cache; when a row leaves, the last row moves into its place.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.errors import QueueFull

Output = TypeVar("Output")


@dataclass(eq=False)
class Sequence(Generic[Output]):
    """One piece of a request's work: tokens in, and an output that is filled in until it is finished."""

    source_ids: list[int]
    output: Output
    finished: bool = False


@dataclass(frozen=True)
class Move:
    """Row `source` must be copied over row `target`."""

    source: int
    target: int


class Scheduler(Generic[Output]):
    """First come, first served, within the slots and a budget of padded tokens per admission.

    Args:
        slots: most sequences running at once.
        max_waiting: sequences that may wait before further requests are refused.
        prefill_padded_tokens: budget of one admission, longest source x count; a longer source is admitted alone.
    """

    def __init__(self, slots: int, max_waiting: int, prefill_padded_tokens: int) -> None:
        self.slots = slots
        self.max_waiting = max_waiting
        self.prefill_padded_tokens = prefill_padded_tokens
        self.waiting: deque[Sequence[Output]] = deque()
        self.running: list[Sequence[Output]] = []

    def add(self, sequences: Iterable[Sequence[Output]]) -> None:
        """Let the sequences of one request wait, all or none.

        The last request let in may overshoot `max_waiting`: a request of many sequences must not be refused for ever.

        Raises:
            QueueFull: with the numbers.
        """
        if len(self.waiting) >= self.max_waiting:
            raise QueueFull(f"the queue is full: {len(self.waiting)} sequences wait, the limit is {self.max_waiting}")
        self.waiting.extend(sequences)

    def admit(self) -> list[Sequence[Output]]:
        """Take from the waiting what fits; it runs once `start` is told so."""
        admitted: list[Sequence[Output]] = []
        longest = 0
        while self.waiting and len(self.running) + len(admitted) < self.slots:
            longest = max(longest, len(self.waiting[0].source_ids))
            if admitted and longest * (len(admitted) + 1) > self.prefill_padded_tokens:
                break
            admitted.append(self.waiting.popleft())
        return admitted

    def start(self, sequences: Iterable[Sequence[Output]]) -> None:
        """Run them in the next free slots, in order."""
        self.running.extend(sequences)

    def withdraw(self, sequences: Collection[Sequence[Output]]) -> None:
        """Forget those that still wait."""
        leaving = set(sequences)
        self.waiting = deque(sequence for sequence in self.waiting if sequence not in leaving)

    def evict(self, sequences: Collection[Sequence[Output]]) -> list[Move]:
        """Free the slots of those that run, and keep the rest compact by the moves returned, to be done in order."""
        leaving = set(sequences)
        moves = []
        for slot in reversed(range(len(self.running))):
            if self.running[slot] in leaving:
                last = len(self.running) - 1
                if slot != last:
                    self.running[slot] = self.running[last]
                    moves.append(Move(source=last, target=slot))
                self.running.pop()
        return moves
