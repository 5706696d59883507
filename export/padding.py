"""Sequences of different lengths as one array."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MIN_TOKENS = 2
"""Smallest width of a batch. ONNX Runtime multiplies a single row by another kernel than several rows, and the sums of
the two differ in their last bits."""


def pad(
    sequences: Sequence[Sequence[int]], padding: int, min_length: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ids (B, longest, or at least `min_length`), filled up with `padding`, and lengths (B)."""
    lengths = np.array([len(s) for s in sequences])
    ids = np.full((len(sequences), max(min_length, lengths.max())), padding)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids, lengths
