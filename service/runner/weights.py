"""weights.safetensors of an artifact, mapped into memory: every session of every process reads the same pages.

Legend: N rows, K columns.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession
from safetensors import SafetensorError, safe_open

from service.artifact import WEIGHTS, Artifact
from service.errors import ArtifactRefused
from service.runner import heap
from service.runner.provider import Provider

DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
}
"""NumPy's types by the names that safetensors has for them."""

LENGTH_BYTES = 8
"""The file begins with the length of its header, in so many bytes."""

BLOCK = 64
"""Columns of a row with one scale, where a row has several scales."""


def load(artifact: Artifact, provider: Provider, graph: str, captured: bool = False) -> InferenceSession:
    """The session of one graph over the artifact's weights.

    Args:
        graph: a file in the provider's folder.
        captured: see `Provider.session`.

    Raises:
        StartRefused: the weights are not what the graph declares, or ONNX Runtime cannot load it.
    """
    path = f"{provider.name}/{graph}"
    weights = Weights(artifact.path(WEIGHTS))
    declared = artifact.manifest.graphs[path].items()
    tensors = {name: weights.tensor(name, np.dtype(dtype), path) for dtype, names in declared for name in names}
    session = provider.session(artifact.path(path), tensors, captured)
    del tensors
    weights.release_pages()
    heap.trim()  # six megabytes a translator
    return session


class Weights:
    """The tensors of a safetensors file.

    Raises:
        ArtifactRefused: the file cannot be read, or its header does not describe what follows it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError where the file is empty
            raise self._refused(f"cannot be read: {error}") from error
        self._tensors = self._views()

    def tensor(self, name: str, dtype: np.dtype[Any], graph: str) -> NDArray[Any]:
        """A tensor in the type that a graph declares for it: a view of the file where it is stored in that type. From
        another type a new array is made; int8 numbers are multiplied by their scales."""
        stored = self._stored(name, graph)
        if stored.dtype == dtype:
            return stored
        if np.issubdtype(dtype, np.floating):
            if np.issubdtype(stored.dtype, np.floating):
                return stored.astype(dtype)
            if stored.dtype == np.int8:
                return (stored * self._scales(name, stored.shape, graph)).astype(dtype)
        raise self._refused(f"{name} is {stored.dtype}, which cannot become the {dtype} that {graph} declares")

    def release_pages(self) -> None:
        """Forget the pages that loading a graph has read. Those that its runs read come back by themselves."""
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _stored(self, name: str, graph: str) -> NDArray[Any]:
        if name not in self._tensors:
            raise self._refused(f"has no tensor {name}, which {graph} takes")
        return self._tensors[name]

    def _scales(self, name: str, shape: tuple[int, ...], graph: str) -> NDArray[np.float32]:
        """By what int8 numbers (N, K) are multiplied: (N, 1), or (N, K) where a row has a scale for each block."""
        scales = self._stored(f"{name}.scales", graph)
        if len(shape) != 2 or scales.shape not in {(shape[0], 1), (shape[0], -(-shape[1] // BLOCK))}:
            raise self._refused(f"{name} has shape {shape}, which {name}.scales of shape {scales.shape} does not fit")
        if scales.shape[1] > 1:
            scales = scales.repeat(BLOCK, axis=1)[:, : shape[1]]
        return scales.astype(np.float32)

    def _views(self) -> dict[str, NDArray[Any]]:
        views = {}
        try:
            with safe_open(self._path, framework="numpy") as file:
                start = LENGTH_BYTES + int.from_bytes(self._map[:LENGTH_BYTES], "little")
                for name in file.offset_keys():
                    tensor = file.get_slice(name)
                    if tensor.get_dtype() not in DTYPES:
                        raise self._refused(f"{name} is {tensor.get_dtype()}, this service reads {', '.join(DTYPES)}")
                    views[name] = np.ndarray(tensor.get_shape(), DTYPES[tensor.get_dtype()], self._map, start)
                    start += views[name].nbytes
        except SafetensorError as error:
            raise self._refused(f"cannot be read: {error}") from error
        return views

    def _refused(self, sentence: str) -> ArtifactRefused:
        return ArtifactRefused(f"{self._path}: {sentence}")
