"""Memory that takes no more room than is written to, and how glibc treats free memory; with other C libraries `trim`
and `keep_large_blocks_apart` do nothing."""

import ctypes
import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

GLIBC = ctypes.CDLL(None) if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim") else None

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD in <malloc.h>."""
LARGE_BYTES = 1 << 20


def zeros(size: int) -> NDArray[np.float32]:
    """Return zeros whose pages take memory when they are written to. Of numpy's a part may be on the heap, where all of
    it is written at once. Processes that are forked share no changes."""
    memory = mmap.mmap(-1, 4 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a system without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32)


def trim() -> None:
    """Return free memory to the system, which glibc does not do by itself."""
    if GLIBC is not None:
        GLIBC.malloc_trim(0)


def keep_large_blocks_apart() -> None:
    """Map each large block by itself, so that it is returned to the system when it is freed. By default, after the
    first such block was freed, glibc places the next ones among others: then models that were loaded again and again
    took 60 MB each instead of 25."""
    if GLIBC is not None:
        GLIBC.mallopt(MMAP_THRESHOLD, LARGE_BYTES)
