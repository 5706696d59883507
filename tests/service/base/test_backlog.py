"""The prediction of how long a request would wait, and the refusal that follows from it."""

import pytest

from service.base.backlog import MARGIN, NO_BACKLOG, Backlog
from service.base.errors import QueueFull

TWO_SECONDS = Backlog(n_waiting=8, work=200.0, work_per_s=100.0)


def test_a_wait_is_the_work_before_over_the_measured_rate() -> None:
    assert TWO_SECONDS.wait_s() == 2.0
    assert TWO_SECONDS.wait_s(work_of_request=50) == 2.5
    assert Backlog(8, 200.0, 400.0).wait_s() == 0.5


@pytest.mark.parametrize("backlog", [NO_BACKLOG, Backlog(0, 200.0, 100.0), Backlog(8, 200.0, None)])
def test_while_no_request_waits_or_no_rate_is_known_none_is_refused(backlog: Backlog) -> None:
    backlog.refuse_late(left_s=0.001, work_of_request=1e6)
    assert backlog.retry_after_s == 1


def test_a_late_request_is_refused_and_told_when_the_work_is_done() -> None:
    with pytest.raises(QueueFull, match=r"about 2\.0 s, and its deadline is in 2\.5 s") as refusal:
        TWO_SECONDS.refuse_late(left_s=2.5)
    assert refusal.value.headers == {"Retry-After": "2"}
    TWO_SECONDS.refuse_late(left_s=2 * MARGIN)


def test_a_queue_that_is_full_tells_when_it_is_empty() -> None:
    with pytest.raises(QueueFull, match=r"8 sequences .* 8$") as refusal:
        TWO_SECONDS.refuse_beyond(8)
    assert refusal.value.retry_after_s == 2
    TWO_SECONDS.refuse_beyond(9)


def test_a_backlog_grows_and_shrinks_with_the_work() -> None:
    assert TWO_SECONDS.with_more(-50.0) == Backlog(6, 150.0, 100.0)
    assert TWO_SECONDS.with_more(-500.0).wait_s() == 0
    assert TWO_SECONDS.with_more(50.0) == Backlog(10, 250.0, 100.0)
    assert NO_BACKLOG.with_more(50.0) == NO_BACKLOG
