"""Classification in one pass: windows in, logits out.

A text longer than the model's window is read in windows that do not overlap. Their logits are combined as the model
pools its tokens: the mean weighted by token counts for mean pooling, the largest for max pooling. Both are exactly the
pooling over all the per-token logits of the text.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from service.scheduler import Sequence


@dataclass
class Reading:
    """What a classifier made of one window: a logit per label."""

    logits: NDArray[np.float32] | None = None


class BatchClassifier(Protocol):
    def classify(self, sources: list[list[int]]) -> NDArray[np.float32]:
        """Logits (B, C) of B sources."""


class OnePass:
    """The computation of a classification engine: a sequence is finished as soon as it is read."""

    def __init__(self, classifier: BatchClassifier, unk: int) -> None:
        self._classifier = classifier
        self._unk = unk

    def warm_up(self) -> None:
        self._classifier.classify([[self._unk]])

    def prefill(self, _first_place: int, sequences: list[Sequence[Reading]]) -> None:
        logits = self._classifier.classify([sequence.source_ids for sequence in sequences])
        for sequence, row in zip(sequences, logits, strict=True):
            sequence.output.logits = row
            sequence.finished = True

    def step(self, _running: list[Sequence[Reading]]) -> int:
        raise AssertionError("a classifier has no steps: prefill finishes its sequences")

    def move(self, _source_place: int, _target_place: int) -> None:
        """A classifier keeps nothing in its places."""


def windows(token_ids: list[int], max_tokens: int) -> list[list[int]]:
    """Cut into the fewest windows of at most `max_tokens`, of nearly equal length."""
    count = -(-len(token_ids) // max_tokens)
    bounds = [len(token_ids) * i // count for i in range(count + 1)]
    return [token_ids[start:end] for start, end in pairwise(bounds)]


def probabilities(readings: list[Reading], lengths: list[int], pooling: Literal["mean", "max"]) -> NDArray[np.float64]:
    """Of each label (C), from the readings of a text's windows and their token counts."""
    logits = np.stack([reading.logits for reading in readings if reading.logits is not None]).astype(np.float64)
    pooled = np.average(logits, axis=0, weights=lengths) if pooling == "mean" else logits.max(axis=0)
    exponentials = np.exp(pooled - pooled.max())
    shares: NDArray[np.float64] = exponentials / exponentials.sum()
    return shares
