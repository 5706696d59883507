from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service.decoding import GreedyDecoding, Hypothesis
from service.scheduler import Sequence

BOS, EOS = 2, 3


class ScriptedRows:
    """Says, for every row, the next word of that slot's script, and remembers what it was fed."""

    def __init__(self, *scripts: list[int]) -> None:
        self.scripts = scripts
        self.fed: list[tuple[list[int], list[int]]] = []

    def encode(self, first_slot: int, sources: list[list[int]]) -> None:
        pass

    def step(self, token_ids: NDArray[Any], positions: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        self.fed.append((token_ids.tolist(), positions.tolist()))
        chosen = [self.scripts[slot][position] for slot, position in enumerate(positions)]
        return np.array(chosen), np.array([-0.5 * (position + 1) for position in positions], np.float32)

    def move(self, source_slot: int, target_slot: int) -> None:
        raise AssertionError("not in these tests")


def hypotheses(*limits: int) -> list[Sequence[Hypothesis]]:
    return [Sequence([5, EOS], Hypothesis(limit)) for limit in limits]


def test_each_row_is_fed_its_own_last_token_at_its_own_position() -> None:
    rows = ScriptedRows([7, 8, 9], [6, 6, 6])
    early, late = hypotheses(9, 9)
    decoding = GreedyDecoding(rows, BOS, EOS)
    decoding.step([early])
    decoding.step([early, late])
    decoding.step([early, late])
    assert rows.fed == [([BOS], [0]), ([7, BOS], [1, 0]), ([8, 6], [2, 1])]
    assert (early.output.token_ids, late.output.token_ids) == ([7, 8, 9], [6, 6])


@pytest.mark.parametrize(
    ("limit", "token_ids", "reason"), [(9, [7, 8, EOS], "eos"), (3, [7, 8, EOS], "eos"), (2, [7, 8], "length")]
)
def test_a_hypothesis_ends_with_the_end_of_sequence_or_at_its_limit(
    limit: int, token_ids: list[int], reason: str
) -> None:
    (sequence,) = hypotheses(limit)
    decoding = GreedyDecoding(ScriptedRows([7, 8, EOS]), BOS, EOS)
    while not sequence.finished:
        decoding.step([sequence])
    assert sequence.output.token_ids == token_ids
    assert sequence.output.finish_reason == reason
    assert sequence.output.log_prob == pytest.approx(sum(-0.5 * (i + 1) for i in range(len(token_ids))))
