"""The measured rate of an engine that has all the work that it can take."""

import pytest

from service.engine.rate import MAX_AGE_S, Rate
from service.engine.scheduler import Sequence

ROWS = 4


def sequences(n: int, n_rows: int = 1) -> list[Sequence[None]]:
    return [Sequence([1] * 10, None, n_rows=n_rows) for _ in range(n)]


def test_the_rate_is_the_work_of_all_that_ran_over_the_time_until_they_were_finished() -> None:
    rate = Rate()
    rate.finished(sequences(1), ROWS, now=100.0)  # it filled the rows while nobody waited
    rate.finished(sequences(3), ROWS, now=101.0)
    assert rate.work_per_s is None, "one that was admitted with these still runs"
    rate.finished(sequences(1), ROWS, now=102.0)
    assert rate.work_per_s == pytest.approx(4 * 10 / 2)


def test_the_rate_follows_an_engine_that_becomes_slower() -> None:
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=0.0)
    rate.finished(sequences(4), ROWS, now=1.0)
    for now in range(5, 45, 4):
        rate.finished(sequences(4), ROWS, now)
    assert rate.work_per_s == pytest.approx(10.0, rel=0.01)


def test_where_one_pass_finishes_all_each_pass_is_measured() -> None:
    rate = Rate()
    rate.finished(sequences(5), 0, now=0.0)
    rate.finished(sequences(6), 0, now=2.0)
    assert rate.work_per_s == pytest.approx(30.0)


def test_a_wide_search_is_as_much_work_as_its_rows() -> None:
    rate = Rate()
    rate.finished(sequences(1), 1, now=0.0)
    rate.finished(sequences(1, n_rows=4), 1, now=2.0)
    assert rate.work_per_s == pytest.approx(4 * 10 / 2)


def test_work_that_ends_while_no_sequence_waits_is_not_measured() -> None:
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=0.0)
    rate.pause(now=0.0)
    rate.finished(sequences(4), ROWS, now=100.0)
    assert rate.work_per_s is None
    rate.finished(sequences(4), ROWS, now=101.0)
    assert rate.work_per_s == pytest.approx(40.0)


def test_a_rate_is_forgotten_when_it_was_not_measured_for_long_and_not_while_it_is_measured() -> None:
    """A rate that was far too low let one sequence wait at a time, which is never measured: it stayed for ever."""
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=0.0)
    rate.finished(sequences(4), ROWS, now=50.0)
    rate.finished(sequences(1), ROWS, now=51.0 + MAX_AGE_S)
    assert rate.work_per_s is not None, "a slow engine takes long for a measurement"
    rate.finished(sequences(3), ROWS, now=52.0 + MAX_AGE_S)
    rate.pause(now=60.0 + MAX_AGE_S)
    assert rate.work_per_s is not None
    rate.pause(now=53.0 + 2 * MAX_AGE_S)
    assert rate.work_per_s is None
