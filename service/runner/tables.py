"""Large tables of tokens: only the rows that texts have needed take memory.

A graph gathers one row for each token, and ONNX Runtime reads it where the table lies, in memory that all sessions and
forked workers share. The rows are copied there when a token occurs for the first time. The packed form of the table, by
which a translator's last product multiplies, is ONNX Runtime's own.

Legend: V tokens, K columns.
"""

import math
import mmap
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 4096


class Table:
    """A table (V, K), of which no row is read yet. `read_rows` reads rows, given the first one and their number."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], read_rows: Callable[[int, int], NDArray[Any]]
    ) -> None:
        self._memory = mmap.mmap(-1, math.prod(shape) * dtype.itemsize)  # shared with processes that are forked later
        self.array: NDArray[Any] = np.frombuffer(self._memory, dtype).reshape(shape)
        self._read_rows = read_rows
        self._read = set[int]()

    def fill(self) -> None:
        """Read all rows, for a session that is created. It may make other tensors of the table."""
        for first in range(0, len(self.array), ROWS_AT_ONCE):
            rows = self._read_rows(first, min(ROWS_AT_ONCE, len(self.array) - first))
            self.array[first : first + len(rows)] = rows

    def forget(self) -> None:
        """Return the memory of all rows to the system."""
        self._read.clear()
        with suppress(OSError):  # then the rows stay where they are
            self._memory.madvise(mmap.MADV_REMOVE)

    def read(self, ids: Iterable[int]) -> None:
        """Read the rows of these tokens, so that a graph may gather them. Raises ArtifactRefused: the file has
        changed."""
        for token_id in set(ids).difference(self._read):
            self.array[token_id] = self._read_rows(token_id, 1)[0]
            self._read.add(token_id)
