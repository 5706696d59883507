"""Retrieval on vectors made by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from model.evaluation.retrieval import Retrieval, centred, first_ranks, nearest, tf_idf, whitened
from model.tokenizer import EOS_ID

RANDOM = np.random.default_rng(5)


def test_ranks_are_those_of_sorting_by_hand() -> None:
    vectors = RANDOM.normal(size=(40, 6)).astype(np.float32)
    group = np.arange(40) // 4
    expected = []
    for i, vector in enumerate(vectors):
        cosines = vectors @ vector / np.linalg.norm(vectors, axis=1)
        order = [j for j in np.argsort(-cosines) if j != i]
        expected.append(1 + next(rank for rank, j in enumerate(order) if group[j] == group[i]))
    assert first_ranks(vectors, group).tolist() == expected
    assert max(expected) > 3
    assert nearest(vectors, 7) == max((j for j in range(40) if j != 7), key=lambda j: cosine(vectors[7], vectors[j]))


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_vectors_that_tell_nothing_apart_find_nothing() -> None:
    """Ties count against a method: a constant is no representation."""
    group = np.array([0, 0, 1, 1, 1])
    assert Retrieval.of(first_ranks(np.ones((5, 3), np.float32), group)).accuracy == 0
    assert Retrieval.of(first_ranks(np.eye(9, dtype=np.float32)[group], group)) == Retrieval(100, 1)
    assert Retrieval.of(np.array([1, 4])) == Retrieval(50, 0.625)
    assert np.isnan(Retrieval.of(np.zeros(0, np.int64)).accuracy)


def test_a_bag_counts_tokens_by_how_rare_they_are() -> None:
    counted = tf_idf([[5, 5, EOS_ID], [5, 7, EOS_ID], [8, EOS_ID]], vocab_size=9)
    assert counted[:, EOS_ID].sum() == 0
    assert counted[0, 5] == pytest.approx(2 * np.log(4 / 3))
    assert counted[1, 7] == pytest.approx(np.log(4 / 2))


def test_whitened_vectors_have_no_common_direction() -> None:
    vectors = (RANDOM.normal(size=(500, 6)) @ RANDOM.normal(size=(6, 6)) + 3).astype(np.float32)
    np.testing.assert_allclose(centred(vectors).mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(whitened(vectors).T), np.eye(6), atol=1e-2)
