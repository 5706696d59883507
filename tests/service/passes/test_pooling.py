from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.scheduler import Sequence
from service.passes.pooling import WindowLogits, read_logits
from service.tasks.scores import pool_windows, scores_of
from service.tasks.windows import windows


@given(st.lists(st.integers(0, 99), min_size=1, max_size=200), st.integers(1, 50))
def test_windows_are_the_text_in_the_fewest_pieces_of_nearly_equal_length(token_ids: list[int], limit: int) -> None:
    pieces = windows(token_ids, limit)
    lengths = [len(piece) for piece in pieces]
    assert [token_id for piece in pieces for token_id in piece] == token_ids
    assert max(lengths) <= limit
    assert len(pieces) == -(-len(token_ids) // limit)
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("limit", [1, 4, 7, 100])
def test_pooling_windows_equals_pooling_the_whole_text(pooling: str, limit: int) -> None:
    per_token = np.random.default_rng(0).standard_normal((23, 3)).astype(np.float32)

    def pool(x: Any) -> Any:
        return x.mean(0) if pooling == "mean" else x.max(0)

    pieces = windows(list(range(23)), limit)
    readings = [WindowLogits(logits=pool(per_token[piece])) for piece in pieces]
    found = pool_windows(readings, [len(piece) for piece in pieces], pooling)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, pool(per_token), rtol=1e-5)


def test_probabilities_of_huge_logits_are_finite() -> None:
    found = scores_of(np.array([1e4, -1e4, 0]))
    np.testing.assert_allclose(found, [1, 0, 0])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_infinity_and_nan_are_no_probabilities(wrong: float) -> None:
    class Broken:
        def classify(self, sources: list[list[int]]) -> list[Any]:
            return [np.full((len(source), 2), wrong, np.float32) for source in sources]

    with pytest.raises(FloatingPointError, match="not finite"):
        read_logits(Broken().classify, "mean", [Sequence([4, 5], WindowLogits())])
