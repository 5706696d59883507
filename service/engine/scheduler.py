"""The scheduler of continuous batching, in plain Python: which sequences wait, and which run.

A sequence waits, is admitted, runs and leaves. Large requests let others pass, so that a request of one thousand
sentences does not delay the others; so do clients with many requests.

A place is an index into the running sequences: `running[i]` is in place i. The places in use are always the first
ones; when a sequence leaves, the last one moves into its place. A running sequence takes one decoder row or several.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from service.base.backlog import Backlog

Output = TypeVar("Output")

_TURN, _BACKGROUND = attrgetter("turn"), attrgetter("background")

ADMISSION_WINDOW = 64
"""How many waiting sequences one admission considers, or more if all rows hold more."""
BURST, STRIDE = 64, 4
"""The first BURST sequences of a request are queued in order of arrival. The rest, and background ones, let
STRIDE - 1 others pass before each (stride scheduling; Waldspurger and Weihl 1995). The same holds for the sequences of
a client: while BURST of them wait or were served just now, each further one lets others pass."""
MAX_CLIENTS = 1000
"""Limit of remembered clients; beyond it, clients whose burst is full again are forgotten."""


@dataclass(eq=False)
class Sequence(Generic[Output]):
    """One piece of a request's work: source tokens, and an output that its computation fills in."""

    source_ids: list[int]
    output: Output
    n_rows: int = 1
    """Most decoder rows that the sequence takes."""
    n_target: int = 0
    """Number of target tokens, if a target is read together with the source."""
    background: bool = False
    """Whether nobody waits for the sequence right now: it gives way to others."""
    accepted: bool = False
    """Whether the sequence belongs to a request that was accepted before, and so is never refused."""
    client: str | None = None
    """Who sent the request; None: nobody in particular."""
    finished: bool = False
    failure: Exception | None = None
    """Why the sequence is finished without an output, if it failed alone."""
    turn: int = 0
    """Position in the queue while the sequence waits: the smallest turn is next."""
    state: Any = None
    """State of the computation while the sequence runs."""

    @property
    def work(self) -> int:
        """Approximate cost: a target is about as long as its source."""
        return len(self.source_ids) * self.n_rows

    @property
    def length(self) -> int:
        """The length to which a batch is padded if this is its longest sequence."""
        return max(len(self.source_ids), self.n_target)


