"""Places of a device's engine: which sequence is in which, and the arrays of what has been written in rows.

Legend: M targets, T tokens.
"""

from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.base.contract import IntArray
from service.engine.scheduler import Sequence
from service.engine.search import MIN_RUNAWAY_TOKENS, REPETITION_INTERVAL, is_runaway

Output = TypeVar("Output")
Booleans = NDArray[np.bool_]

STEP_SIZE_FACTOR, MIN_STEP_SIZE = 4, 8
"""A step runs over 8 rows or places, or 4 times as many, and so on. On a GPU a step of 64 rows took a tenth to a third
longer than a step of 8, and a step of 256 twice as long; each size has to be captured (docs/gpu.md)."""


def step_sizes(most: int) -> list[int]:
    """Return the numbers of rows, or of places, over which a step may run; the last one is at least `most`."""
    sizes = [MIN_STEP_SIZE]
    while sizes[-1] < most:
        sizes.append(min(most, sizes[-1] * STEP_SIZE_FACTOR))
    return sizes


def smallest_size(needed: int, sizes: Iterable[int]) -> int:
    """Return the smallest size that is enough."""
    return next(size for size in sizes if size >= needed)


class Places(Generic[Output]):
    """The running sequences by place."""

    def __init__(self, n: int) -> None:
        self.in_use: Booleans = np.zeros(n, np.bool_)
        self._place_of: dict[Sequence[Output], int] = {}
        self._sequences: list[Sequence[Output] | None] = [None] * n

    @property
    def running(self) -> Collection[Sequence[Output]]:
        return self._place_of.keys()

    @property
    def n_free(self) -> int:
        return len(self._sequences) - len(self._place_of)

    def first_empty(self, n: int) -> IntArray:
        """Return the first n empty places."""
        empty: IntArray = np.flatnonzero(~self.in_use)[:n]
        return empty

    def enter(self, sequence: Sequence[Output], place: int) -> None:
        self._place_of[sequence], self._sequences[place], self.in_use[place] = place, sequence, True

    def sequence(self, place: int) -> Sequence[Output]:
        sequence = self._sequences[place]
        assert sequence is not None, "the place is in use"
        return sequence

    def leave(self, sequences: Iterable[Sequence[Output]]) -> IntArray:
        """Empty the places of sequences, and return these places."""
        places = [self._place_of.pop(sequence) for sequence in sequences if sequence in self._place_of]
        for place in places:
            self._sequences[place] = None
        self.in_use[places] = False
        return np.array(places, np.int64)


def with_length(targets: IntArray, length: int) -> IntArray:
    """Return targets (M, T) with T at least `length`, and more if they have to be copied."""
    if length <= targets.shape[1]:
        return targets
    longer = np.zeros((len(targets), 1 << (length - 1).bit_length()), np.int64)
    longer[:, : targets.shape[1]] = targets
    return longer


def check_due(lengths: IntArray) -> Booleans:
    """Whether targets of these lengths are checked for runaway repetition."""
    due: Booleans = (lengths >= MIN_RUNAWAY_TOKENS) & (lengths % REPETITION_INTERVAL == 0)
    return due


def are_runaway(targets: IntArray, lengths: IntArray, n_sources: IntArray) -> Booleans:
    """Apply `is_runaway` to the first lengths[i] tokens of targets (M, T), whose source has n_sources[i] tokens."""
    runaway = np.zeros(len(targets), np.bool_)
    # In a repetition the last token also stands where the last period began. Few targets have that.
    back = np.arange(2, 2 + max(MIN_RUNAWAY_TOKENS, int(n_sources.max())) // 4)
    last = np.take_along_axis(targets, lengths[:, None] - 1, axis=1)
    before = np.take_along_axis(targets, np.maximum(lengths[:, None] - back, 0), axis=1)
    for i in np.flatnonzero((before == last).any(axis=1)):
        runaway[i] = is_runaway(targets[i, : lengths[i]].tolist(), int(n_sources[i]))
    return runaway
