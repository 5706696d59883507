import math

import numpy as np
import pytest

from model.evaluation.reliability import calibration_error, negative_log_likelihood
from model.evaluation.scoring import score_labels


def slow_calibration_error(scores: list[float], correct: list[bool], n_bins: int) -> float:
    """This is equation 3 of Guo et al. 2017, literally."""
    total = 0.0
    for m in range(1, n_bins + 1):
        members = [i for i, score in enumerate(scores) if (m - 1) / n_bins < score <= m / n_bins]
        if members:
            accuracy = sum(correct[i] for i in members) / len(members)
            confidence = sum(scores[i] for i in members) / len(members)
            total += len(members) / len(scores) * abs(accuracy - confidence)
    return total


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_calibration_error_is_that_of_a_slow_loop(n_bins: int) -> None:
    random = np.random.default_rng(3)
    scores = np.concatenate([random.uniform(0.01, 1, 500), [1.0, 0.25, 0.5]])
    correct = random.uniform(size=len(scores)) < scores**2
    expected = slow_calibration_error(scores.tolist(), correct.tolist(), n_bins)
    assert expected > 0.05
    assert calibration_error(scores, correct, n_bins) == pytest.approx(expected)


def test_one_that_is_as_sure_as_it_is_right_has_none() -> None:
    assert calibration_error(np.full(10, 0.9), np.arange(10) != 0) == pytest.approx(0)
    assert calibration_error(np.full(10, 0.9), np.arange(10) < 5) == pytest.approx(0.4)


def test_negative_log_likelihood_is_finite_for_a_label_held_impossible() -> None:
    assert negative_log_likelihood(np.array([0.5, 1.0])) == pytest.approx(math.log(2) / 2)
    assert negative_log_likelihood(np.array([0.0])) == pytest.approx(-math.log(1e-12))


def test_scores_of_labels() -> None:
    probabilities = [{"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.75}, {"a": 0.75, "b": 0.25}, {"a": 0.75, "b": 0.25}]
    assert score_labels(probabilities, ["a", "b", "a", "b"]) == {
        "accuracy": 75.0,
        "calibration_error": 0.0,
        "negative_log_likelihood": round(-(3 * math.log(0.75) + math.log(0.25)) / 4, 4),
    }