class Scheduler(Generic[Output]):
    """Admits the next sequence in line, together with others of similar length, within a number of rows and a budget of
    padded tokens.

    Args:
        max_rows: most decoder rows that the running sequences take together.
        max_waiting: a request is refused if this many sequences would be before its last one.
        prefill_padded_tokens: budget of one admission, longest sequence x count; a longer sequence is admitted alone.
        max_padding: number of padding tokens that cost less than another forward pass.
    """

    def __init__(
        self, max_rows: int, max_waiting: int, prefill_padded_tokens: int, max_padding: float = math.inf
    ) -> None:
        self.max_rows = max_rows
        self.max_waiting = max_waiting
        self.prefill_padded_tokens = prefill_padded_tokens
        self.max_padding = max_padding
        self.waiting: list[Sequence[Output]] = []
        self.running: list[Sequence[Output]] = []
        self._virtual_time = 0
        """The turn of a sequence that arrives now."""
        self._due: dict[str, int] = {}
        """The turn at which each client has its whole burst again."""

    def add(self, sequences: SequenceOf[Sequence[Output]], backlog_of: Callable[[int], Backlog] = Backlog) -> None:
        """Queue the sequences of one request, all or none. Sequences of other requests count if they would be before
        its last one. So a request of one sequence is accepted while a request of thousands waits, and a large request
        is not refused for ever. Raises QueueFull: too many sequences would be before the last one.

        Args:
            backlog_of: returns the backlog ahead of the last sequence, by the number of waiting sequences in front. It
                may refuse the request.
        """
        sequences = sorted(sequences, key=_BACKGROUND)
        turns = self._turns(sequences)
        if not any(sequence.accepted for sequence in sequences):
            backlog_of(self._n_before(turns)).refuse_beyond(self.max_waiting)
        for sequence, turn in zip(sequences, turns, strict=True):
            sequence.turn = turn
            insort(self.waiting, sequence, key=_TURN)
        if sequences and (client := sequences[0].client) is not None:
            n_in_line = min(BURST, sum([not sequence.background for sequence in sequences]))
            self._due[client] = max(self._virtual_time, self._due.get(client, 0)) + n_in_line * STRIDE
            if len(self._due) > MAX_CLIENTS:
                self._due = {client: due for client, due in self._due.items() if due > self._virtual_time}

    def n_before(self, sequences: SequenceOf[Sequence[Output]] = ()) -> int:
        """Return how many waiting sequences would be before the last one of a request; by default before the first one
        of a client that has sent nothing else."""
        return self._n_before(self._turns(sorted(sequences, key=_BACKGROUND)))

    def _n_before(self, turns: list[int]) -> int:
        return bisect_right(self.waiting, turns[-1] if turns else self._virtual_time, key=_TURN)

    def _turns(self, sequences: SequenceOf[Sequence[Output]]) -> list[int]:
        """Return the turn of each sequence of a request; background sequences come last."""
        now = self._virtual_time
        client = sequences[0].client if sequences else None
        due = now if client is None else max(now, self._due.get(client, 0))
        first = max(now, due - BURST * STRIDE)
        in_line = [0 if sequence.background else BURST for sequence in sequences]
        return [
            max(first + n, due) + (i - n) * STRIDE if i >= n else max(now, due + (i - BURST) * STRIDE)
            for i, n in enumerate(in_line)
        ]

    @property
    def n_free_rows(self) -> int:
        """Number of rows that no running sequence takes."""
        return self.max_rows - sum([sequence.n_rows for sequence in self.running])

    def admit(self) -> list[Sequence[Output]]:
        """Remove sequences that are encoded now from the queue, and return them, the shortest first.

        Nothing is admitted until there is room for the next in line. Then as many are admitted as all rows hold, and
        those for which there is no room yet wait encoded. A pass over many sources costs less than several passes: the
        encoder's weights leave the CPU's caches between decoder steps.
        """
        if not self.waiting or self.n_free_rows < self.waiting[0].n_rows:
            return []
        most = max(1, self.max_rows // self.waiting[0].n_rows)
        return self.take(math.inf, max(most, ADMISSION_WINDOW), most)

    def take(self, free: float, window: int, most: float = math.inf) -> list[Sequence[Output]]:
        """Admit the next in line, which must fit, and later sequences whose length is nearest to its own, so that there
        is little padding and no sequence starves.

        Args:
            free: number of free rows.
            window: how many waiting sequences are considered.
            most: most sequences that are admitted.
        """
        first, *others = self.waiting[:window]
        others.sort(key=lambda sequence: abs(sequence.length - first.length))
        admitted: list[Sequence[Output]] = []
        longest = 0
        for sequence in (first, *others):
            longest = max(longest, sequence.length)
            free -= sequence.n_rows
            n = len(admitted) + 1
            if admitted and (free < 0 or n > most or longest * n > self.prefill_padded_tokens):
                break
            admitted.append(sequence)
        self.withdraw(admitted)
        # A large request that ran while nothing else waited is not held back for that afterwards.
        self._virtual_time = max(self._virtual_time, first.turn) + len(admitted)
        return sorted(admitted, key=attrgetter("length"))

    def batches(self, admitted: SequenceOf[Sequence[Output]]) -> Iterator[list[Sequence[Output]]]:
        """Split admitted sequences, the shortest first, into batches of similar lengths, each for one encoder pass."""
        batch: list[Sequence[Output]] = []
        padding = 0
        for sequence in admitted:
            if batch:
                padding += len(batch) * (sequence.length - batch[-1].length)
            if padding > self.max_padding:
                yield batch
                batch, padding = [], 0
            batch.append(sequence)
        if batch:
            yield batch

    def withdraw(self, sequences: Collection[Sequence[Output]]) -> None:
        """Remove sequences from the queue; those that do not wait are ignored."""
        leaving = set(sequences)
        self.waiting = [sequence for sequence in self.waiting if sequence not in leaving]

    def evict(
        self, sequences: Collection[Sequence[Output]], move: Callable[[int, int, Sequence[Output]], None]
    ) -> None:
        """Free the places of running sequences, and keep the rest without gaps. `move` copies the state of a sequence
        from its place to another place."""
        leaving = set(sequences)
        for place in reversed(range(len(self.running))):
            if self.running[place] in leaving:
                last = self.running.pop()
                if place != len(self.running):
                    self.running[place] = last
                    move(len(self.running), place, last)
