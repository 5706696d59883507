"""Caches: the keys and values of attention, one entry for each decoder row or source, on the host or on a device.

Heads are a dimension of their own, (H,), in self-attention, and are concatenated, (), in cross-attention. The state of
an SSRU is a cache of length 1.

Legend: C caches, R rows, H heads, L cache length, D width, B rows of a block, K length of a block.
"""

import math
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from manifest.schema import Manifest
from service.runner import heap


@dataclass(frozen=True)
class LengthBuckets:
    """The lengths of caches: multiples of a share of the next power of two.

    Attributes:
        min_step: smallest step between two lengths.
        steps: number of steps up to a power of two.
        spare: memory is released when it is this many times what is needed.
    """

    min_step: int
    steps: int
    spare: float

    def bucket(self, length: int) -> int:
        """Round `length` up to the next bucket."""
        step = max(self.min_step, (1 << (length - 1).bit_length()) // self.steps)
        return -(-length // step) * step


COARSE_LENGTHS = LengthBuckets(min_step=32, steps=1, spare=3)
"""Powers of two: few shapes occur, and growing costs little. Used for attention that reads only the valid part of a
cache, and for devices, where a new length costs more than padding."""
FINE_LENGTHS = LengthBuckets(min_step=8, steps=4, spare=1.5)
"""Quarters of powers of two: there is little padding. Used for attention that reads padding too; one to three percent
of decoding time went into the padding that one long source had left."""


@dataclass(frozen=True)
class CacheShapes:
    """The names of the caches of a decoder's rows or sources in its graph, and their shapes.

    Attributes:
        heads, width: the shape of a row is (*heads, L, width).
        has_length: whether L grows with the tokens; otherwise it is 1.
    """

    names: list[str]
    heads: tuple[int, ...]
    width: int
    has_length: bool = True


def row_caches(manifest: Manifest) -> CacheShapes:
    """Return what decoder layers keep of the target tokens of each row: keys and values, or the states of SSRUs."""
    dimensions, n_layers = manifest.dimensions, manifest.dimensions.n_decoder_layers
    if manifest.decoder_self == "ssru":
        names = [f"{layer}.decoder.state" for layer in range(n_layers)]
        return CacheShapes(names, (), dimensions.n_heads * dimensions.head_dim, has_length=False)
    return CacheShapes(_keys_and_values("decoder", n_layers), (dimensions.n_heads,), dimensions.head_dim)


def source_caches(manifest: Manifest) -> CacheShapes:
    dimensions = manifest.dimensions
    names = _keys_and_values("encoder", dimensions.n_decoder_layers)
    return CacheShapes(names, (), dimensions.n_heads * dimensions.head_dim)


def _keys_and_values(attention: str, n_layers: int) -> list[str]:
    return [f"{layer}.{attention}.{part}" for layer in range(n_layers) for part in ("key", "value")]


class Caches(Protocol):
    """C caches as numbers (C, R, *heads, L, D), row-major, so that a graph can use the first rows of each cache."""

    def address(self, cache: int) -> int:
        """Return the address of row 0 of a cache, which is valid until the next resize."""

    def shape(self, rows: int) -> tuple[int, ...]:
        """Return the shape of the first rows of a cache."""

    def resize(self, length: int, rows: int) -> None:
        """Change L, and keep what fits of the first `rows` rows. All other numbers are finite, since attention may
        multiply them by 0."""


AnyCaches = TypeVar("AnyCaches", bound=Caches)


class CacheGroup(Generic[AnyCaches]):
    """The caches of one kind of attention, all of one length: key and value of every decoder layer.

    Attributes:
        names: the names of the caches in the graph.
        addresses: the address of row 0 of each cache.
        version: a number that changes whenever the caches have moved.
    """

    def __init__(self, shapes: CacheShapes, caches: AnyCaches, lengths: LengthBuckets) -> None:
        self.names = shapes.names
        self.caches = caches
        self.addresses: list[int] = []
        self.length = 0
        self.version = 0
        self._lengths = lengths if shapes.has_length else None

    def fit(self, needed: int, rows: int) -> None:
        """Make room for `needed` columns in the first `rows` rows, which are in use. Memory is released when no row is
        in use, or when much less is needed."""
        length, spare = (self._lengths.bucket(needed), self._lengths.spare) if self._lengths else (1, 1.0)
        if length == self.length or (length < self.length < spare * length and rows > 0):
            return
        self.length = 0  # in case the resize raises
        self.version += 1
        self.caches.resize(length, rows)
        self.addresses = [self.caches.address(cache) for cache in range(len(self.names))]
        self.length = length


class HostCaches:
    """Caches in main memory, by numpy. One buffer is reused for every length, since new memory is slow at first."""

    def __init__(self, shapes: CacheShapes, n_rows: int) -> None:
        self._buffer = np.zeros(0, np.float32)
        self._rows = self._buffer.reshape(len(shapes.names), n_rows, *shapes.heads, 0, shapes.width)

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
            self._buffer = heap.zeros(size)
        self._rows = self._buffer[:size].reshape(shape)
        self._rows[:, :rows, ..., :n_kept, :] = kept

    def write(self, row: int, block: NDArray[np.float32]) -> None:
        """Copy a block (C, *heads, K, D), K <= L, into one row of every cache."""
        self._rows[:, row, ..., : block.shape[-2], :] = block

    def clean(self) -> None:
        """Replace infinity and NaN by 0."""
        self._buffer[~np.isfinite(self._buffer)] = 0

    def copy(self, source_rows: list[int], target_rows: list[int], n_columns: int) -> None:
        """Copy the first columns of rows to other rows of every cache. No target is also a source."""
        columns = self._rows[..., :n_columns, :]
        # There are few as a rule, and a loop over slices is faster than an index array.
        for source, target in zip(source_rows, target_rows, strict=True):
            columns[:, target] = columns[:, source]
