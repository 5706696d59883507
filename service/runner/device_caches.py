"""Caches in a device's memory, where graphs alone can copy.

Legend: C caches, R slots, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from service.contract import IntArray
from service.runner.caches import SHORTEST
from service.runner.device_graphs import COPY
from service.runner.provider import Provider


class DeviceCaches:
    """(C, R, *heads, L, D) numbers, L a multiple of SHORTEST. One run of one graph copies rows of all caches; it sees
    float32 words of any type. Each length has memory of its own, which it keeps: a captured graph finds its caches
    where they were.
    """

    def __init__(self, n_caches: int, slots: int, heads: tuple[int, ...], width: int, provider: Provider) -> None:
        column_bytes = width * np.dtype(provider.dtype).itemsize
        assert column_bytes % 4 == 0, "a column is a whole number of float32 words"
        self._n_caches, self._slots, self._heads, self._width = n_caches, slots, heads, width
        self._n_heads, self._words = math.prod(heads), column_bytes // 4
        self._provider = provider
        self._copier = provider.session(COPY)
        self._length = 0
        self._rows_of: dict[int, OrtValue] = {}
        """By length."""

    def address(self, cache: int) -> int:
        """Where row 0 of a cache begins, until the next resize."""
        row_bytes = self._n_heads * self._length * self._words * 4
        return self._start(self._length) + cache * self._slots * row_bytes

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of the first rows of a cache."""
        return rows, *self._heads, self._length, self._width

    def resize(self, length: int, rows: int) -> None:
        """Change L, keeping what fits of the first `rows` rows. The rest is finite: attention may multiply it by 0."""
        if length not in self._rows_of:
            n_numbers = self._n_caches * self._slots * self._n_heads * length * self._words
            self._rows_of[length] = OrtValue.ortvalue_from_numpy(np.zeros(n_numbers, np.float32), self._provider.name)
        old_length, self._length = self._length, length
        if old_length > 0 and rows > 0:
            kept, places = min(length, old_length), np.arange(rows)
            old, new = (self._pieces(places, whole, kept) for whole in (old_length, length))
            self._copy(self._start(old_length), self._n_pieces(old_length), old, new)

    def write(self, rows: IntArray, block: int, n_columns: int) -> None:
        """Copy a block (C, B, *heads, K, D) over the first K columns of rows (B).

        Args:
            block: its address.
            n_columns: K, a multiple of SHORTEST.
        """
        pieces = self._pieces(rows, self._length, n_columns)
        self._copy(block, len(pieces), np.arange(len(pieces)), pieces)

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy rows over other rows of the same cache. A row may be named several times with its source."""
        n_pieces = self._n_heads * (self._length // SHORTEST)
        first_rows = np.arange(self._n_caches)[:, None] * self._slots
        sources, targets = ((first_rows + rows).ravel() for rows in (source_rows, target_rows))
        self._copy(self._start(self._length), self._n_caches * self._slots, sources, targets, n_pieces)

    def _copy(self, source: int, n_source: int, sources: IntArray, targets: IntArray, size: int = 1) -> None:
        """Pieces of `source`, an address, over pieces of these caches.

        Args:
            size: of a piece, in SHORTEST columns of one head.
        """
        device, words = self._provider.name, size * SHORTEST * self._words
        memory = (device, 0, np.float32, [self._n_pieces(self._length) // size, words], self._start(self._length))
        binding: Any = self._copier.io_binding()
        binding.bind_input("source", device, 0, np.float32, [n_source, words], source)
        binding.bind_cpu_input("source_places", sources)
        binding.bind_input("cache", *memory)
        binding.bind_cpu_input("target_places", targets.reshape(-1, 1))
        binding.bind_output("copied", *memory)
        self._copier.run_with_iobinding(binding)

    def _pieces(self, rows: IntArray, length: int, n_columns: int) -> IntArray:
        """Which pieces of SHORTEST columns the first columns of rows are: of each cache, row and head in turn."""
        of_caches = np.arange(self._n_caches)[:, None] * self._slots + rows
        of_heads = of_caches.reshape(-1, 1) * self._n_heads + np.arange(self._n_heads)
        pieces: IntArray = of_heads.reshape(-1, 1) * (length // SHORTEST) + np.arange(n_columns // SHORTEST)
        return pieces.ravel()

    def _n_pieces(self, length: int) -> int:
        return self._n_caches * self._slots * self._n_heads * (length // SHORTEST)

    def _start(self, length: int) -> int:
        return int(self._rows_of[length].data_ptr())
