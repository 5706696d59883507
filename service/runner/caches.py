"""The memory of decoder rows: keys and values of attention, one entry each, on the host or on a device.

Heads are apart from one another, (H,), in self-attention, and side by side, (), in cross-attention.

Legend: C caches, R rows, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

MIN_LENGTH = 32


def power_of_two(length: int) -> int:
    """`length` rounded up to a power of two, at least 32: few shapes are ever seen, and growing costs little."""
    return max(MIN_LENGTH, 1 << (length - 1).bit_length())


def quarter_power_of_two(length: int) -> int:
    """`length` rounded up to a multiple of a quarter of the power of two above it, at least of 8: little is padding."""
    step = max(8, (1 << (length - 1).bit_length()) // 4)
    return -(-length // step) * step


@dataclass(frozen=True)
class Lengths:
    """The lengths that caches are given.

    Attributes:
        bucket: from the length that is needed.
        spare: memory is given back when it has become so many times what would do.
    """

    bucket: Callable[[int], int]
    spare: float


COARSE_LENGTHS = Lengths(power_of_two, spare=3)
"""For attention that reads what is valid alone, and for devices, where new lengths cost more than padding."""
FINE_LENGTHS = Lengths(quarter_power_of_two, spare=1.5)
"""For attention that reads padding too. One to three percent of decoding went into what one long source had left."""


class Caches(Protocol):
    """(C, R, *heads, L, D) numbers, row-major, so that a graph can work on the first rows of each of C caches."""

    def address(self, cache: int) -> int:
        """Where row 0 of a cache begins, until the next resize."""

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of the first rows of a cache."""

    def resize(self, length: int, rows: int) -> None:
        """Change L, keeping what fits of the first `rows` rows. The rest is finite: attention may multiply it by 0."""


AnyCaches = TypeVar("AnyCaches", bound=Caches)


class CacheGroup(Generic[AnyCaches]):
    """The caches of one kind of attention, all of one length: key and value of every decoder layer.

    Attributes:
        names: of the caches.
        addresses: where row 0 of each begins.
        version: another one whenever memory has moved.
    """

    def __init__(self, names: Sequence[str], caches: AnyCaches, lengths: Lengths) -> None:
        self.names = names
        self.caches = caches
        self.addresses: list[int] = []
        self.length = 0
        self.version = 0
        self._lengths = lengths

    def fit(self, needed: int, rows: int) -> None:
        """Give the first `rows` rows, which are in use, `needed` columns.

        Memory that was needed once is given back when no row is in use, or when much less would do.
        """
        length = self._lengths.bucket(needed)
        if length == self.length or (length < self.length < self._lengths.spare * length and rows > 0):
            return
        self.length = 0  # until they are resized, should that raise
        self.version += 1
        self.caches.resize(length, rows)
        self.addresses = [self.caches.address(cache) for cache in range(len(self.names))]
        self.length = length


class HostCaches:
    """In main memory, through numpy. One buffer serves every length: memory that is new to the process is slow."""

    def __init__(self, n_caches: int, n_rows: int, heads: tuple[int, ...], width: int) -> None:
        self._buffer = np.zeros(0, np.float32)
        self._rows = self._buffer.reshape(n_caches, n_rows, *heads, 0, width)

    def address(self, cache: int) -> int:
        return int(self._rows[cache].ctypes.data)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._rows.shape[2:]

    def resize(self, length: int, rows: int) -> None:
        *outer, old_length, width = self._rows.shape
        n_kept = min(length, old_length)
        kept = self._rows[:, :rows, ..., :n_kept, :].copy()
        shape = (*outer, length, width)
        size = math.prod(shape)
        if size > len(self._buffer):
            self._buffer = np.zeros(size, np.float32)
        self._rows = self._buffer[:size].reshape(shape)
        self._rows[:, :rows, ..., :n_kept, :] = kept

    def write(self, cache: int, first_row: int, block: NDArray[np.float32]) -> None:
        """Copy a block (B, *heads, K, D), K <= L, into the rows of a cache from `first_row` on."""
        B, K = block.shape[0], block.shape[-2]
        self._rows[cache, first_row : first_row + B, ..., :K, :] = block

    def copy(self, source_rows: list[int], target_rows: list[int], n_columns: int) -> None:
        """Copy the first columns of rows over other rows of the same cache; none of these is also copied from."""
        columns = self._rows[..., :n_columns, :]
        # Most often they are few, and a row is copied faster by itself than what indices choose.
        for source, target in zip(source_rows, target_rows, strict=True):
            columns[:, target] = columns[:, source]
