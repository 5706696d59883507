"""weights.safetensors of an artifact. It is read into memory once, so that the file may change afterwards.

Legend: N rows, K columns.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession
from safetensors import SafetensorError, deserialize

from service.base.artifact import WEIGHTS, Artifact
from service.base.errors import ArtifactRefused
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
"""NumPy's types by their names in safetensors."""

ROW_BY_ROW = "embedding"
"""Part of the names of tensors from which graphs gather rows. ONNX Runtime uses these as they are, so that all sessions
share them. It copies all others, and packs most of them in another order."""


def load_session(
    artifact: Artifact, provider: Provider, graph: str, captured: bool = False, weights: "Weights | None" = None
) -> InferenceSession:
    """Return the session of one graph with the artifact's weights.

    Args:
        graph: name of a file in the provider's folder.
        captured: see `Provider.session`.
        weights: the weights of this artifact, if they have been read.

    Raises:
        StartRefused: a file is not what the manifest says, the weights do not match the graph, or ONNX Runtime cannot
            load the graph.
    """
    path = f"{provider.name}/{graph}"
    weights = weights or read_weights(artifact)
    declared = artifact.manifest.graphs[path].items()
    tensors = {name: weights.tensor(name, np.dtype(dtype), path) for dtype, names in declared for name in names}
    shared = [name for name in tensors if ROW_BY_ROW in name]
    session = provider.session(artifact.read(path), tensors, shared, captured, str(artifact.path(path)))
    del tensors
    heap.trim()  # six megabytes a translator
    return session


def read_weights(artifact: Artifact) -> "Weights":
    """Read the weights of an artifact. Raises ArtifactRefused: they are not what the manifest says."""
    return Weights(artifact.path(WEIGHTS), artifact.read(WEIGHTS))


class Weights:
    """The tensors of a safetensors file.

    Args:
        path: the path of the file, for error messages.

    Raises:
        ArtifactRefused: the file's header does not describe its content.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        self._tensors = self._read(content)

    def tensor(self, name: str, dtype: np.dtype[Any], graph: str) -> NDArray[Any]:
        """Return a tensor in the type that a graph declares for it. Tensors of other types are converted; int8 numbers
        are multiplied by the scales of their rows, and divided by the smoothing of their columns, if there is one."""
        stored = self._stored(name, graph)
        if stored.dtype == dtype:
            return stored
        if np.issubdtype(dtype, np.floating):
            if np.issubdtype(stored.dtype, np.floating):
                return stored.astype(dtype)
            if stored.dtype == np.int8:
                numbers = stored * self._scales(name, stored.shape, graph)
                smoothing = self._tensors.get(f"{name.removesuffix('.weight')}.smoothing")
                if smoothing is not None:
                    if smoothing.shape != stored.shape[1:]:
                        shapes = f"{stored.shape}, and its smoothing {smoothing.shape}, which does not fit"
                        raise self._refused(f"{name} has shape {shapes}")
                    numbers /= smoothing
                return numbers.astype(dtype)
        raise self._refused(f"{name} is {stored.dtype}, which cannot become the {dtype} that {graph} declares")

    def _stored(self, name: str, graph: str) -> NDArray[Any]:
        if name not in self._tensors:
            raise self._refused(f"has no tensor {name}, which {graph} takes")
        return self._tensors[name]

    def _scales(self, name: str, shape: tuple[int, ...], graph: str) -> NDArray[np.float32]:
        """Return the scales (N, 1) of the rows of int8 numbers (N, K)."""
        scales = self._stored(f"{name}.scales", graph)
        if len(shape) != 2 or scales.shape != (shape[0], 1):
            raise self._refused(f"{name} has shape {shape}, and {name}.scales {scales.shape}, which does not fit")
        return scales.astype(np.float32)

    def _read(self, content: bytes) -> dict[str, NDArray[Any]]:
        """Return each tensor in memory of its own, which is freed with the tensor."""
        try:
            found = deserialize(content)  # type: ignore[no-untyped-call]
        except SafetensorError as error:
            raise self._refused(f"cannot be read: {error}") from error
        for name, tensor in found:
            if tensor["dtype"] not in DTYPES:
                raise self._refused(f"{name} is {tensor['dtype']}, this service reads {', '.join(DTYPES)}")
        return {name: _array(**tensor) for name, tensor in found}

    def _refused(self, sentence: str) -> ArtifactRefused:
        return ArtifactRefused(f"{self._path}: {sentence}")


def _array(dtype: str, shape: list[int], data: bytes) -> NDArray[Any]:
    return np.frombuffer(memoryview(data).toreadonly(), DTYPES[dtype]).reshape(shape)
