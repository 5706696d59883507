"""The scores of a text's labels, from the logits of its windows.

A text that is too long is read in windows that do not overlap. Their logits are combined as the model pools tokens: by
the mean weighted with token counts for mean pooling, by the maximum for max pooling. Both equal the pooling over all
per-token logits of the text. If one state of a window decides, the same weighted mean is used.

Legend: C labels.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.passes.pooling import Pooling, WindowLogits

Activation = Literal["softmax", "sigmoid", "identity"]


def pool_windows(readings: list[WindowLogits], lengths: list[int], pooling: Pooling) -> NDArray[np.float64]:
    """Return the logits (C) of a text from the logits and token counts of its windows."""
    logits = np.stack([reading.logits for reading in readings if reading.logits is not None])
    return logits.max(axis=0) if pooling == "max" else np.average(logits, axis=0, weights=lengths)


def scores_of(logits: NDArray[np.float64], activation: Activation = "softmax") -> NDArray[np.float64]:
    """Return the score of each label (C): its probability, or for `identity` its logit. With softmax exactly one label
    is true; with sigmoid each label is true or false by itself."""
    if activation == "identity":
        return logits
    if activation == "sigmoid":
        one_by_one: NDArray[np.float64] = (1 + np.tanh(logits / 2)) / 2  # this form never overflows
        return one_by_one
    exponentials = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = exponentials / exponentials.sum()
    return shares
