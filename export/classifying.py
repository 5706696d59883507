"""Running an artifact's classifier graph in batches of similar length.

Legend: B batch, S source, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from export.manifest import Manifest, Provider
from export.padding import pad
from export.session import open_session
from model.batching import batches_by_length

BATCH_TOKENS = 4096
"""Padded tokens in one batch."""

OUTPUTS = ["logits", "token_logits"]


@dataclass(frozen=True)
class Classification:
    """What the graph says of one sequence."""

    logits: NDArray[np.float32]  # (C)
    token_logits: NDArray[np.float32]  # (S, C)


class Classifier:
    """An artifact's classifier.

    Args:
        provider: whose graph it is.
        threads: that share one operator's work.
    """

    def __init__(self, directory: Path, manifest: Manifest, provider: Provider = "cpu", threads: int = 1) -> None:
        self.manifest = manifest
        self.session = open_session(directory, manifest, f"{provider}/classifier.onnx", threads)

    def classify(self, sequences: Sequence[Sequence[int]]) -> list[Classification]:
        """Logits of each sequence, which is no longer than the window."""
        results: dict[int, Classification] = {}
        for batch in batches_by_length(np.array([len(s) for s in sequences]), BATCH_TOKENS):
            input_ids, lengths = pad([sequences[i] for i in batch], self.manifest.special_tokens.pad)
            logits, token_logits = self.session.run(OUTPUTS, {"input_ids": input_ids, "lengths": lengths})
            for row, (index, length) in enumerate(zip(batch.tolist(), lengths.tolist(), strict=True)):
                results[index] = Classification(logits[row], token_logits[row, :length])
        return [results[i] for i in range(len(sequences))]
