"""Measurements of a proof, and which of them exceed their tolerance."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.schema import Precision

Array = NDArray[Any]

TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "fp16": 1e-2, "int8": 1e-1}
"""Largest |ONNX Runtime - PyTorch| / |PyTorch| of models whose weights amplify no rounding, in Euclidean norms over
whole tensors. A proof is about float32; what the others cost is measured as nearness."""
HALF_TOLERANCE = 2e-3
"""The same for the float form of graphs that were traced in float16, in which constants are rounded."""
SPREAD_FACTOR = 10
"""Factor by which a difference may exceed that between PyTorch and PyTorch with other last bits. It was 0.1 to 1.0
times as much for 6 + 6 layers of random weights, for those that amplify rounding 50 times, and with channels 1000 times
as large as others."""


class Examination:
    """All measurements, and those that failed.

    Args:
        tolerance: the relative error of models whose weights amplify no rounding.
    """

    def __init__(self, tolerance: float = TOLERANCES["fp32"]) -> None:
        self.tolerance = tolerance
        self.measured: dict[str, tuple[str, bool]] = {}
        self.errors: dict[str, float] = {}

    @property
    def lines(self) -> list[str]:
        """All measurements."""
        return [line for line, _ in self.measured.values()]

    @property
    def failed(self) -> list[str]:
        """Measurements that exceed their tolerance."""
        return [line for line, passed in self.measured.values() if not passed]

    def check_close(self, what: str, actual: Iterable[Array], expected: Iterable[Array]) -> None:
        """Check that all tensors together differ by at most what float32 allows."""
        self.errors[what] = relative_error(actual, expected)
        self._record_error(what, self.tolerance)

    def allow_for(self, spread: Mapping[str, float]) -> None:
        """Give each measurement of `check_close` the tolerance that follows from how far the last bits spread."""
        for what in self.errors:
            of_rounding = spread[what.partition(":")[0]]
            self._record_error(what, max(self.tolerance, SPREAD_FACTOR * of_rounding))

    def _record_error(self, what: str, tolerance: float) -> None:
        error = self.errors[what]
        # False if the error is nan
        self.record(what, f"relative error {error:.1e} (tolerance {tolerance:.0e})", error <= tolerance)

    def check_equal(self, what: str, actual: Sequence[object], expected: Sequence[object]) -> None:
        """Check that all pairs are equal."""
        same = sum(a == e for a, e in zip(actual, expected, strict=True))
        self.record(what, f"{same} of {len(expected)} equal", same == len(expected))

    def check_within(self, what: str, measured: float, tolerance: float) -> None:
        """Check that a number is at most a tolerance."""
        self.record(what, f"{measured:.1e} (tolerance {tolerance:.0e})", measured <= tolerance)

    def check_zero(self, what: str, arrays: Iterable[Array]) -> None:
        """Check that every number is exactly zero."""
        wrong = sum(int(np.count_nonzero(array)) for array in arrays)
        self.record(what, f"{wrong} not zero", wrong == 0)

    def record(self, what: str, finding: str, passed: bool) -> None:
        """Add a line to the report, or replace the one about the same."""
        self.measured[what] = f"{what}: {finding}", passed


def relative_error(actual: Iterable[Array], expected: Iterable[Array]) -> float:
    """Return |actual - expected| / |expected| over all tensors together."""
    difference = size = 0.0
    for a, e in zip(actual, expected, strict=True):
        difference += square(np.subtract(a, e, dtype=np.float32))
        size += square(e)
    return math.sqrt(difference / size) if size else math.sqrt(difference)


def square(x: Array) -> float:
    """Return the square of an array's Euclidean norm; converting a large array to float64 would take much memory."""
    return float(np.square(x.ravel(), dtype=np.float32).sum(dtype=np.float64))
