"""A classifier on ONNX Runtime."""

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.runner.arrays import padded
from service.runner.provider import Provider


class ClassificationRunner:
    """The classifier graph of one artifact."""

    def __init__(self, artifact: Artifact, provider: Provider) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._session = provider.session(artifact.path("classifier.onnx"))

    def classify(self, sources: list[list[int]]) -> list[NDArray[np.float32]]:
        """The logits of each token of each source, (S, C), without padding."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        (token_logits,) = self._session.run(["token_logits"], {"input_ids": input_ids, "lengths": lengths})
        return [row[: len(source)] for row, source in zip(token_logits, sources, strict=True)]
