"""The measured rate of an engine that has all the work that it can take."""

import pytest

from service.engine.rate import Rate
from service.engine.scheduler import Sequence

ROWS = 4


def sequences(n: int, length: int = 10, n_rows: int = 1) -> list[Sequence[None]]:
    return [Sequence([1] * length, None, n_rows=n_rows) for _ in range(n)]


def test_the_rate_is_the_work_of_a_generation_of_rows_over_its_time() -> None:
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=100.0)  # they filled the rows while nobody waited
    assert rate.work_per_s is None
    rate.finished(sequences(3), ROWS, now=101.0)
    assert rate.work_per_s is None, "others that were admitted with these are not finished yet"
    rate.finished(sequences(1), ROWS, now=102.0)
    assert rate.work_per_s == pytest.approx(4 * 10 / 2)


def test_the_rate_follows_an_engine_that_becomes_slower() -> None:
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=0.0)
    rate.finished(sequences(4), ROWS, now=1.0)
    for now in range(5, 45, 4):
        rate.finished(sequences(4), ROWS, now)
    assert rate.work_per_s == pytest.approx(10.0, rel=0.01)


def test_the_rows_of_wide_searches_count() -> None:
    rate = Rate()
    rate.finished(sequences(1), ROWS, now=0.0)
    rate.finished(sequences(1, n_rows=4), ROWS, now=2.0)
    assert rate.work_per_s == pytest.approx(4 * 10 / 2)


def test_what_is_finished_while_nobody_waits_is_not_measured() -> None:
    rate = Rate()
    rate.finished(sequences(4), ROWS, now=0.0)
    rate.pause()
    rate.finished(sequences(4), ROWS, now=100.0)
    assert rate.work_per_s is None
    rate.finished(sequences(4), ROWS, now=101.0)
    assert rate.work_per_s == pytest.approx(40.0)
