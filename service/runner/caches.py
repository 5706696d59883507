"""The memory of the slots: keys or values of attention, one row per slot, on the host or on a device.

Heads are apart from one another, (H,), in self-attention, and side by side, (), in cross-attention.

Legend: R slots, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from onnxruntime import InferenceSession, OrtValue

Indices = NDArray[np.int64]

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
    """The caches of one kind of attention, all of one length: key and value of every decoder layer, by name."""

    def __init__(self, caches: dict[str, "Cache"], lengths: Lengths) -> None:
        self.caches = caches
        self.length = 0
        self._lengths = lengths

    def fit(self, needed: int, rows: int) -> bool:
        """Give the first `rows` rows, which are in use, `needed` columns; True if memory has moved.

        Memory that was needed once is given back when no row is in use, or when much less would do.
        """
        length = self._lengths.bucket(needed)
        if length == self.length or (length < self.length < self._lengths.spare * length and rows > 0):
            return False
        self.length = 0  # until all are resized, whichever raises
        for cache in self.caches.values():
            cache.resize(length, rows)
        self.length = length
        return True

    def copy(self, source_rows: Indices, target_rows: Indices, n_columns: int) -> None:
        for cache in self.caches.values():
            cache.copy(source_rows, target_rows, n_columns)


class Cache(Protocol):
    """(R, *heads, L, D) numbers, row-major, so that a graph can work on the first rows in place."""

    @property
    def pointer(self) -> int:
        """Where row 0 begins, until the next resize."""

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of the first rows."""

    def resize(self, length: int, rows: int) -> None:
        """Change L, keeping what fits of the first `rows` rows. The rest is finite: attention may multiply it by 0."""

    def write(self, first_row: int, block: OrtValue) -> None:
        """Copy a block (B, *heads, K, D), K <= L, into the rows from `first_row` on."""

    def copy(self, source_rows: Indices, target_rows: Indices, n_columns: int) -> None:
        """Copy the first columns, or more, of rows over other rows; none of these is also copied from."""


class HostCache:
    """In main memory, through numpy. One buffer serves every length: memory that is new to the process is slow."""

    def __init__(self, slots: int, heads: tuple[int, ...], width: int, dtype: DTypeLike) -> None:
        self._buffer = np.zeros(0, dtype)
        self._rows = self._buffer.reshape(slots, *heads, 0, width)

    @property
    def pointer(self) -> int:
        return self._rows.ctypes.data

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._rows.shape[1:]

    def resize(self, length: int, rows: int) -> None:
        *rows_and_heads, old_length, width = self._rows.shape
        n_kept = min(length, old_length)
        kept = self._rows[:rows, ..., :n_kept, :].copy()
        shape = (*rows_and_heads, length, width)
        size = math.prod(shape)
        if size > len(self._buffer):
            self._buffer = np.zeros(size, self._buffer.dtype)
        self._rows = self._buffer[:size].reshape(shape)
        self._rows[:rows, ..., :n_kept, :] = kept

    def write(self, first_row: int, block: OrtValue) -> None:
        values = block.numpy()
        B, K = values.shape[0], values.shape[-2]
        self._rows[first_row : first_row + B, ..., :K, :] = values

    def copy(self, source_rows: Indices, target_rows: Indices, n_columns: int) -> None:
        columns = self._rows[..., :n_columns, :]
        # Most often they are few, and a row is copied faster by itself than what indices choose.
        for source, target in zip(source_rows.tolist(), target_rows.tolist(), strict=True):
            columns[target] = columns[source]


class DeviceCache:
    """In a device's memory. Rows are copied there by the graphs of copy_graphs.py, which see float32 words of any type.

    Args:
        device: ONNX Runtime's name of it, such as "cuda".
        copier, reorderer: sessions of the graphs WRITE and REORDER on that device.
    """

    def __init__(
        self,
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
        self._slots, self._heads, self._width = slots, heads, width
        self._n_heads, self._words = math.prod(heads), column_bytes // 4
        self._device = device
        self._copier, self._reorderer = copier, reorderer
        self._length = 0
        self._rows: OrtValue | None = None

    @property
    def pointer(self) -> int:
        assert self._rows is not None, "resize comes first"
        return int(self._rows.data_ptr())

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._heads, self._length, self._width

    def resize(self, length: int, rows: int) -> None:
        old, old_length = self._rows, self._length
        zeros = np.zeros((self._slots, self._n_heads, length, self._words), np.float32)
        self._rows, self._length = OrtValue.ortvalue_from_numpy(zeros, self._device, 0), length
        if old is not None and rows > 0:
            self._copy(0, rows, int(old.data_ptr()), old_length, min(length, old_length))

    def write(self, first_row: int, block: OrtValue) -> None:
        B, *_, K, _ = block.shape()
        self._copy(first_row, B, int(block.data_ptr()), K, K)

    def copy(self, source_rows: Indices, target_rows: Indices, n_columns: int) -> None:  # noqa: ARG002 (copies all)
        shape = [self._slots, self._n_heads, self._length, self._words]
        binding: Any = self._reorderer.io_binding()
        binding.bind_input("cache", self._device, 0, np.float32, shape, self.pointer)
        binding.bind_output("copied", self._device, 0, np.float32, shape, self.pointer)
        binding.bind_cpu_input("sources", source_rows)
        binding.bind_cpu_input("targets", target_rows[:, None])
        self._reorderer.run_with_iobinding(binding)

    def _copy(self, first_row: int, rows: int, block: int, block_length: int, kept: int) -> None:
        """From `block`, the address of (rows, H, block_length, D), the first `kept` columns."""
        shape = [rows, self._n_heads, self._length, self._words]
        target = self.pointer + first_row * self._row_bytes()
        binding: Any = self._copier.io_binding()
        binding.bind_input("cache", self._device, 0, np.float32, shape, target)
        binding.bind_output("copied", self._device, 0, np.float32, shape, target)
        block_shape = [rows, self._n_heads, block_length, self._words]
        binding.bind_input("block", self._device, 0, np.float32, block_shape, block)
        binding.bind_cpu_input("kept", np.array([kept]))
        self._copier.run_with_iobinding(binding)

    def _row_bytes(self) -> int:
        return self._n_heads * self._length * self._words * 4
