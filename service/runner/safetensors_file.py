"""A file in the format of safetensors, from which tensors and rows are read one by one. It is not mapped into memory: a
process dies if somebody cuts off a file that it has mapped."""

import json
import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter

from service.base.artifact import OpenedFile
from service.base.errors import ArtifactRefused

DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
}
"""NumPy's types by their names in safetensors."""
MAX_DIMENSIONS = 32
"""NumPy has a limit too, which differs between its versions."""


class _Tensor(BaseModel):
    dtype: str
    shape: Annotated[tuple[NonNegativeInt, ...], Field(max_length=MAX_DIMENSIONS)]
    data_offsets: tuple[NonNegativeInt, NonNegativeInt]


_HEADER = TypeAdapter(dict[str, _Tensor])


class SafetensorsFile:
    """The tensors of a file by name. Raises ArtifactRefused: the header does not describe the content."""

    def __init__(self, file: OpenedFile) -> None:
        self.path = file.path
        self._file = file
        self._start, self._tensors = self._read_header()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type in which a tensor is stored."""
        dtype: np.dtype[Any] = np.dtype(DTYPES[self._tensors[name].dtype])
        return dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def n_bytes(self, name: str) -> int:
        begin, end = self._tensors[name].data_offsets
        return end - begin

    def read(self, name: str) -> NDArray[Any]:
        """Return a tensor. Raises ArtifactRefused: the file was written to since it was opened."""
        return self._read(name, self.shape(name), 0)

    def read_rows(self, name: str, first: int, n_rows: int) -> NDArray[Any]:
        """Return rows of a tensor. Raises ArtifactRefused: the file was written to since it was opened."""
        n_all, *columns = self.shape(name)
        return self._read(name, (n_rows, *columns), first * (self.n_bytes(name) // n_all))

    def _read(self, name: str, shape: tuple[int, ...], offset: int) -> NDArray[Any]:
        array = np.empty(shape, self.dtype(name))
        buffer: Any = array.reshape(-1).view(np.uint8)
        self._file.read_into(memoryview(buffer), self._start + self._tensors[name].data_offsets[0] + offset)
        return array

    def _read_header(self) -> tuple[int, dict[str, _Tensor]]:
        """Return where the data begin, and the tensors by name."""
        start = 8 + int.from_bytes(self._bytes(0, 8), "little")
        try:
            header = json.loads(self._bytes(8, start))
            if isinstance(header, dict):
                header.pop("__metadata__", None)
            tensors = _HEADER.validate_python(header)
        except (ValueError, RecursionError) as error:
            raise self._refused(f"cannot be read: {error}") from error
        for name, tensor in tensors.items():
            if tensor.dtype not in DTYPES:
                raise self._refused(f"{name} is {tensor.dtype}, this service reads {', '.join(DTYPES)}")
        end = 0
        for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
            begin, end = end, end + math.prod(tensor.shape) * np.dtype(DTYPES[tensor.dtype]).itemsize
            if tensor.data_offsets != (begin, end):
                where = f"{tensor.data_offsets}, and must be ({begin}, {end})"
                raise self._refused(f"cannot be read: the `data_offsets` of {name} are {where}")
        if start + end != self._file.size:
            sizes = f"the file has {self._file.size} bytes, its header describes {start + end}"
            raise self._refused(f"cannot be read: {sizes}")
        return start, tensors

    def _bytes(self, begin: int, end: int) -> bytearray:
        if end > self._file.size:
            raise self._refused(f"cannot be read: the file has {self._file.size} bytes, its header needs {end}")
        content = bytearray(end - begin)
        self._file.read_into(memoryview(content), begin)
        return content

    def _refused(self, sentence: str) -> ArtifactRefused:
        return ArtifactRefused(f"{self.path}: {sentence}")
