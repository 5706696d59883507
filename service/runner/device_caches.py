"""Caches in a device's memory, where graphs alone can copy.

Legend: C caches, R rows, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from service.base.contract import IntArray
from service.runner.arrays import GraphArrays
from service.runner.caches import CacheShapes
from service.runner.device_graphs import COPY
from service.runner.provider import Provider

MAX_WORDS = 8
"""Most int64 words of a unit, which one thread of the device copies."""
COLUMNS = 32
"""L is a multiple of it, if it grows."""


class DeviceCaches:
    """Caches (C, R, *heads, L, D) in a device's memory, L a multiple of 32 or always 1.

    One run of one graph copies rows of all caches, as units of bytes whatever the type of their numbers. Each length
    has memory of its own that stays where it is, since a captured graph has the addresses of its caches.
    """

    def __init__(self, shapes: CacheShapes, n_rows: int, provider: Provider) -> None:
        self._n_caches, self._n_rows = len(shapes.names), n_rows
        self._heads, self._width = shapes.heads, shapes.width
        self._n_heads, self._column_bytes = math.prod(shapes.heads), shapes.width * np.dtype(provider.dtype).itemsize
        self._words = math.gcd(MAX_WORDS, self._column_bytes * (COLUMNS if shapes.has_length else 1) // 8)
        """Number of words of a unit; columns are whole units."""
        self._provider = provider
        self._copier = provider.session(COPY)
        self._length = 0
        self._rows_of: dict[int, OrtValue] = {}
        """The memory of the caches, by length."""
        self._arrays: dict[tuple[int, int], GraphArrays] = {}
        """The graph's small inputs, by the number of blocks and of units in each block."""
        self._bindings: dict[tuple[int, ...], Any] = {}
        """The graph's bindings, by what is copied where, as binding takes long."""
        self._first_heads = (np.arange(self._n_caches) * n_rows * self._n_heads)[:, None, None] + np.arange(
            self._n_heads
        )
        """(C, 1, H): the numbers of the heads of the first row of each cache."""

    def address(self, cache: int) -> int:
        row_bytes = self._n_heads * self._units(self._length) * 8 * self._words
        return self._start(self._length) + cache * self._n_rows * row_bytes

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._heads, self._length, self._width

    def resize(self, length: int, rows: int) -> None:
        if length not in self._rows_of:
            numbers = np.zeros((self._n_units(length), self._words), np.int64)
            self._rows_of[length] = OrtValue.ortvalue_from_numpy(numbers, self._provider.name)
        old_length, self._length = self._length, length
        if old_length > 0 and rows > 0:
            old, new = (self._starts(np.arange(rows), one) for one in (old_length, length))
            source = self._start(old_length), self._n_units(old_length)
            self._copy(*source, old, new, self._units(min(length, old_length)))

    def write(self, rows: IntArray, block: int, n_columns: int) -> None:
        """Copy a block (C, B, *heads, K, D) to the first K columns of rows (B).

        Args:
            block: the address of the block.
            n_columns: K, a multiple of 32.
        """
        targets, n_units = self._starts(rows, self._length), self._units(n_columns)
        self._copy(block, len(targets) * n_units, np.arange(len(targets)) * n_units, targets, n_units)

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy rows to other rows of every cache. The same pair of rows may occur several times."""
        sources, targets = (self._starts(rows, self._length) for rows in (source_rows, target_rows))
        source = self._start(self._length), self._n_units(self._length)
        self._copy(*source, sources, targets, self._units(self._length))

    def _copy(self, source: int, n_source: int, sources: IntArray, targets: IntArray, n_units: int) -> None:
        """Copy blocks of n_units units.

        Args:
            source: the address of the memory to copy from, which has n_source units.
            sources: where each block begins there, in units.
            targets: where each block is copied to in these caches, in units.
        """
        arrays = self._arrays_for(len(targets), n_units)
        arrays["source_places"][:, 0], arrays["target_places"][:, 0] = sources, targets
        arrays.upload()
        bound = source, n_source, len(targets), n_units, self._length
        if bound not in self._bindings:
            self._bindings[bound] = self._binding(source, n_source, arrays)
        self._copier.run_with_iobinding(self._bindings[bound])

    def _binding(self, source: int, n_source: int, arrays: GraphArrays) -> Any:
        device = self._provider.name
        memory = (device, 0, np.int64, [self._n_units(self._length), self._words], self._start(self._length))
        binding: Any = self._copier.io_binding()
        for input_memory in arrays.bindings():
            binding.bind_input(*input_memory)
        binding.bind_input("source", device, 0, np.int64, [n_source, self._words], source)
        binding.bind_input("cache", *memory)
        binding.bind_output("copied", *memory)
        return binding

    def _arrays_for(self, n: int, n_units: int) -> GraphArrays:
        if (n, n_units) not in self._arrays:
            one_each = np.int64, (n, 1)
            arrays = self._provider.arrays(source_places=one_each, target_places=one_each, steps=(np.int64, (n_units,)))
            arrays["steps"][:] = np.arange(n_units)
            self._arrays[n, n_units] = arrays
        return self._arrays[n, n_units]

    def _starts(self, rows: IntArray, length: int) -> IntArray:
        """Return where rows begin, in units: for each cache, each row and each head."""
        of_heads: IntArray = self._first_heads + rows[:, None] * self._n_heads
        return of_heads.ravel() * self._units(length)

    def _units(self, n_columns: int) -> int:
        """Return the number of units of the first columns of one head."""
        return n_columns * self._column_bytes // (8 * self._words)

    def _n_units(self, length: int) -> int:
        return self._n_caches * self._n_rows * self._n_heads * self._units(length)

    def _start(self, length: int) -> int:
        return int(self._rows_of[length].data_ptr())
