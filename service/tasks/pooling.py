"""Classification in one pass: windows in, logits out.

The graph's own pooling over tokens is not used: the last bits of its sums depend on padding, and so on neighbours.

A text longer than the model's window is read in windows that do not overlap. Their logits are combined as the model
pools its tokens: the mean weighted by token counts for mean pooling, the largest for max pooling. Both are exactly the
pooling over all the per-token logits of the text. Where the first token of a window decides, the mean is weighted the
same way.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.base.contract import Classify
from service.engine.scheduler import Sequence

Pooling = Literal["mean", "max", "first"]
Activation = Literal["softmax", "sigmoid"]


@dataclass
class WindowLogits:
    """What a classifier made of one window: a logit per label (C)."""

    logits: NDArray[np.float64] | None = None


def refuse_not_finite(numbers: NDArray[np.float32]) -> None:
    """Raises FloatingPointError: the model's weights, or their rounding, turn this input into infinity or NaN."""
    if not np.isfinite(numbers).all():
        raise FloatingPointError("the model's output is not finite")


def read_logits(classify: Classify, pooling: Pooling, sequences: list[Sequence[WindowLogits]]) -> None:
    """What a classification engine runs."""
    found = classify([sequence.source_ids for sequence in sequences])
    for sequence, token_logits in zip(sequences, found, strict=True):
        refuse_not_finite(token_logits)
        exact = token_logits.astype(np.float64)
        sequence.output.logits = exact.max(axis=0) if pooling == "max" else exact.mean(axis=0)


def pooled(readings: list[WindowLogits], lengths: list[int], pooling: Pooling) -> NDArray[np.float64]:
    """Logits (C) of a text, from the readings of its windows and their token counts."""
    logits = np.stack([reading.logits for reading in readings if reading.logits is not None])
    return logits.max(axis=0) if pooling == "max" else np.average(logits, axis=0, weights=lengths)


def probabilities(logits: NDArray[np.float64], activation: Activation = "softmax") -> NDArray[np.float64]:
    """Of each label (C): of one label of all, or of each by itself."""
    if activation == "sigmoid":
        one_by_one: NDArray[np.float64] = (1 + np.tanh(logits / 2)) / 2  # which never overflows
        return one_by_one
    exponentials = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = exponentials / exponentials.sum()
    return shares
