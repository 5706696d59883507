"""Marian's binary files of weights (.bin), in floats or int8 of any processor.

A file has a header for each array, all names, all shapes, and after padding the content of all arrays. Each array of
int8 of the kind intgemm8 is one matrix q and, after it, one float m: its values are q / m.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.importing.imported import ModelImportError
from model.importing.marian_weights import MarianFile, marian_file
from model.importing.packed_files import read_packed

VERSION = 1
ACTIVATION_SCALE = "QuantMultA"
"""Ends the names of scales of activations, which are computed anew here."""
FLOAT32, INT8 = 0x404, 0x101
Array = NDArray[Any]

OTHER_TYPES = {
    0x402: "float16",
    0x10002: "intgemm16",
    0x4102: "intgemm16",
    0x802: "packed16",
    0x1801: "packed8avx2",
    0x2801: "packed8avx512",
}
"""Names of types that are not supported: some lay out numbers for one kind of processor."""


def is_marian_bin(path: Path) -> bool:
    """Whether a file is one of Marian's. Others also end in .bin, such as those of PyTorch."""
    try:
        return read_packed(path, 8) == VERSION.to_bytes(8, "little")
    except ModelImportError:
        return False


def read_bin(path: Path) -> MarianFile:
    """Read a file of weights, perhaps compressed. Raises ModelImportError: the file is damaged, or the model or a type
    of its arrays is not supported."""
    content = read_packed(path)
    try:
        arrays = read_arrays(content)
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError) as error:
        if isinstance(error, ModelImportError):
            raise
        raise ModelImportError(f"{path.name} is damaged, or is no file of Marian's: {error}") from error
    return marian_file(path.name, arrays)


def read_arrays(content: bytes) -> dict[str, Array]:
    """Return the arrays of a file by name, int8 matrices as the floats that they stand for. Raises ModelImportError: an
    array has a type that is not supported. Raises ValueError, IndexError: the file is damaged."""
    reader = _Reader(content)
    version, n = (int(number) for number in reader.read("<u8", 2))
    if version != VERSION:
        raise ValueError(f"its version is {version}, not {VERSION}")
    headers = reader.read("<u8", 4 * n).reshape(n, 4).tolist()
    names = [reader.read("u1", size).tobytes().rstrip(b"\0").decode() for size, *_ in headers]
    shapes = [tuple(reader.read("<i4", rank).tolist()) for _, _, rank, _ in headers]
    reader.read("u1", int(reader.read("<u8", 1)[0]))
    arrays: dict[str, Array] = {}
    for name, shape, (_, kind, _, n_bytes) in zip(names, shapes, headers, strict=True):
        data = reader.read("u1", n_bytes)
        if name.endswith(ACTIVATION_SCALE):
            continue
        if kind not in READERS:
            said = OTHER_TYPES.get(kind, "a type of its own")
            raise ModelImportError(
                f"{name} is stored as {said} ({kind:#x}), which is not supported; float32 and int8 are"
            )
        arrays[name] = READERS[kind](name, shape, data)
    return arrays


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = np.frombuffer(content, np.uint8)
        self._at = 0

    def read(self, dtype: str, n: int) -> Array:
        end = self._at + n * np.dtype(dtype).itemsize
        if end > len(self._content):
            raise ValueError("it ends too early")
        numbers = self._content[self._at : end].view(dtype) if n else np.zeros(0, dtype)
        self._at = end
        return numbers


def _plain(dtype: str) -> Callable[[str, tuple[int, ...], Array], Array]:
    def read(_name: str, shape: tuple[int, ...], data: Array) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return data[:size].copy().view(dtype).reshape(shape)

    return read


def _intgemm8(name: str, shape: tuple[int, ...], data: Array) -> Array:
    """Return the values of a matrix. Those of products are stored transposed, token tables as they are."""
    rows, columns = shape
    size = rows * columns
    numbers, multiplier = data[:size].view(np.int8), data[size : size + 4].copy().view("<f4")[0]
    if not (np.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"the scale of {name} is {multiplier}")
    is_table = "Wemb" in name
    matrix = numbers.reshape(rows, columns) if is_table else numbers.reshape(columns, rows).T
    values: Array = matrix.astype(np.float32) / multiplier
    return values


READERS: Mapping[int, Callable[[str, tuple[int, ...], Array], Array]] = {
    FLOAT32: _plain("<f4"),
    INT8: _plain("i1"),
    0x10001: _intgemm8,  # Marian
    0x4101: _intgemm8,  # the fork that Firefox uses
}
