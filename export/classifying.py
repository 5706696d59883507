"""Running an artifact's classifier graph in batches of similar length.

Legend: B batch, S source, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.padding import MIN_TOKENS, pad
from export.session import open_session
from manifest.schema import Manifest, Provider
from model.batching import batches_by_length

BATCH_TOKENS = 4096
"""Largest number of padded tokens in a batch."""
Array = NDArray[Any]


@dataclass(frozen=True)
class Classification:
    """Logits of one sequence."""

    logits: NDArray[np.float32]  # (C)
    token_logits: NDArray[np.float32] | None  # (S, C); None where one state decides


class Classifier:
    """A session for an artifact's classifier graph.

    Args:
        provider: the provider that the graph was made for.
        threads: threads that share one operator's work.
    """

    def __init__(self, directory: Path, manifest: Manifest, provider: Provider = "cpu", threads: int = 1) -> None:
        self.manifest = manifest
        self.session = open_session(directory, manifest, f"{provider}/classifier.onnx", threads)

    def run(self, ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> tuple[Array, Array | None]:
        """Return logits (B, C) and, unless one state decides, token logits (B, S, C) of ids (B, S) of lengths
        (B)."""
        names = ["logits"] if self.manifest.pooling in ("first", "mean_states") else ["logits", "token_logits"]
        logits, *of_tokens = self.session.run(names, {"input_ids": ids, "lengths": lengths})
        return logits, of_tokens[0] if of_tokens else None

    def classify(self, sequences: Sequence[Sequence[int]]) -> list[Classification]:
        """Return the logits of each sequence; none may be longer than the window."""
        results: dict[int, Classification] = {}
        for batch in batches_by_length(np.array([len(s) for s in sequences]), BATCH_TOKENS):
            input_ids, lengths = pad([sequences[i] for i in batch], self.manifest.special_tokens.pad, MIN_TOKENS)
            logits, token_logits = self.run(input_ids, lengths)
            for row, (index, length) in enumerate(zip(batch.tolist(), lengths.tolist(), strict=True)):
                of_tokens = None if token_logits is None else token_logits[row, :length]
                results[index] = Classification(logits[row], of_tokens)
        return [results[i] for i in range(len(sequences))]
