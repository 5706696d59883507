"""A classifier on ONNX Runtime."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.runner.padding import padded
from service.runner.provider import Provider


class ClassificationRunner:
    """The classifier graph of one artifact."""

    def __init__(self, artifact: Artifact, provider: Provider) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._session = provider.session(artifact.path("classifier.onnx"))

    def classify(self, sources: list[list[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits (B, C) of B sources, and of each of their tokens (B, S, C)."""
        input_ids, lengths = padded(sources, self._pad)
        results = self._session.run(["logits", "token_logits"], {"input_ids": input_ids, "lengths": lengths})
        return cast(tuple[NDArray[np.float32], NDArray[np.float32]], tuple(results))
