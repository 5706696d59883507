"""Pools the logits of a classifier over tokens and windows.

The graph's own pooling over tokens is not used: the last bits of its sums depend on padding, and so on other requests.

A text that is too long is read in windows that do not overlap. Their logits are combined as the model pools tokens: by
the mean weighted with token counts for mean pooling, by the maximum for max pooling. Both equal the pooling over all
per-token logits of the text. If the first token of a window decides, the same weighted mean is used.
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
    """The logits (C) of one window, one for each label."""

    logits: NDArray[np.float64] | None = None


def refuse_not_finite(numbers: NDArray[np.float32]) -> None:
    """Raise FloatingPointError if the model's output has infinity or NaN."""
    if not np.isfinite(numbers).all():
        raise FloatingPointError("the model's output is not finite")


def read_logits(classify: Classify, pooling: Pooling, sequences: list[Sequence[WindowLogits]]) -> None:
    """Run a batch of a classification engine."""
    found = classify([sequence.source_ids for sequence in sequences])
    for sequence, token_logits in zip(sequences, found, strict=True):
        refuse_not_finite(token_logits)
        exact = token_logits.astype(np.float64)
        sequence.output.logits = exact.max(axis=0) if pooling == "max" else exact.mean(axis=0)


def pool_windows(readings: list[WindowLogits], lengths: list[int], pooling: Pooling) -> NDArray[np.float64]:
    """Return the logits (C) of a text from the logits and token counts of its windows."""
    logits = np.stack([reading.logits for reading in readings if reading.logits is not None])
    return logits.max(axis=0) if pooling == "max" else np.average(logits, axis=0, weights=lengths)


def probabilities(logits: NDArray[np.float64], activation: Activation = "softmax") -> NDArray[np.float64]:
    """Return the probability of each label (C). softmax: exactly one label is true; sigmoid: each by itself."""
    if activation == "sigmoid":
        one_by_one: NDArray[np.float64] = (1 + np.tanh(logits / 2)) / 2  # this form never overflows
        return one_by_one
    exponentials = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = exponentials / exponentials.sum()
    return shares
