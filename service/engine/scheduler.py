"""Who waits and who runs: continuous batching in plain Python.

A sequence waits, is admitted, runs and leaves. Large requests let others pass, so that one of a thousand sentences
holds up nobody. `running[i]` is always in place i, so that the places in use are the first ones; when a sequence
leaves, the last one moves into its place. A slot is one decoder row.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from service.base.errors import QueueFull

Output = TypeVar("Output")

ADMISSION_WINDOW = 64
"""How many waiting sequences one admission looks at."""

READ_TOGETHER = 6
"""An admission waits until so many sequences can enter together, within three quarters of the slots. Between decoder
steps the encoder's weights leave the CPU's caches; fetching them takes as long as reading two more sentences."""

TOGETHER, STRIDE = 64, 4
"""The first TOGETHER sequences of a request wait in line where it came; the rest, and patient ones, let STRIDE - 1
others pass before each (stride scheduling; Waldspurger and Weihl 1995)."""


@dataclass(eq=False)
class Sequence(Generic[Output]):
    """One piece of a request's work: tokens in, and an output that is filled in until it is finished."""

    source_ids: list[int]
    output: Output
    slots: int = 1
    """Most decoder rows that it takes."""
    n_target: int = 0
    """Target tokens, if a target is read with the source."""
    patient: bool = False
    """Whether it lets others pass from the first on: it is one of many, and asked for beside an answer."""
    accepted: bool = False
    """Whether it is more work for a request that was accepted, and so not refused any more."""
    finished: bool = False
    turn: int = 0
    """While it waits: the smallest turn is next."""
    state: Any = None
    """What its computation knows of it while it runs."""

    @property
    def work(self) -> int:
        """What it costs, roughly: a target is about as long as its source."""
        return len(self.source_ids) * self.slots

    @property
    def length(self) -> int:
        """The length that a batch is padded to if this is its longest sequence."""
        return max(len(self.source_ids), self.n_target)


class Scheduler(Generic[Output]):
    """Admits the next in line first, with others of its length, within the slots and a budget of padded tokens.

    Args:
        slots: decoder rows that those running may take together.
        max_waiting: a request is refused if so many sequences would be before its last one.
        prefill_padded_tokens: budget of one admission, longest sequence x count; a longer one is admitted alone.
        most_padding: tokens of padding that cost less than another forward pass.
    """

    def __init__(
        self, slots: int, max_waiting: int, prefill_padded_tokens: int, most_padding: float = math.inf
    ) -> None:
        self.slots = slots
        self.max_waiting = max_waiting
        self.prefill_padded_tokens = prefill_padded_tokens
        self.most_padding = most_padding
        self.waiting: list[Sequence[Output]] = []
        self.running: list[Sequence[Output]] = []
        self._virtual_time = 0
        """The turn of a sequence that comes now."""

    def add(self, sequences: SequenceOf[Sequence[Output]]) -> None:
        """Let the sequences of one request wait, all or none.

        What counts is how many sequences of other requests would be before its last one. So a request of one sequence
        is let in while a request of thousands waits, and a request of many is not refused for ever.

        Raises:
            QueueFull: with the numbers.
        """
        turn_of, now = attrgetter("turn"), self._virtual_time
        sequences = sorted(sequences, key=attrgetter("patient"))
        in_line = [0 if sequence.patient else TOGETHER for sequence in sequences]
        turns = [now + (n + (i - n) * STRIDE if i >= n else 0) for i, n in enumerate(in_line)]
        before = bisect_right(self.waiting, turns[-1] if turns else now, key=turn_of)
        if before >= self.max_waiting and not any(sequence.accepted for sequence in sequences):
            raise QueueFull(
                f"The queue is full: {before} sequences would be before it; the limit is {self.max_waiting}"
            )
        for sequence, turn in zip(sequences, turns, strict=True):
            sequence.turn = turn
            insort(self.waiting, sequence, key=turn_of)

    def admit(self) -> list[Sequence[Output]]:
        """Take from the waiting what fits, the shortest first; it runs once `start` is told so.

        The next in line is always among them, or nothing is admitted, so that nobody starves. It is joined by those
        after it that are nearest to its own length, so that little of the batch is padding.
        Nobody enters while less than a quarter of the slots is free, or while more wait than could enter together, up
        to `READ_TOGETHER`: reading a few sources at a time costs much more than reading them together.
        """
        if not self.waiting:
            return []
        first = self.waiting[0]
        together = min(len(self.waiting), READ_TOGETHER) * first.slots
        needed = max(first.slots, self.slots // 4, min(together, self.slots * 3 // 4))
        free = self.slots - len(self.running)  # at most: each takes a slot or more
        if free >= needed:
            free = self.slots - sum(sequence.slots for sequence in self.running)
        return self.take(free) if free >= needed else []

    def take(self, free: int, most: int = ADMISSION_WINDOW) -> list[Sequence[Output]]:
        """The same without asking whether that is worth a pass. The next in line must fit.

        Args:
            free: slots that they may take.
            most: how many may enter, and how many are looked at.
        """
        first, *others = self.waiting[:most]
        others.sort(key=lambda sequence: abs(sequence.length - first.length))
        admitted: list[Sequence[Output]] = []
        longest = 0
        for sequence in (first, *others):
            longest = max(longest, sequence.length)
            free -= sequence.slots
            if admitted and (free < 0 or longest * (len(admitted) + 1) > self.prefill_padded_tokens):
                break
            admitted.append(sequence)
        self.withdraw(admitted)
        # A large request that ran while nobody else waited is not held back for that afterwards.
        self._virtual_time = max(self._virtual_time, first.turn) + len(admitted)
        return sorted(admitted, key=attrgetter("length"))

    def batches(self, admitted: SequenceOf[Sequence[Output]]) -> Iterator[list[Sequence[Output]]]:
        """Newcomers, the shortest first, in batches of similar lengths, which are read together."""
        batch: list[Sequence[Output]] = []
        padding = 0
        for sequence in admitted:
            if batch:
                padding += len(batch) * (sequence.length - batch[-1].length)
            if padding > self.most_padding:
                yield batch
                batch, padding = [], 0
            batch.append(sequence)
        if batch:
            yield batch

    def start(self, sequences: Iterable[Sequence[Output]]) -> None:
        """Run them in the next free places, in order."""
        self.running.extend(sequences)

    def withdraw(self, sequences: Collection[Sequence[Output]]) -> None:
        """Forget those that still wait."""
        leaving = set(sequences)
        self.waiting = [sequence for sequence in self.waiting if sequence not in leaving]

    def evict(self, sequences: Collection[Sequence[Output]]) -> list[tuple[int, int, Sequence[Output]]]:
        """Free the places of those that run, and keep the rest compact: what is in the first place of each move
        returned must be copied over the second, in order; it is of the third."""
        leaving = set(sequences)
        moves = []
        for place in reversed(range(len(self.running))):
            if self.running[place] in leaving:
                last = self.running.pop()
                if place != len(self.running):
                    self.running[place] = last
                    moves.append((len(self.running), place, last))
        return moves
