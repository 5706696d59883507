import pytest

from service import cores as module
from service.cores import usable_cores


@pytest.mark.parametrize(("quota", "cores"), [(float("inf"), 2), (1.5, 1), (0.5, 1), (64.0, 2)])
def test_cores_are_physical_and_within_the_cpu_quota(monkeypatch: pytest.MonkeyPatch, quota: float, cores: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(module, "_core_of", lambda cpu: ("0", str(cpu // 2)))  # two threads per core
    monkeypatch.setattr(module, "_cpu_quota", lambda: quota)
    assert usable_cores() == cores
