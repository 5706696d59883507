"""How glibc treats free memory; with other C libraries these functions do nothing."""

import ctypes
import sys

GLIBC = ctypes.CDLL(None) if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim") else None

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD in <malloc.h>."""
LARGE_BYTES = 1 << 20


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
