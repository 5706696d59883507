"""Events that are added up before they reach the metrics count as single ones would."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from service.base.contract import Event, ForwardPass, QueueWait
from service.base.counts import ROWS, SECONDS, add_up
from service.base.metrics import MAX_UNCOUNTED, Metrics

TRANSLATION = {"task": "translation"}


@given(st.lists(st.sampled_from(SECONDS) | st.floats(0, 400), max_size=20))
def test_a_value_counts_in_the_same_bucket_as_one_that_is_observed_alone(values: list[float]) -> None:
    expected, metrics = CollectorRegistry(), Metrics()
    metrics.of_task("translation")
    one_by_one = Histogram("attend_queue_seconds", "", ["task"], registry=expected, buckets=SECONDS).labels(
        "translation"
    )
    for value in values:
        one_by_one.observe(value)
        metrics.count("m/greedy", QueueWait(value))
    for le in (*map(float, SECONDS), "+Inf"):
        name, labels = "attend_queue_seconds_bucket", TRANSLATION | {"le": str(le)}
        assert metrics.registry.get_sample_value(name, labels) == expected.get_sample_value(name, labels)


def test_sums_of_a_worker_count_as_single_events_do() -> None:
    events: list[Event] = [
        QueueWait(0.3),
        ForwardPass("probe", 0.2),
        ForwardPass("encode", 0.01, source_tokens=(3, 7, 5)),
        *[ForwardPass("decode", 0.001 * rows, sequences=rows // 2, rows=rows) for rows in (*ROWS, 1000)],
    ]
    alone, together = Metrics(), Metrics()
    for event in events:
        alone.count("m/beam", event)
        alone.render()
    for engine, counts in add_up(deque(("m/beam", event) for event in events)).items():
        together.add(engine, counts)
    assert together.render() == alone.render()
    assert b'attend_batch_rows_bucket{le="+Inf",task="translation"} 11.0' in together.render()


def test_events_that_nobody_reads_do_not_pile_up() -> None:
    metrics = Metrics()
    for _ in range(MAX_UNCOUNTED + 3):
        metrics.count("m/greedy", ForwardPass("decode", 0.001, sequences=2, rows=2))
    assert len(metrics._uncounted) == 3
    assert metrics.registry.get_sample_value("attend_decode_steps_total") == MAX_UNCOUNTED + 3
