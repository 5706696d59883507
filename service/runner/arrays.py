"""GraphArrays that go to a graph and come back: token ids as one rectangle, and small ones at an address that stays."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from onnxruntime import OrtValue

MIN_TOKENS = 2
"""Of one pass. ONNX Runtime multiplies a single row by another kernel than several, whose sums end in other bits."""

ALIGNMENT = 256
"""Bytes: a GPU reads blocks that begin at multiples of fewer."""

Field = tuple[DTypeLike, tuple[int, ...]]
"""Type and shape of one array."""


class GraphArrays:
    """In main memory, where they are written and read, and in a device's, if the graph runs on one: a single copy takes
    all of them there or back.

    Args:
        device: ONNX Runtime's name of it, such as "cuda"; None: the graph works on main memory.
        fields: the arrays by the names that the graph has for them.
    """

    def __init__(self, device: str | None, **fields: Field) -> None:
        self._device = device or "cpu"
        self._fields = fields
        self._places: dict[str, int] = {}
        size = 0
        for name, (dtype, shape) in fields.items():
            self._places[name] = size
            size += -(-math.prod(shape) * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT
        self._here = np.zeros(size, np.uint8)
        self._there = None if device is None else OrtValue.ortvalue_from_shape_and_type([size], np.uint8, device, 0)
        self._address = int(self._here.ctypes.data if self._there is None else self._there.data_ptr())

    def __getitem__(self, name: str) -> NDArray[Any]:
        """An array in main memory, zeros at first."""
        dtype, shape = self._fields[name]
        return np.frombuffer(self._here, dtype, math.prod(shape), self._places[name]).reshape(shape)

    def bound(self) -> Iterator[tuple[Any, ...]]:
        """What `bind_input` and `bind_output` want of each."""
        for name, (dtype, shape) in self._fields.items():
            yield name, self._device, 0, dtype, shape, self._address + self._places[name]

    def send(self) -> None:
        """What was written here goes to where the graph reads it."""
        if self._there is not None:
            self._there.update_inplace(self._here)

    def fetch(self) -> None:
        """What the graph wrote comes here."""
        if self._there is not None:
            self._here[:] = self._there.numpy()


def padded(sources: list[list[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids (B, S), S the longest or MIN_TOKENS, filled up with `pad`; and the lengths (B)."""
    lengths = np.array([len(source) for source in sources], np.int64)
    ids = np.full((len(sources), max(MIN_TOKENS, int(lengths.max()))), pad, np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = source
    return ids, lengths
