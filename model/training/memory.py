"""What glibc does with memory that a training step has freed; elsewhere nothing is done."""

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""The parameters' numbers in <malloc.h>."""

TOP_PAD_BYTES = 1 << 27


def keep_freed_memory() -> None:
    """Let the next step have it.

    By default every block of megabytes is given back to the system and taken anew, page by page, at every step. On a
    virtual machine that took two thirds of the time of a step.
    """
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt"):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, 2**31 - 1)
        mallopt(TOP_PAD, TOP_PAD_BYTES)
