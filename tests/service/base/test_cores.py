from pathlib import Path

import pytest

from service.base import cores as module
from service.base.cores import _cpu_quota, usable_cores

INFINITE = float("inf")

V1 = "31 23 0:29 {top} /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,{controllers}"
V2 = "31 23 0:29 {top} /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup rw,nsdelegate"
OTHERS = """22 1 0:20 / / rw - overlay overlay rw
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
37 31 0:31 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
"""


@pytest.mark.parametrize(("quota", "cores"), [(INFINITE, 2), (1.5, 1), (0.5, 1), (64.0, 2)])
def test_cores_are_physical_and_within_the_cpu_quota(monkeypatch: pytest.MonkeyPatch, quota: float, cores: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(module, "_core_of", lambda cpu: ("0", str(cpu // 2)))  # two threads per core
    monkeypatch.setattr(module, "_cpu_quota", lambda: quota)
    assert usable_cores() == cores


def machine(root: Path, cgroup: str, mount: str, quotas: dict[str, str]) -> Path:
    """A root folder in which this process is in a cgroup, and cgroups have quotas, such as "50000 100000"."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"8:pids:/elsewhere\n{cgroup}\n")
    (root / "proc/self/mountinfo").write_text(f"{OTHERS}{mount}\n")
    for group, quota in quotas.items():
        folder = root / "sys/fs/cgroup" / group
        folder.mkdir(parents=True, exist_ok=True)
        if "cgroup2" in mount:
            (folder / "cpu.max").write_text(f"{quota}\n")
        else:
            for name, value in zip(("quota", "period"), quota.split(), strict=True):
                (folder / f"cpu.cfs_{name}_us").write_text(f"{value}\n")
    return root


@pytest.mark.parametrize(
    ("quotas", "quota"),
    [
        ({"": "max 100000"}, INFINITE),
        ({"system.slice/attend.service": "150000 100000"}, 1.5),
        ({"system.slice": "100000 50000", "system.slice/attend.service": "300000 100000"}, 2),
        ({"system.slice": "300000 50000", "system.slice/attend.service": "max 100000"}, 6),
        ({"system.slice/other.service": "10000 100000"}, INFINITE),
    ],
)
def test_version_2_counts_the_least_quota_of_the_own_group_and_those_above(
    tmp_path: Path, quotas: dict[str, str], quota: float
) -> None:
    machine(tmp_path, "0::/system.slice/attend.service", V2.format(top="/"), quotas)
    assert _cpu_quota(tmp_path) == quota


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize(
    ("quotas", "quota"),
    [
        ({"cpu": "-1 100000", "cpu/a": "-1 100000", "cpu/a/b": "-1 100000"}, INFINITE),
        ({"cpu": "-1 100000", "cpu/a": "100000 100000", "cpu/a/b": "400000 100000"}, 1),
        ({"cpu": "-1 100000", "cpu/a": "-1 100000", "cpu/a/b": "50000 25000"}, 2),
    ],
)
def test_version_1_counts_the_least_quota_of_the_own_group_and_those_above(
    tmp_path: Path, controllers: str, quotas: dict[str, str], quota: float
) -> None:
    machine(tmp_path, f"3:{controllers}:/a/b\n0::/", V1.format(top="/", controllers=controllers), quotas)
    assert _cpu_quota(tmp_path) == quota


@pytest.mark.parametrize("top", ["/", "/docker/1f2e", "/..", "/docker/other"])
@pytest.mark.parametrize(
    ("cgroup", "mount", "group", "quota"),
    [
        ("0::/docker/1f2e", V2, "", "150000 100000"),
        ("0::/../../docker/1f2e", V2, "", "150000 100000"),
        ("5:cpu:/docker/1f2e", V1, "cpu", "150000 100000"),
    ],
)
def test_a_container_that_is_told_a_path_outside_has_the_quota_of_its_mount(
    tmp_path: Path, top: str, cgroup: str, mount: str, group: str, quota: str
) -> None:
    machine(tmp_path, cgroup, mount.format(top=top, controllers="cpu"), {group: quota})
    assert _cpu_quota(tmp_path) == 1.5


def test_a_machine_without_cgroups_has_no_quota(tmp_path: Path) -> None:
    assert _cpu_quota(tmp_path) == INFINITE
