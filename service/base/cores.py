"""The number of cores that this process may use, and the number of workers for them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from service.base.settings import Settings

MAX_WORKERS = 4
"""Limit of the default number of workers: each process takes memory."""


def n_workers(settings: Settings, provider: str) -> int:
    """Return the number of processes that run models. On CUDA each device has one. On a CPU each core has one, but
    there are few, since the server needs a core too."""
    default = min(settings.threads or usable_cores(), MAX_WORKERS) if provider == "cpu" else 1
    return settings.workers or default


def usable_cores() -> int:
    """Return the number of physical cores that this process may run on, within the CPU quota of its cgroup."""
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


def _cpu_quota(root: Path = Path("/")) -> float:
    """Return the smallest CPU quota of this process's cgroups and those above; infinite without a quota."""
    return min((_quota(group) for group in _cgroups(root)), default=float("inf"))


def _quota(group: Path) -> float:
    try:
        if (group / "cpu.max").exists():  # version 2
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
    except OSError:
        return float("inf")
    return float("inf") if quota in ("max", "-1") else int(quota) / int(period)


def _cgroups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's cgroups for CPUs, and of all visible cgroups above them. A container may see
    the path that its cgroup has on the host, where it has no folder: then the mount point is the cgroup."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    path_of = {
        controller: path
        for _, controllers, path in (group.split(":", 2) for group in groups)
        for controller in controllers.split(",")  # version 2 has the name ""
    }
    for mount in mounts:
        place, _, kind = mount.partition(" - ")
        [filesystem, _, options, *_] = kind.split()
        controller = {"cgroup": "cpu", "cgroup2": ""}.get(filesystem)
        if controller is None or controller not in ("", *options.split(",")):
            continue
        [_, _, _, top, point, *_] = place.split()
        path = Path(path_of.get(controller, top))
        below = path.relative_to(top).parts if path.is_relative_to(top) else ()
        for depth in range(len(below) + 1):
            yield (root / point.lstrip("/")).joinpath(*below[:depth])


def reason_for_workers(settings: Settings, provider: str) -> str:
    """Return why there are as many workers that share models, in words."""
    if settings.workers:
        return "as ATTEND_WORKERS says"
    if provider != "cpu":
        return "one for each GPU"
    if (settings.threads or usable_cores()) > MAX_WORKERS:
        return f"{MAX_WORKERS} at most"
    return "one for each thread of ATTEND_THREADS" if settings.threads else "one for each core"
