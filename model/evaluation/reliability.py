"""Whether a classifier's score is the share of its answers that are right."""

import numpy as np
from numpy.typing import NDArray

N_BINS = 15


def calibration_error(scores: NDArray[np.float64], correct: NDArray[np.bool_], n_bins: int = N_BINS) -> float:
    """Expected calibration error (Guo et al. 2017, section 2): how far score and accuracy are apart, on average.

    Predictions are put into bins of equal width by their score; a bin's share of them weighs the difference between its
    mean score and its accuracy.

    Args:
        scores: (N) probability of each predicted label.
        correct: (N) whether it was the right one.

    Returns:
        Between 0 and 1.
    """
    bins = np.clip(np.ceil(scores * n_bins).astype(int) - 1, 0, n_bins - 1)  # (0, 1/n], (1/n, 2/n], ...
    sum_of_scores = np.bincount(bins, scores, n_bins)
    n_correct = np.bincount(bins, correct, n_bins)
    return float(np.abs(sum_of_scores - n_correct).sum() / len(scores))


def negative_log_likelihood(scores: NDArray[np.float64]) -> float:
    """Mean of -log p, in nats, for the probabilities (N) that the right labels were given; none counts below 1e-12."""
    return float(-np.log(np.maximum(scores, 1e-12)).mean())
