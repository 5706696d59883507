"""Graphs that read a source in one pass: of a classifier, of an encoder, and of what was attended to."""

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, RunOptions

from service.base.artifact import Artifact
from service.base.contract import AttentionKinds, Matrices
from service.base.errors import StartRefused
from service.runner.arrays import padded
from service.runner.provider import Provider
from service.runner.weights import Weights, load

STATES = "last_hidden_state"

LENGTHS = {"translation": "source_lengths", "classification": "lengths", "embedding": "lengths"}
"""What the graph with an encoder calls the lengths."""


class ClassificationRunner:
    """The classifier graph of one artifact."""

    def __init__(self, artifact: Artifact, classifier: InferenceSession) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._of_tokens = artifact.manifest.pooling != "first"
        self._session = classifier

    def classify(self, sources: list[list[int]]) -> list[NDArray[np.float32]]:
        """The logits of each token of each source, (S, C), without padding; (1, C) where the first token decides."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        output = "token_logits" if self._of_tokens else "logits"
        (logits,) = self._session.run([output], {"input_ids": input_ids, "lengths": lengths})
        if not self._of_tokens:
            return list(logits[:, None])
        return [row[: len(source)] for row, source in zip(logits, sources, strict=True)]


class EmbeddingRunner:
    """The encoder of one artifact.

    Args:
        encoder: the graph with the encoder.
        options: of its runs.

    Raises:
        StartRefused: the graph does not give what it makes of each token, or not as wide as the manifest says.
    """

    def __init__(self, artifact: Artifact, encoder: InferenceSession, options: RunOptions | None = None) -> None:
        self._lengths = LENGTHS[artifact.manifest.task]
        self._pad = artifact.manifest.special_tokens.pad
        self._session, self._options = encoder, options
        shapes = {value.name: value.shape for value in encoder.get_outputs()}
        if STATES not in shapes:
            raise StartRefused(
                f"{artifact.directory}: the encoder has no output {STATES}, from which embeddings are made"
            )
        width, d_states = shapes[STATES][-1], artifact.manifest.dimensions.d_states
        if width != d_states:
            raise StartRefused(f"{artifact.directory}: {STATES} is {width} wide; the manifest says {d_states}")

    def embed(self, sources: list[list[int]]) -> list[NDArray[np.float32]]:
        """The last hidden states of each source, (S, E), without padding."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        (states,) = self._session.run([STATES], {"input_ids": input_ids, self._lengths: lengths}, self._options)
        return [row[: len(source)] for row, source in zip(states, sources, strict=True)]


class DenseRunner:
    """The dense layers of one artifact, through which pooled states go."""

    def __init__(self, dense: InferenceSession) -> None:
        self._session = dense

    def project(self, pooled: NDArray[np.float32]) -> NDArray[np.float32]:
        """pooled (B, D) to (B, D'), each row by itself."""
        rows = np.concatenate([pooled, pooled[:1]])  # a single one would be multiplied by another kernel
        projected: NDArray[np.float32] = self._session.run(None, {"pooled": rows})[0]
        return projected[:-1]


class AttentionRunner:
    """The attention graph of one artifact: a translator's, or another's, which has no targets."""

    def __init__(self, artifact: Artifact, provider: Provider, weights: Weights | None = None) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._has_targets = artifact.manifest.task == "translation"
        self._session = load(artifact, provider, "attention.onnx", weights=weights)

    def attend(self, sources: list[list[int]], targets: list[list[int]], kinds: AttentionKinds) -> list[Matrices]:
        """What each source and target attended to, by kind: (layers, heads, rows, columns), without padding.

        Args:
            targets: what the decoder reads, as long as what it writes; as many as sources, and empty without a decoder.
        """
        input_ids, source_lengths = padded(sources, self._pad)  # (B, S), (B)
        feeds = {"input_ids": input_ids}
        if self._has_targets:
            feeds["source_lengths"] = source_lengths
            feeds["target_ids"], _ = padded(targets, self._pad)
        else:
            feeds["lengths"] = source_lengths
        names = sorted(kinds)
        found = dict(zip(names, self._session.run(names, feeds), strict=True))
        sizes = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        return [
            {kind: _without_padding(found[kind][row], kind, *size) for kind in names} for row, size in enumerate(sizes)
        ]


def _without_padding(matrices: NDArray[np.float32], kind: str, n_source: int, n_target: int) -> NDArray[np.float32]:
    rows = n_source if kind == "encoder" else n_target
    columns = n_target if kind == "decoder" else n_source
    return matrices[:, :, :rows, :columns]
