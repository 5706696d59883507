"""Regular structures of growing size: twice the input may take about twice the time."""

import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tests.fuzz.findings import MAX_BYTES, MAX_SECONDS, Finding, finding_of
from tests.fuzz.target import Target

SIZES = tuple(2**i for i in range(14, 19))
"""Sizes of inputs in bytes, up to a quarter of a megabyte."""
LARGE = 2**20
"""The size of an input that may take `MAX_SECONDS`. It is only read if it might take longer."""
MIN_SECONDS = 0.5
"""Shorter times say nothing about growth."""
MAX_RATIO = 3.0
"""Twice the input takes twice the time, with room for noise and for memory that is no longer in a cache."""
MAX_LAST_SECONDS = 10.0
"""Limit of a step for 1 MB of nothing but one structure. It is not grown further after that."""


def measure_growth(target: Target, seconds: float) -> list[str]:
    """Return a sentence on each structure that takes too much time or memory, or ends in an error without a name.

    Args:
        seconds: the time after which no further structure is measured; they come in random order.
    """
    ends_at = time.monotonic() + seconds
    found: list[str] = []
    for name, grow in random.sample([*target.grown.items()], len(target.grown)):
        if time.monotonic() >= ends_at:
            break
        said = _judged(target, name, grow) and _judged(target, name, grow)  # other processes make noise
        found += [said] * bool(said)
    return found


def _judged(target: Target, name: str, grow: Callable[[int], bytes]) -> str:
    seconds: dict[str, list[float]] = {}
    before = _peak()
    for size in (*SIZES, LARGE):
        if size == LARGE and not _may_take_long(seconds):
            break
        data = grow(size)
        times, finding = _timed(target, data)
        if finding is not None:
            return f"{name}, {len(data)} bytes: {finding.place}"
        for step, one in times.items():
            seconds.setdefault(step, []).append(one)
        if sum(times.values()) > MAX_LAST_SECONDS:
            break
    for step, times_of_step in seconds.items():
        last, shown = times_of_step[-1], ", ".join(f"{one:.3g}" for one in times_of_step)
        if last > MAX_LAST_SECONDS:
            return f"{name}, {len(data)} bytes, {step}: {shown} s"
        if len(times_of_step) == len(SIZES) and last > max(MIN_SECONDS, MAX_RATIO * times_of_step[-2]):
            return f"{name} grows faster than its input, {step}: {shown} s"
    if _peak() - before > MAX_BYTES:
        return f"{name}, {len(data)} bytes: {(_peak() - before) / 1e6:.0f} MB"
    return ""


def _may_take_long(seconds: Mapping[str, Sequence[float]]) -> bool:
    """Return whether a step of a large input may take too long, by what the last two sizes took."""
    return any(
        before < last and last * (last / before) ** 2 > MAX_SECONDS / 2
        for *_, before, last in seconds.values()
        if before
    )


def _timed(target: Target, data: bytes) -> tuple[dict[str, float], Finding | None]:
    """Return the processor time of each step of an input, and what is wrong with the input."""
    times: dict[str, float] = {}

    def read(data: bytes) -> Iterator[str]:
        start = time.process_time()
        for step in target.read(data):
            if not step.startswith("stand-in"):
                times[step] = time.process_time() - start
            yield step
            start = time.process_time()

    start = time.process_time()
    finding = finding_of(replace(target, read=read), data, max_seconds=20 * MAX_SECONDS)
    return times or {"refused": time.process_time() - start}, finding


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
