import os
import subprocess
import sys

import pytest

from service.base import memory
from service.base.memory import Footprint, family, proportional_bytes
from service.base.metrics import Metrics
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the proportional set size")


@pytest.mark.process
def test_children_belong_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert [*family(os.getpid())].count(child.pid) == 1
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())


GROWING = "import os; print(flush=1); input(); kept = bytearray(os.urandom(1)) * 64_000_000; print(flush=1); input()"


@pytest.mark.process
def test_memory_is_measured_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", GROWING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        footprint = Footprint(child.pid)
        before = footprint.bytes()
        assert before is not None
        assert before >= proportional_bytes(child.pid) / 2
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        assert footprint.bytes() == before
        monkeypatch.setattr(memory, "PAUSE_S", 0.2)
        footprint = Footprint(child.pid)
        assert (footprint.bytes() or 0) > before + 60_000_000
        child.kill()
        wait_until(lambda: footprint.bytes() is None)


@pytest.mark.process
def test_a_process_that_has_ended_has_no_memory() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert Footprint(ended.pid).bytes() is None


def test_memory_is_a_metric() -> None:
    metrics = Metrics()
    metrics.watch(list, bool)
    found = metrics.registry.get_sample_value("attend_memory_bytes")
    assert found is not None
    assert found > 1_000_000
