"""Sequences of different lengths are read with little padding."""

import math

from hypothesis import given
from hypothesis import strategies as st

from service.runner.padding import batches_of_like_length


def batches(lengths: list[int], most_padding: float) -> list[list[int]]:
    return [lengths[batch] for batch in batches_of_like_length(lengths, most_padding)]


def test_a_batch_ends_where_the_next_sequence_would_pad_it_too_much() -> None:
    lengths = [6, 8, 10, 13, 16, 25]
    assert batches(lengths, 8) == [[6, 8, 10], [13, 16], [25]]
    assert batches(lengths, 0) == [[length] for length in lengths]
    assert batches(lengths, math.inf) == [lengths]


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(0, 40))
def test_each_sequence_is_in_one_batch_in_order(lengths: list[int], most_padding: int) -> None:
    found = batches(lengths, most_padding)
    assert [length for batch in found for length in batch] == lengths
    assert all(found)
