"""The memory of the slots: keys and values of attention, one row per slot, on the host or on a device.

Heads are apart from one another, (H,), in self-attention, and side by side, (), in cross-attention.

Legend: C caches, R slots, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike
from onnxruntime import InferenceSession, OrtValue

SHORTEST = 32


def power_of_two(length: int) -> int:
    """`length` rounded up to a power of two, at least 32: few shapes are ever seen, and growing costs little."""
    return max(SHORTEST, 1 << (length - 1).bit_length())


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


FEW_LENGTHS = Lengths(power_of_two, spare=3)
"""For attention that reads what is valid alone, and for devices, where new lengths cost more than padding."""
LITTLE_PADDING = Lengths(quarter_power_of_two, spare=1.5)
"""For attention that reads padding too. One to three percent of decoding went into what one long source had left."""


class CacheGroup:
    """The caches of one kind of attention, all of one length: key and value of every decoder layer.

    Attributes:
        names: of the caches.
        addresses: where row 0 of each begins.
        version: another one whenever memory has moved.
    """

    def __init__(self, names: Sequence[str], caches: "Caches", lengths: Lengths) -> None:
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

    def write(self, first_row: int, blocks: Iterable[OrtValue]) -> None:
        """Copy a block (B, *heads, K, D) into the rows of each cache from `first_row` on."""
        for cache, block in enumerate(blocks):
            self.caches.write(cache, first_row, block)


class Caches(Protocol):
    """(C, R, *heads, L, D) numbers, row-major, so that a graph can work on the first rows of each of C caches."""

    def address(self, cache: int) -> int:
        """Where row 0 of a cache begins, until the next resize."""

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of the first rows of a cache."""

    def resize(self, length: int, rows: int) -> None:
        """Change L, keeping what fits of the first `rows` rows. The rest is finite: attention may multiply it by 0."""

    def write(self, cache: int, first_row: int, block: OrtValue) -> None:
        """Copy a block (B, *heads, K, D), K <= L, into the rows of a cache from `first_row` on."""

    def copy(self, source_rows: list[int], target_rows: list[int], n_columns: int) -> None:
        """Copy the first columns, or more, of rows over other rows of the same cache; none of these is also copied
        from."""


class HostCaches:
    """In main memory, through numpy. One buffer serves every length: memory that is new to the process is slow."""

    def __init__(self, n_caches: int, slots: int, heads: tuple[int, ...], width: int, dtype: DTypeLike) -> None:
        self._buffer = np.zeros(0, dtype)
        self._rows = self._buffer.reshape(n_caches, slots, *heads, 0, width)

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
            self._buffer = np.zeros(size, self._buffer.dtype)
        self._rows = self._buffer[:size].reshape(shape)
        self._rows[:, :rows, ..., :n_kept, :] = kept

    def write(self, cache: int, first_row: int, block: OrtValue) -> None:
        values = block.numpy()
        B, K = values.shape[0], values.shape[-2]
        self._rows[cache, first_row : first_row + B, ..., :K, :] = values

    def copy(self, source_rows: list[int], target_rows: list[int], n_columns: int) -> None:
        columns = self._rows[..., :n_columns, :]
        # Most often they are few, and a row is copied faster by itself than what indices choose.
        for source, target in zip(source_rows, target_rows, strict=True):
            columns[:, target] = columns[:, source]


class DeviceCaches:
    """In a device's memory, the rows of one cache after those of another. They are copied there by the graphs of
    device_graphs.py, which see float32 words of any type. Each length has memory of its own, which it keeps: a captured
    graph finds its caches where they were.

    Args:
        device: ONNX Runtime's name of it, such as "cuda".
        copier, reorderer: sessions of the graphs WRITE and REORDER on that device.
    """

    def __init__(
        self,
        n_caches: int,
        slots: int,
        heads: tuple[int, ...],
        width: int,
        dtype: DTypeLike,
        device: str,
        copier: InferenceSession,
        reorderer: InferenceSession,
    ) -> None:
        column_bytes = width * np.dtype(dtype).itemsize
        assert column_bytes % 4 == 0, "a column is a whole number of float32 words"
        self._n_caches, self._slots, self._heads, self._width = n_caches, slots, heads, width
        self._n_heads, self._words = math.prod(heads), column_bytes // 4
        self._device = device
        self._copier, self._reorderer = copier, reorderer
        self._length = 0
        self._rows_of: dict[int, OrtValue] = {}
        """By length."""

    def address(self, cache: int) -> int:
        return self._address(self._length, cache)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._heads, self._length, self._width

    def resize(self, length: int, rows: int) -> None:
        if length not in self._rows_of:
            zeros = np.zeros(self._all_rows(length), np.float32)
            self._rows_of[length] = OrtValue.ortvalue_from_numpy(zeros, self._device, 0)
        old_length, self._length = self._length, length
        if old_length > 0 and rows > 0:
            for cache in range(self._n_caches):
                self._copy(cache, 0, rows, self._address(old_length, cache), old_length, min(length, old_length))

    def write(self, cache: int, first_row: int, block: OrtValue) -> None:
        B, *_, K, _ = block.shape()
        self._copy(cache, first_row, B, int(block.data_ptr()), K, K)

    def copy(self, source_rows: list[int], target_rows: list[int], n_columns: int) -> None:  # noqa: ARG002 (copies all)
        first_rows = np.arange(self._n_caches)[:, None] * self._slots
        memory = (self._device, 0, np.float32, self._all_rows(self._length), self.address(0))
        binding: Any = self._reorderer.io_binding()
        binding.bind_input("cache", *memory)
        binding.bind_output("copied", *memory)
        binding.bind_cpu_input("sources", (first_rows + source_rows).ravel())
        binding.bind_cpu_input("targets", (first_rows + target_rows).reshape(-1, 1))
        self._reorderer.run_with_iobinding(binding)

    def _copy(self, cache: int, first_row: int, rows: int, block: int, block_length: int, kept: int) -> None:
        """From `block`, the address of (rows, H, block_length, D), the first `kept` columns."""
        target = self.address(cache) + first_row * self._row_bytes(self._length)
        memory = (self._device, 0, np.float32, [rows, self._n_heads, self._length, self._words], target)
        binding: Any = self._copier.io_binding()
        binding.bind_input("cache", *memory)
        binding.bind_output("copied", *memory)
        block_shape = [rows, self._n_heads, block_length, self._words]
        binding.bind_input("block", self._device, 0, np.float32, block_shape, block)
        binding.bind_cpu_input("kept", np.array([kept]))
        self._copier.run_with_iobinding(binding)

    def _address(self, length: int, cache: int) -> int:
        return int(self._rows_of[length].data_ptr()) + cache * self._slots * self._row_bytes(length)

    def _all_rows(self, length: int) -> list[int]:
        return [self._n_caches * self._slots, self._n_heads, length, self._words]

    def _row_bytes(self, length: int) -> int:
        return self._n_heads * length * self._words * 4
