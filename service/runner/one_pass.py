"""Graphs that need a single pass: a classifier, an encoder, its dense layers, and attention matrices."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, RunOptions

from service.base.artifact import Artifact
from service.base.contract import AttentionKinds, Matrices
from service.base.errors import StartRefused
from service.runner import heap
from service.runner.arrays import padded
from service.runner.provider import Provider
from service.runner.weights import Weights, read_rows, session_loader

STATES = "last_hidden_state"

LENGTHS = {"translation": "source_lengths", "classification": "lengths", "embedding": "lengths"}
"""The name of the input with the lengths in the graph with an encoder, by task."""


def classify(artifact: Artifact, classifier: InferenceSession, sources: list[list[int]]) -> list[NDArray[np.float32]]:
    """Return the logits of each token of each source, (S, C), without padding; (1, C) if one state decides."""
    input_ids, lengths = padded(sources, artifact.manifest.special_tokens.pad)  # (B, S), (B)
    one_decides = artifact.manifest.pools_states
    output = "logits" if one_decides else "token_logits"
    read_rows(classifier, input_ids)
    (logits,) = classifier.run([output], {"input_ids": input_ids, "lengths": lengths})
    if one_decides:
        return list(logits[:, None])
    return [row[: len(source)] for row, source in zip(logits, sources, strict=True)]


class EmbeddingRunner:
    """The encoder of one artifact: a session, and the options of its runs. Raises StartRefused: the graph has no last
    hidden states, or their width is not that of the manifest."""

    def __init__(self, artifact: Artifact, encoder: InferenceSession, options: RunOptions | None = None) -> None:
        self._lengths = LENGTHS[artifact.manifest.task]
        self._pad = artifact.manifest.special_tokens.pad
        self._session, self._options = encoder, options
        shapes = {value.name: value.shape for value in encoder.get_outputs()}
        if STATES not in shapes:
            raise StartRefused(f"{artifact.directory}: the encoder has no output {STATES}, which embeddings need")
        width, d_states = shapes[STATES][-1], artifact.manifest.dimensions.d_states
        if width != d_states:
            raise StartRefused(f"{artifact.directory}: {STATES} has width {width}; the manifest says {d_states}")

    def embed(self, sources: list[list[int]]) -> list[NDArray[np.float32]]:
        """Return the last hidden states of each source, (S, E), without padding."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        read_rows(self._session, input_ids)
        (states,) = self._session.run([STATES], {"input_ids": input_ids, self._lengths: lengths}, self._options)
        return [row[: len(source)] for row, source in zip(states, sources, strict=True)]


def project(dense: InferenceSession, pooled: NDArray[np.float32]) -> NDArray[np.float32]:
    """Apply the dense layers of an artifact to each row of pooled states (B, D); returns (B, D')."""
    rows = np.concatenate([pooled, pooled[:1]])  # a single row would be multiplied with another kernel
    projected: NDArray[np.float32] = dense.run(None, {"pooled": rows})[0]
    return projected[:-1]


class AttentionRunner:
    """The attention graph of one artifact; only a translator's has targets.

    Args:
        unload_after_s: how long after its last use the graph is unloaded; it is loaded when it is needed. None keeps it
            loaded. It holds all weights of encoder and decoder once more.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        artifact: Artifact,
        provider: Provider,
        weights: Weights | None = None,
        unload_after_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._lengths = LENGTHS[artifact.manifest.task]
        self._has_targets = artifact.manifest.task == "translation"
        self._load = session_loader(artifact, provider, "attention.onnx", weights=weights)
        self._session = self._load() if unload_after_s is None else None
        self._unload_after_s = unload_after_s
        self._clock = clock
        self._used_at = clock()

    def attend(self, sources: list[list[int]], targets: list[list[int]], kinds: AttentionKinds) -> list[Matrices]:
        """Return the attention matrices (layers, heads, rows, columns) of each pair by kind, without padding. `targets`
        has the decoder's input for each source, as long as its output; it is empty if there is no decoder."""
        session = self._session = self._session or self._load()
        self._used_at = self._clock()
        input_ids, source_lengths = padded(sources, self._pad)  # (B, S), (B)
        feeds = {"input_ids": input_ids, self._lengths: source_lengths}
        if self._has_targets:
            feeds["target_ids"], _ = padded(targets, self._pad)
            read_rows(session, feeds["target_ids"])
        read_rows(session, input_ids)
        names = sorted(kinds)
        padded_matrices = dict(zip(names, session.run(names, feeds), strict=True))
        sizes = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        return [
            {kind: _without_padding(matrices[row], kind, *size) for kind, matrices in padded_matrices.items()}
            for row, size in enumerate(sizes)
        ]

    def is_resting(self) -> bool:
        """Unload the graph if it was not used for long. Return whether it is unloaded."""
        if self._unload_after_s is not None and self._clock() - self._used_at >= self._unload_after_s:
            self._session = None
            heap.trim()
        return self._session is None


def _without_padding(matrices: NDArray[np.float32], kind: str, n_source: int, n_target: int) -> NDArray[np.float32]:
    rows = n_source if kind == "encoder" else n_target
    columns = n_target if kind == "decoder" else n_source
    return matrices[:, :, :rows, :columns]
