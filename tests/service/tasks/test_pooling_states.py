"""States of tokens are pooled as their kinds say, without the tokens that are left out."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest.schema import TokenPooling
from service.engine.scheduler import Sequence
from service.passes.pooling import WindowEmbedding, pool_states, read_states

STATES = np.array([[9.0, -9.0], [1.0, 8.0], [4.0, -2.0]])


@pytest.mark.parametrize(
    ("kind", "whole", "without_the_first"),
    [
        ("first", [9, -9], [1, 8]),
        ("last", [4, -2], [4, -2]),
        ("max", [9, 8], [4, 8]),
        ("mean", [14 / 3, -1], [2.5, 3]),
        ("mean_sqrt_len", [14 / 3**0.5, -3 / 3**0.5], [5 / 2**0.5, 6 / 2**0.5]),
        ("weighted_mean", [23 / 6, 1 / 6], [14 / 5, 10 / 5]),
    ],
)
def test_every_kind_is_what_it_is_called(kind: TokenPooling, whole: Any, without_the_first: Any) -> None:
    np.testing.assert_allclose(pool_states(STATES, (kind,), 0), whole)
    np.testing.assert_allclose(pool_states(STATES, (kind,), 1), without_the_first)


def test_several_kinds_are_joined_in_their_order() -> None:
    assert pool_states(STATES, ("last", "first"), 0).tolist() == [4, -2, 9, -9]


def test_only_requests_for_them_go_through_dense_layers() -> None:
    sequences = [
        Sequence([5, 6, 7], WindowEmbedding(("mean",), projected=True)),
        Sequence([5, 6, 7], WindowEmbedding(("mean",))),
        Sequence([5, 6, 7], WindowEmbedding(())),
    ]
    given: list[NDArray[np.float32]] = []

    def project(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        given.append(rows)
        return 2 * rows[:, :1]

    read_states(lambda sources: [STATES.astype(np.float32)] * len(sources), project, sequences)
    assert [rows.shape for rows in given] == [(1, 2)]
    np.testing.assert_allclose(sequences[0].output.vectors, [28 / 3], rtol=1e-6)
    np.testing.assert_allclose(sequences[1].output.vectors, [14 / 3, -1])
    np.testing.assert_allclose(sequences[2].output.vectors, STATES)
