"""How many cores there are for this process."""

import os
import sys
from pathlib import Path


def usable_cores() -> int:
    """Physical cores that this process may run on, within its cgroup's CPU quota."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    cores = {_core_of(cpu) for cpu in os.sched_getaffinity(0)}
    return max(1, int(min(len(cores), _cpu_quota())))


def _core_of(cpu: int) -> tuple[str, str]:
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        package, core = ((topology / name).read_text() for name in ("physical_package_id", "core_id"))
    except OSError:
        return "unknown", str(cpu)
    return package, core


def _cpu_quota() -> float:
    """CPUs that the cgroup (version 2) may use at once; infinite where there is no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except OSError:
        return float("inf")
    return float("inf") if quota == "max" else int(quota) / int(period)
