"""Reliability of a classifier's scores: a score should be the share of its answers that are right."""

import numpy as np
from numpy.typing import NDArray

N_BINS = 15


def calibration_error(scores: NDArray[np.float64], correct: NDArray[np.bool_], n_bins: int = N_BINS) -> float:
    """Return the expected calibration error (Guo et al. 2017, section 2): the mean distance of score and accuracy.

    Predictions are put into bins of equal width by score; a bin counts by its share of them.

    Args:
        scores: (N) probabilities of the predicted labels.
        correct: (N) whether each prediction is right.

    Returns:
        A number between 0 and 1.
    """
    bins = np.clip(np.ceil(scores * n_bins).astype(int) - 1, 0, n_bins - 1)  # (0, 1/n], (1/n, 2/n], ...
    sum_of_scores = np.bincount(bins, scores, n_bins)
    n_correct = np.bincount(bins, correct, n_bins)
    return float(np.abs(sum_of_scores - n_correct).sum() / len(scores))


def negative_log_likelihood(scores: NDArray[np.float64]) -> float:
    """Return the mean of -log p, in nats, of the probabilities (N) of the right labels, each at least 1e-12."""
    return float(-np.log(np.maximum(scores, 1e-12)).mean())
