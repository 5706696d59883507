"""Sequences of different lengths as one rectangle."""

import numpy as np
from numpy.typing import NDArray

FEWEST_TOKENS = 2
"""Of one pass. ONNX Runtime multiplies a single row by another kernel than several, whose sums end in other bits."""


def padded(sources: list[list[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids (B, S), S the longest or FEWEST_TOKENS, filled up with `pad`; and the lengths (B)."""
    lengths = np.array([len(source) for source in sources], np.int64)
    ids = np.full((len(sources), max(FEWEST_TOKENS, int(lengths.max()))), pad, np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = source
    return ids, lengths
