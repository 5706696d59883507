import math

import pytest

from service.engine.search import Hypothesis, Search, TokenScores
from service.tasks.translation.rewinding import is_better, join_hypotheses, rewind

EOS = 3
FIRST, SECOND = 20, 21
ONCE = (FIRST, SECOND)
INF = math.inf


def hypothesis(*steps: tuple[int, float, float]) -> Hypothesis:
    """Of tokens, each with the shortfalls of both slots."""
    return Hypothesis(
        [token for token, _, _ in steps],
        -0.5 * len(steps),
        "eos",
        [TokenScores(-0.5, (first, second)) for _, first, second in steps],
    )


def search(**options: object) -> Search:
    return Search(9, 4, once_tokens=ONCE, n_best=3, **options)  # type: ignore[arg-type]


def test_a_search_goes_on_where_a_missing_slot_was_nearest() -> None:
    lacks_both = hypothesis((5, 7.0, INF), (6, 2.5, 3.0), (7, INF, 2.0), (EOS, 4.0, 9.0))
    again = rewind(lacks_both, search())
    assert again is not None
    asked = (again.prefix, again.once_tokens, again.beam_size, again.n_best, again.finished)
    assert asked == ((5, 6, SECOND), ONCE, 4, 1, [])


def test_a_slot_that_is_there_is_not_looked_for() -> None:
    lacks_second = hypothesis((5, 0.1, INF), (FIRST, 0.0, 6.0), (EOS, INF, 7.0))
    again = rewind(lacks_second, search())
    assert again is not None
    assert again.prefix == (5, SECOND)


def test_a_search_is_not_repeated_if_no_slot_was_near() -> None:
    assert rewind(hypothesis((5, INF, INF), (EOS, INF, INF)), search()) is None


def test_a_slot_is_not_written_where_no_token_may_follow() -> None:
    """It was, and the target had a token more than it may have."""
    full = Hypothesis([5, 6], -1.0, "length", [TokenScores(-0.5, (4.0, INF)), TokenScores(-0.5, (1.0, INF))])
    again = rewind(full, Search(2, once_tokens=ONCE))
    assert again is not None
    assert again.prefix == (FIRST,)
    assert rewind(Hypothesis([5], -0.5, "length", [TokenScores(-0.5, (1.0, 2.0))]), Search(1, once_tokens=ONCE)) is None


def test_joined_hypotheses_count_the_whole_target() -> None:
    former = hypothesis((5, 7.0, 4.0), (6, 2.0, 3.0), (EOS, 4.0, 9.0))
    again = rewind(former, search())
    assert again is not None
    later = Hypothesis(
        [5, FIRST, 8, EOS],
        -0.3,
        "eos",
        [TokenScores(0.0, (INF, INF))] * 2 + [TokenScores(-0.1, (INF, 1.0)), TokenScores(-0.2, (INF, 2.0))],
    )
    again.finished.append(later)
    joined = join_hypotheses(former, again)
    assert joined.token_ids == [5, FIRST, 8, EOS]
    assert joined.log_prob == pytest.approx(-0.5 + (-0.5 - 2.0) - 0.1 - 0.2)
    assert [scores.shortfalls for scores in joined.token_scores] == [(7.0, 4.0), (INF, 3.0), (INF, 1.0), (INF, 2.0)]
    assert rewind(joined, search()).prefix == (5, FIRST, SECOND)  # type: ignore[union-attr]


def test_a_target_that_is_longer_than_its_slot_explains_is_none() -> None:
    former = Hypothesis([5, EOS], -1.0, "eos")
    assert is_better(Hypothesis([5, FIRST, EOS], -1.0, "eos"), former, ONCE)
    assert not is_better(Hypothesis([5, 6, EOS], -1.0, "eos"), former, ONCE)
    assert not is_better(Hypothesis([5, FIRST, *[6] * 20, EOS], -1.0, "eos"), former, ONCE)
    assert not is_better(Hypothesis([5, FIRST], -1.0, "length"), former, ONCE)
