"""Memory of large tensors is returned to the system."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

SCRIPT = """
import os
import sys
import numpy as np
from pathlib import Path
from model.heap import LARGE_BYTES, keep_large_blocks_apart

def taken():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

if sys.argv[1] == "apart":
    keep_large_blocks_apart()
del (first := [np.ones(LARGE_BYTES, np.uint8)])[0]  # from now on glibc places such blocks among others
before = taken()
large, small = [], []
for _ in range(20):
    large.append(np.ones(LARGE_BYTES, np.uint8))
    small.append(bytearray(2000))
large.clear()
print((taken() - before) / (20 * LARGE_BYTES))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(("how", "least", "most"), [("apart", -0.1, 0.1), ("as glibc does", 0.5, 1.1)])
def test_large_blocks_are_returned_although_small_ones_stay(how: str, least: float, most: float) -> None:
    output = subprocess.run([sys.executable, "-c", SCRIPT, how], check=True, capture_output=True, text=True, timeout=60)
    assert least < float(output.stdout) < most
