from service.contract import Passed
from service.metrics import Metrics, ModelState


def test_gauges_are_summed_over_the_models_of_a_task() -> None:
    metrics = Metrics()
    metrics.watch(
        lambda: [
            ModelState("en-fr", "translation", "int8", "cpu", waiting=1, running=2, slots=64),
            ModelState("en-de", "translation", "fp32", "cpu", waiting=10, running=20, slots=64),
        ]
    )
    value = metrics.registry.get_sample_value
    assert value("attend_waiting", {"task": "translation"}) == 11
    assert value("attend_running", {"task": "translation"}) == 22
    assert value("attend_slots", {"task": "translation"}) == 128
    info = {"model": "en-de", "task": "translation", "precision": "fp32", "provider": "cpu"}
    assert value("attend_model_info", info) == 1


def test_padding_is_counted_beside_the_tokens() -> None:
    metrics = Metrics()
    metrics.count("m/greedy", Passed("encode", 0.1, source_tokens=(3, 7, 5)))
    value = metrics.registry.get_sample_value
    assert value("attend_tokens_total", {"task": "translation", "side": "source"}) == 15
    assert value("attend_padding_tokens_total", {"task": "translation"}) == 6


def test_a_step_is_counted_by_its_rows_and_its_sequences() -> None:
    metrics = Metrics()
    for sequences, rows in ((3, 2), (0, 8), (2, 2)):
        metrics.count("m/beam", Passed("decode", 0.1, sequences=sequences, rows=rows))
    value = metrics.registry.get_sample_value
    assert value("attend_decode_steps_total") == 3
    assert value("attend_tokens_total", {"task": "translation", "side": "target"}) == 5
    assert value("attend_batch_rows_sum", {"task": "translation"}) == 12


def test_two_apps_do_not_share_their_numbers() -> None:
    one, other = Metrics(), Metrics()
    one.decode_steps.inc()
    assert b"attend_decode_steps_total 1.0" in one.render()
    assert b"attend_decode_steps_total 0.0" in other.render()
