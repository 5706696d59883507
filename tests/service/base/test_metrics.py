import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service import __version__
from service.base.contract import ForwardPass
from service.base.metrics import Metrics, ModelState, forget_gauges


def test_gauges_are_summed_over_the_models_of_a_task() -> None:
    metrics = Metrics()
    metrics.watch(
        lambda: [
            ModelState("en-fr", "translation", "int8", "cpu", waiting=1, running=2, rows=64),
            ModelState("en-de", "translation", "fp32", "cpu", waiting=10, running=20, rows=64),
        ],
        lambda: True,
    )
    value = metrics.registry.get_sample_value
    assert value("attend_waiting", {"task": "translation"}) == 11
    assert value("attend_running", {"task": "translation"}) == 22
    assert value("attend_rows", {"task": "translation"}) == 128
    info = {"model": "en-de", "task": "translation", "precision": "fp32", "provider": "cpu"}
    assert value("attend_model_info", info) == 1


def test_padding_is_counted_beside_the_tokens() -> None:
    metrics = Metrics()
    metrics.count("m/greedy", ForwardPass("encode", 0.1, source_tokens=(3, 7, 5)))
    value = metrics.registry.get_sample_value
    assert value("attend_tokens_total", {"task": "translation", "side": "source"}) == 15
    assert value("attend_padding_tokens_total", {"task": "translation"}) == 6


def test_a_step_is_counted_by_its_rows_and_its_sequences() -> None:
    metrics = Metrics()
    for sequences, rows in ((3, 2), (0, 8), (2, 2)):
        metrics.count("m/beam", ForwardPass("decode", 0.1, sequences=sequences, rows=rows))
    value = metrics.registry.get_sample_value
    assert value("attend_decode_steps_total") == 3
    assert value("attend_tokens_total", {"task": "translation", "side": "target"}) == 5
    assert value("attend_batch_rows_sum", {"task": "translation"}) == 12


def test_two_apps_do_not_share_their_numbers() -> None:
    one, other = Metrics(), Metrics()
    one.decode_steps.inc()
    assert b"attend_decode_steps_total 1.0" in one.render()
    assert b"attend_decode_steps_total 0.0" in other.render()


def test_refusals_and_cancellations_count_from_zero() -> None:
    metrics = Metrics()
    translation = metrics.of_task("translation")
    value = metrics.registry.get_sample_value
    for reason in ("queue_full", "starting", "draining", "broken"):
        assert value("attend_rejected_total", {"task": "translation", "reason": reason}) == 0
        translation.rejected(reason)
        assert value("attend_rejected_total", {"task": "translation", "reason": reason}) == 1
    for reason in ("client_gone", "deadline", "draining", "broken"):
        assert value("attend_cancelled_total", {"task": "translation", "reason": reason}) == 0
        translation.cancelled(reason)
        assert value("attend_cancelled_total", {"task": "translation", "reason": reason}) == 1


def test_requests_of_a_known_route_count_from_zero() -> None:
    metrics = Metrics()
    metrics.expect("native", "/translate")
    for status in ("200", "500"):
        labels = {"dialect": "native", "route": "/translate", "status": status}
        assert metrics.registry.get_sample_value("attend_requests_total", labels) == 0


def test_a_request_that_takes_as_long_as_it_may_has_a_bucket() -> None:
    metrics = Metrics()
    metrics.answered("native", "/translate", 200, 299.0)
    value = metrics.registry.get_sample_value
    labels = {"dialect": "native", "route": "/translate"}
    buckets = [value("attend_request_seconds_bucket", labels | {"le": le}) for le in ("120.0", "300.0")]
    assert buckets == [0, 1]


def test_the_version_is_a_metric() -> None:
    assert Metrics().registry.get_sample_value("attend_build_info", {"version": __version__}) == 1


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="has no several servers")
def test_files_of_counts_have_their_room_from_the_start(tmp_path: Path) -> None:
    """A process that counts in a hole of a file dies when the disk is full."""
    program = """
import os
from pathlib import Path
from service.server.app import create_app
from service.access.keys import Keys
from service.http.problems import WHEN
from service.base.metrics import SHARED_BYTES, Metrics, forget_gauges
from service.front.serving import Serving
from service.base.settings import Settings

folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
settings, metrics = Settings(data=folder), Metrics(place=0)
def sizes(of=lambda file: file.st_size):
    return {file.name.rpartition("_")[0]: of(file.stat()) for file in folder.glob("*.db")}
before = sizes()
assert set(before.values()) == {SHARED_BYTES}, before
create_app(settings, Serving(15), metrics, Keys(settings), None)
for task in ("translation", "classification", "embedding", "attention", "detection"):
    metrics.of_task(task)
for dialect, route, _ in list(metrics.requests._metrics):
    for status in (200, 202, 204, *WHEN, 405, 456, 499):
        metrics.answered(dialect, route, status, 1.0)
for i in range(101):
    metrics.asked(f"{i:a>64}", 1)
assert sizes() == before
assert all(held >= SHARED_BYTES for held in sizes(lambda file: 512 * file.st_blocks).values())
whole = metrics.render()
forget_gauges(folder, 0)
rest, gauges = metrics.render().splitlines(), (b"attend_connections ", b"attend_live_sockets ", b"attend_cache_bytes ")
assert not [line for line in rest if line.startswith(gauges)]
assert [line for line in whole.splitlines() if not any(gauge in line for gauge in gauges)] == [
    line for line in rest if not any(gauge in line for gauge in gauges)
]
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=beside_others(tmp_path))


def beside_others(folder: Path) -> dict[str, str]:
    return os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="has no several servers")
def test_a_server_goes_on_counting_where_the_one_before_it_was_killed(tmp_path: Path) -> None:
    """Each server that died left files behind, which every scrape read."""
    program = """
import os, signal
from service.base.metrics import Metrics

metrics = Metrics(place=1)
metrics.answered("native", "/translate", 200, 1.0)
metrics.connections.set(5)
assert b'route="/translate",status="200"} %d.0' % int(os.environ["EXPECTED"]) in metrics.render()
os.kill(os.getpid(), signal.SIGKILL)
"""
    files = []
    for expected in ("1", "2", "3"):
        command = [sys.executable, "-c", program]
        ended = subprocess.run(command, check=False, env=beside_others(tmp_path) | {"EXPECTED": expected})
        assert ended.returncode == -signal.SIGKILL
        files.append({file.name for file in tmp_path.iterdir()})
        forget_gauges(tmp_path, 1)
    assert files[0] == files[1] == files[2]


def test_only_a_hundred_names_of_keys_are_labels() -> None:
    metrics = Metrics()
    for _ in range(2):
        for i in range(102):
            metrics.asked(f"key{i}", n_characters=3)
    value = metrics.registry.get_sample_value
    assert [value("attend_key_requests_total", {"key": key}) for key in ("key0", "key99", "key100", "other")] == [
        2, 2, None, 4,
    ]  # fmt: skip
    assert value("attend_key_characters_total", {"key": "other"}) == 12
