"""Arrays that a graph reads and writes: batches of token ids, and small arrays at a fixed address."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from onnxruntime import OrtValue

MIN_TOKENS = 2
"""Fewest tokens of one pass. ONNX Runtime multiplies a single row with another kernel than several rows, and its sums
end in other bits."""
ALIGNMENT = 256
"""Alignment in bytes of each array: a GPU needs no more."""
Field = tuple[DTypeLike, tuple[int, ...]]
"""Type and shape of one array."""


class GraphArrays:
    """Small arrays in main memory and, if the graph runs on a device, in the device's memory. One copy transfers all
    arrays.

    Args:
        device: ONNX Runtime's name of the device, such as "cuda"; None: the graph uses main memory.
        fields: type and shape of each array, by the name that the graph uses.
    """

    def __init__(self, device: str | None, **fields: Field) -> None:
        self._device = device or "cpu"
        self._fields = fields
        self._offsets: dict[str, int] = {}
        size = 0
        for name, (dtype, shape) in fields.items():
            self._offsets[name] = size
            size += -(-math.prod(shape) * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT
        self._host = np.zeros(size, np.uint8)
        self._remote = None if device is None else OrtValue.ortvalue_from_shape_and_type([size], np.uint8, device, 0)
        self._address = int(self._host.ctypes.data if self._remote is None else self._remote.data_ptr())

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array in main memory; it is filled with zeros at first."""
        dtype, shape = self._fields[name]
        return np.frombuffer(self._host, dtype, math.prod(shape), self._offsets[name]).reshape(shape)

    def bindings(self) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `bind_input` or `bind_output` for each array."""
        for name, (dtype, shape) in self._fields.items():
            yield name, self._device, 0, dtype, shape, self._address + self._offsets[name]

    def part(self, name: str, i: int) -> tuple[Any, ...]:
        """Return the arguments of `bind_input` or `bind_output`, without the name, for one row of an array."""
        dtype, (_, *shape) = self._fields[name]
        offset = self._offsets[name] + i * math.prod(shape) * np.dtype(dtype).itemsize
        return self._device, 0, dtype, tuple(shape), self._address + offset

    def upload(self) -> None:
        """Copy the arrays from main memory to the device, if there is one."""
        if self._remote is not None:
            self._remote.update_inplace(self._host)

    def download(self) -> None:
        """Copy the arrays from the device, if there is one, to main memory."""
        if self._remote is not None:
            self._host[:] = self._remote.numpy()


def padded(sources: list[list[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return token ids (B, S), padded to the longest source or MIN_TOKENS, and the lengths (B)."""
    lengths = np.array([len(source) for source in sources], np.int64)
    ids = np.full((len(sources), max(MIN_TOKENS, int(lengths.max()))), pad, np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = source
    return ids, lengths
