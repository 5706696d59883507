"""Caches in a device's memory, where graphs alone can copy.

Legend: C caches, R rows, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from onnxruntime import OrtValue

from service.base.contract import IntArray
from service.runner.caches import CacheShapes
from service.runner.device_graphs import COPY
from service.runner.provider import Captures, Provider

MAX_WORDS = 8
"""Most int64 words of a unit, which one thread of the device copies."""
COLUMNS = 32
"""L is a multiple of it, if it grows."""
MIN_ROWS = 8
"""Fewest rows that one run copies or encodes; fewer are padded."""


def padded_count(n: int) -> int:
    """Return the next power of two, so that few shapes occur."""
    return max(MIN_ROWS, 1 << (n - 1).bit_length())


class _Rows(NamedTuple):
    """Rows in a device's memory, (C, n_rows, H, head_units) units, from `address` on. `head_units` is the number of
    units of the L columns of one head."""

    address: int
    n_rows: int
    head_units: int


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
        """Number of words of a unit. Columns are whole units."""
        self._provider = provider
        self._copier = provider.session(COPY, captured=provider.captures)
        self._captures = Captures(provider)
        self._length = 0
        self._memory_of: dict[int, OrtValue] = {}
        """The memory of the caches, by length."""
        self._copies: dict[tuple[_Rows, _Rows, int, int], _Copy] = {}
        """By source, targets and sizes, as binding takes long."""

    def address(self, cache: int) -> int:
        rows = self._own(self._length)
        return rows.address + cache * self._n_rows * self._n_heads * rows.head_units * 8 * self._words

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, *self._heads, self._length, self._width

    def resize(self, length: int, rows: int) -> None:
        if length not in self._memory_of:
            n_units = self._n_caches * self._n_rows * self._n_heads * self._units(length)
            numbers = np.zeros((n_units, self._words), np.int64)
            self._memory_of[length] = OrtValue.ortvalue_from_numpy(numbers, self._provider.name)
        old_length, self._length = self._length, length
        if old_length > 0 and rows > 0:
            every = np.arange(rows)
            try:
                self._copy(self._own(old_length), every, every, self._units(min(length, old_length)))
            except BaseException:
                self._length = old_length  # the rows are still there
                raise

    def write(self, rows: IntArray, block: int, shape: tuple[int, int]) -> None:
        """Copy the first rows of a block (C, B, *heads, K, D) at an address to the first K columns of these rows.
        `shape` is B and K, a multiple of 32."""
        n_rows, n_columns = shape
        units = self._units(n_columns)
        self._copy(_Rows(block, n_rows, units), np.arange(len(rows)), rows, units)

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy rows to other rows of every cache. The same pair of rows may occur several times."""
        self._copy(self._own(self._length), source_rows, target_rows, self._units(self._length))

    def clean(self) -> None:
        """Replace infinity and NaN by 0, in caches of every length. The host does it, which takes long."""
        for memory in self._memory_of.values():
            words = memory.numpy()
            numbers = words.view(self._provider.dtype)
            numbers[~np.isfinite(numbers)] = 0
            memory.update_inplace(words)

    def _copy(self, source: _Rows, source_rows: IntArray, target_rows: IntArray, n_units: int) -> None:
        """Copy the first units of each head."""
        what = source, self._own(self._length), padded_count(len(source_rows)), n_units
        copy = self._copies.pop(what, None) or self._new_copy(*what)
        copy.run(source_rows, target_rows)
        self._copies[what] = copy  # not if the run fails: its capture is not launched again

    def _new_copy(self, source: _Rows, target: _Rows, n: int, n_units: int) -> "_Copy":
        # Only copies of rows are many, and run at the start with each size.
        options = self._captures.new() if source == target else self._captures.none()
        source_memory, target_memory = (self._memory(rows, n_units) for rows in (source, target))
        return _Copy(self._copier, options, self._provider, n, source_memory, target_memory)

    def _memory(self, rows: _Rows, n_units: int) -> "_Memory":
        row_units = self._n_heads * rows.head_units
        caches = np.arange(self._n_caches)[:, None, None] * rows.n_rows * row_units
        heads = np.arange(self._n_heads)[:, None] * rows.head_units
        shape = self._n_caches * rows.n_rows * row_units, self._words
        return _Memory(rows.address, shape, row_units, (caches + heads + np.arange(n_units)).ravel())

    def _own(self, length: int) -> _Rows:
        return _Rows(int(self._memory_of[length].data_ptr()), self._n_rows, self._units(length))

    def _units(self, n_columns: int) -> int:
        return n_columns * self._column_bytes // (8 * self._words)


class _Memory(NamedTuple):
    """Where rows lie, as units of a device's memory.

    Args:
        shape: the number of all units, and of the words of each.
        row_units: distance of two rows.
        steps: (m), the units of a row that are copied, from the first unit of the row on.
    """

    address: int
    shape: tuple[int, int]
    row_units: int
    steps: IntArray


class _Copy:
    """The copying graph for n rows, with all its inputs and outputs bound."""

    def __init__(
        self, session: Any, options: Any, provider: Provider, n: int, source: _Memory, target: _Memory
    ) -> None:
        self._session, self._options = session, options
        self._distances = source.row_units, target.row_units
        self._every = np.arange(n)
        self._rows = provider.arrays(source_rows=(np.int64, (n, 1)), target_rows=(np.int64, (n, 1)))
        steps = np.int64, source.steps.shape
        self._steps = provider.arrays(source_steps=steps, target_steps=steps)
        self._steps["source_steps"][:], self._steps["target_steps"][:] = source.steps, target.steps
        self._steps.upload()
        self._binding: Any = session.io_binding()
        for memory in (*self._rows.bindings(), *self._steps.bindings()):
            self._binding.bind_input(*memory)
        for bind, name, rows in (
            (self._binding.bind_input, "source", source),
            (self._binding.bind_input, "cache", target),
            (self._binding.bind_output, "copied", target),
        ):
            bind(name, provider.name, 0, np.int64, rows.shape, rows.address)

    def run(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy at most n rows; the last row is copied several times."""
        filled = np.minimum(self._every, len(source_rows) - 1)
        for name, rows, distance in zip(
            ("source_rows", "target_rows"), (source_rows, target_rows), self._distances, strict=True
        ):
            np.multiply(rows[filled], distance, out=self._rows[name][:, 0])
        self._rows.upload()
        self._session.run_with_iobinding(self._binding, self._options)
