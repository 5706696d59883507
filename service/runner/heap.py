"""What glibc does with memory that is free; elsewhere nothing is done."""

import ctypes
import sys

MMAP_THRESHOLD = -3
"""The parameter's number in <malloc.h>."""

LARGE_BYTES = 1 << 20


def trim() -> None:
    """Return what is free to the system, which glibc does not do by itself."""
    if _is_glibc():
        ctypes.CDLL(None).malloc_trim(0)


def keep_large_blocks_apart() -> None:
    """Map each large block by itself, so that it is returned when it is freed.

    Once such a block was freed, glibc puts the next ones between others. Models that were loaded over and over took
    60 MB each, and not 25.
    """
    if _is_glibc():
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BYTES)


def _is_glibc() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")
