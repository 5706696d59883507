"""Whether the time of some work grows in proportion to its size."""

from collections.abc import Callable
from time import process_time

TRIES = 3
"""A machine whose caches others use gets slower by a factor now and then, but not each time."""


def check_linear(work: Callable[[int], object], size: int) -> None:
    """Do work of this size and of four times the size, until both take time in proportion: in processor time, which
    other processes do not change much."""
    seconds: list[float] = []
    for _ in range(TRIES):
        seconds = [_seconds(work, n) for n in (size, 4 * size)]
        if seconds[1] < 10 * seconds[0] + 0.03:
            return
    raise AssertionError(f"{seconds} s for {size:,} and four times that")


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = process_time()
    work(size)
    return process_time() - began
