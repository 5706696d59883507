"""Sequences of different lengths as one array."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST_TOKENS = 2
"""Of a sequence that is run alone. ONNX Runtime multiplies a single row by another kernel than several, whose sums end
in other bits."""


def pad(
    sequences: Sequence[Sequence[int]], padding: int, shortest: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sequences to ids (B, longest, or `shortest`), the rest `padding`, and lengths (B)."""
    lengths = np.array([len(s) for s in sequences])
    ids = np.full((len(sequences), max(shortest, lengths.max())), padding)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids, lengths
