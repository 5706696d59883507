"""weights.safetensors of an artifact. Tensors are read when a session takes them, so that no copy of the file is kept.

Legend: N rows, K columns.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession

from manifest.layout import WEIGHTS
from service.base.artifact import Artifact
from service.base.contract import AnyInts
from service.base.errors import ArtifactRefused
from service.runner import heap
from service.runner.provider import Provider
from service.runner.safetensors_file import SafetensorsFile
from service.runner.tables import Table

ROW_BY_ROW = "embedding"
"""Part of the names of tensors from which graphs gather rows. ONNX Runtime uses these as they are, so that all sessions
share them. It copies all other tensors, and packs most of them in another order."""
TOKENS = "embedding.tokens.weight"
"""End of the names of tables that have a row for each token."""
LARGE_BYTES = 32 << 20
"""Size from which on a table of tokens takes memory only for the rows that are looked up."""


def load_session(
    artifact: Artifact, provider: Provider, graph: str, captured: bool = False, weights: "Weights | None" = None
) -> InferenceSession:
    """Return the session of one graph with the artifact's weights; see `session_loader`."""
    return session_loader(artifact, provider, graph, captured, weights)()


def session_loader(
    artifact: Artifact, provider: Provider, graph: str, captured: bool = False, weights: "Weights | None" = None
) -> Callable[[], InferenceSession]:
    """Return a function that loads the session of one graph with the artifact's weights, now or later.

    Args:
        graph: name of a file in the provider's folder.
        captured: see `Provider.session`.
        weights: the weights of this artifact, if they have been opened.

    Raises:
        StartRefused: a file is not what the manifest says. The function raises this too, if the weights do not match
            the graph, or ONNX Runtime cannot load the graph.
    """
    path = f"{provider.name}/{graph}"
    content = artifact.read(path)
    weights = weights or read_weights(artifact)
    names = [(name, np.dtype(dtype)) for dtype, names in artifact.manifest.graphs[path].items() for name in names]
    return partial(_load, provider, content, str(artifact.path(path)), path, names, captured, weights)


def _load(
    provider: Provider,
    content: bytes,
    file: str,
    graph: str,
    names: list[tuple[str, np.dtype[Any]]],
    captured: bool,
    weights: "Weights",
) -> InferenceSession:
    shared = [name for name, _ in names if ROW_BY_ROW in name and provider.name == "cpu"]
    tables = [table for name, dtype in names if name in shared and (table := weights.table(name, dtype))]
    for table in tables:
        table.fill()
    tensors = {
        name: (weights.shared if name in shared else weights.tensor)(name, dtype, graph) for name, dtype in names
    }
    session = provider.session(content, tensors, shared, captured, file)
    session.tables = tables
    for table in tables:
        table.forget()
    del tensors
    heap.trim()  # six megabytes a translator
    return session


def read_rows(session: InferenceSession, ids: AnyInts) -> None:
    """Read the rows of tokens that the next run of a session looks up, where its tables are not in memory as a whole.
    Raises ArtifactRefused: the file of the weights was written to since they were loaded."""
    for table in session.tables:
        table.read(np.unique(ids).tolist())


def read_weights(artifact: Artifact) -> "Weights":
    """Open the weights of an artifact. Raises ArtifactRefused: they are not what the manifest says."""
    return Weights(SafetensorsFile(artifact.open(WEIGHTS)))


class Weights:
    """The tensors of an artifact, in the types that graphs declare."""

    def __init__(self, file: SafetensorsFile) -> None:
        self._file = file
        self._shared: dict[tuple[str, np.dtype[Any]], NDArray[Any]] = {}
        self._tables: dict[tuple[str, np.dtype[Any]], Table] = {}

    def tensor(self, name: str, dtype: np.dtype[Any], graph: str) -> NDArray[Any]:
        """Return a tensor in the type that a graph declares for it. Tensors of other types are converted. Int8 numbers
        are multiplied by the scales of their rows, and divided by the smoothing of their columns, if there is one."""
        stored = self._stored(name, graph)
        if stored.dtype == dtype:
            return stored
        if np.issubdtype(dtype, np.floating):
            if np.issubdtype(stored.dtype, np.floating):
                return stored.astype(dtype)
            if stored.dtype == np.int8:
                numbers = stored * self._scales(name, stored.shape, graph)
                smoothing = f"{name.removesuffix('.weight')}.smoothing"
                if smoothing in self._file:
                    factors = self._file.read(smoothing)
                    if factors.shape != stored.shape[1:]:
                        shapes = f"{stored.shape}, and its smoothing {factors.shape}, which does not fit"
                        raise self._refused(f"{name} has shape {shapes}")
                    numbers /= factors
                return numbers.astype(dtype)
        raise self._refused(f"{name} is {stored.dtype}, which cannot become the {dtype} that {graph} declares")

    def shared(self, name: str, dtype: np.dtype[Any], graph: str) -> NDArray[Any]:
        """Return a tensor like `tensor`, always in the same memory."""
        if (table := self.table(name, dtype)) is not None:
            return table.array
        if (name, dtype) not in self._shared:
            self._shared[name, dtype] = self.tensor(name, dtype, graph)
        return self._shared[name, dtype]

    def table(self, name: str, dtype: np.dtype[Any]) -> Table | None:
        """Return a tensor as a table whose rows are read when they are needed; None if it is no large table."""
        if not name.endswith(TOKENS) or name not in self._file or sys.platform != "linux":
            return None
        is_converted = np.issubdtype(dtype, np.floating) and np.issubdtype(self._file.dtype(name), np.floating)
        if self._file.n_bytes(name) < LARGE_BYTES or not (is_converted or dtype == self._file.dtype(name)):
            return None
        if (name, dtype) not in self._tables:
            read = partial(self._file.read_rows, name)
            self._tables[name, dtype] = Table(self._file.shape(name), dtype, read)
        return self._tables[name, dtype]

    def _stored(self, name: str, graph: str) -> NDArray[Any]:
        if name not in self._file:
            raise self._refused(f"has no tensor {name}, which {graph} takes")
        return self._file.read(name)

    def _scales(self, name: str, shape: tuple[int, ...], graph: str) -> NDArray[np.float32]:
        scales = self._stored(f"{name}.scales", graph)
        if len(shape) != 2 or scales.shape != (shape[0], 1):
            raise self._refused(f"{name} has shape {shape}, and {name}.scales {scales.shape}, which does not fit")
        return scales.astype(np.float32)

    def _refused(self, sentence: str) -> ArtifactRefused:
        return ArtifactRefused(f"{self._file.path}: {sentence}")
