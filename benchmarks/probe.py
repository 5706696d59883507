"""Times single forward passes: `python -m benchmarks.probe` with one JSON argument prints records."""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engines.attend import ComputationProbe

ROWS = (1, 2, 4, 8, 16, 32, 64)
CACHE_LENGTHS = (8, 16, 32, 64, 128, 256)
SOURCE_LENGTHS = (4, 8, 16, 32, 64, 120)
FIXED_ROWS, FIXED_LENGTH = 32, 16
"""Rows for curves over lengths, and lengths for curves over rows."""


def measure(artifacts: str, seconds_per_point: float) -> list[dict[str, Any]]:
    """Return the median milliseconds of each pass, with one thread."""
    probe = ComputationProbe(Path(artifacts), threads=1)

    def point(curve: str, x: int, run: Callable[[], object]) -> dict[str, Any]:
        return {"curve": curve, "engine": "attend", "x": x, "y": 1000 * _median_s(run, seconds_per_point)}

    return [
        *(point("step by rows", n, probe.stepping(n, FIXED_LENGTH, FIXED_LENGTH)) for n in ROWS),
        *(point("step by cache length", n, probe.stepping(FIXED_ROWS, n, FIXED_LENGTH)) for n in CACHE_LENGTHS),
        *(point("encoder by source length, 1 row", n, probe.encoding(1, n)) for n in SOURCE_LENGTHS),
        *(point("encoder by source length, 8 rows", n, probe.encoding(8, n)) for n in SOURCE_LENGTHS),
    ]


def _median_s(run: Callable[[], object], budget_s: float) -> float:
    for _ in range(3):
        run()
    seconds: list[float] = []
    ends_at = time.perf_counter() + budget_s
    while time.perf_counter() < ends_at:
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
