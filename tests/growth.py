"""Whether the time of some work grows in proportion to its size."""

from collections.abc import Callable
from time import process_time


def check_linear(work: Callable[[int], object], size: int) -> None:
    """Do work of this size and of four times the size: in processor time, which other processes do not change much."""
    seconds = []
    for n in (size, 4 * size):
        began = process_time()
        work(n)
        seconds.append(process_time() - began)
    assert seconds[1] < 10 * seconds[0] + 0.03, f"{seconds} s for {size:,} and four times that"
