"""The encoder of a translator or of a classifier on ONNX Runtime, for what it makes of each token."""

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.errors import StartRefused
from service.runner.arrays import padded
from service.runner.provider import Provider

STATES = "last_hidden_state"

GRAPHS = {"translation": ("encoder.onnx", "source_lengths"), "classification": ("classifier.onnx", "lengths")}
"""The graph with an encoder, and what it calls the lengths."""


class EmbeddingRunner:
    """The encoder of one artifact; `width` is that of a vector.

    Raises:
        StartRefused: the graph does not give what it makes of each token.
    """

    def __init__(self, artifact: Artifact, provider: Provider) -> None:
        graph, self._lengths = GRAPHS[artifact.manifest.task]
        self._pad = artifact.manifest.special_tokens.pad
        self._session = provider.session(artifact.path(graph))
        shapes = {value.name: value.shape for value in self._session.get_outputs()}
        if STATES not in shapes:
            raise StartRefused(f"{artifact.path(graph)}: has no {STATES}, which embeddings are made of")
        self.width = shapes[STATES][-1]

    def embed(self, sources: list[list[int]]) -> list[NDArray[np.float32]]:
        """The last hidden states of each source, (S, E), without padding."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        (states,) = self._session.run([STATES], {"input_ids": input_ids, self._lengths: lengths})
        return [row[: len(source)] for row, source in zip(states, sources, strict=True)]
