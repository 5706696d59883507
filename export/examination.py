"""Measurements of a proof, and which of them exceed their tolerance."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.manifest import Precision

Array = NDArray[Any]

TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "fp16": 1e-2, "int8": 1e-1}
"""Largest |ONNX Runtime - PyTorch| / |PyTorch|, in Euclidean norms over whole tensors. The mean over the vocabulary is
subtracted from logits and log-probabilities before; no answer depends on it."""


class Examination:
    """All measurements, and those that failed."""

    def __init__(self, precision: Precision) -> None:
        self.exact = precision == "fp32"
        self.tolerance = TOLERANCES[precision]
        self.measured: list[str] = []
        self.failed: list[str] = []

    def check_close(self, what: str, actual: Sequence[Array], expected: Sequence[Array]) -> None:
        """Check that all tensors together differ by at most the precision's tolerance."""
        pairs = [(a.ravel(), e.ravel()) for a, e in zip(actual, expected, strict=True)]
        difference = sum(square(np.subtract(a, e, dtype=np.float32)) for a, e in pairs)
        error = math.sqrt(difference / sum(square(e) for _, e in pairs))
        line = f"{what}: relative error {error:.1e} (tolerance {self.tolerance:.0e})"
        self.record(line, error <= self.tolerance)  # False if the error is nan

    def check_equal(self, what: str, actual: Sequence[object], expected: Sequence[object]) -> None:
        """Check that all pairs are equal."""
        same = sum(a == e for a, e in zip(actual, expected, strict=True))
        self.record(f"{what}: {same} of {len(expected)} equal", same == len(expected))

    def check_agreement(self, what: str, actual: Sequence[object], expected: Sequence[object]) -> None:
        """Check that all pairs are equal in fp32; else only count, as two nearly equal candidates may change places."""
        same = sum(a == e for a, e in zip(actual, expected, strict=True))
        self.record(f"{what}: {same} of {len(expected)} agree", same == len(expected) or not self.exact)

    def check_within(self, what: str, measured: float, tolerance: float) -> None:
        """Check that a number is at most a tolerance that is the same at every precision."""
        self.record(f"{what} {measured:.1e} (tolerance {tolerance:.0e})", measured <= tolerance)

    def check_zero(self, what: str, arrays: Sequence[Array]) -> None:
        """Check that every number is exactly zero."""
        wrong = sum(int(np.count_nonzero(array)) for array in arrays)
        self.record(f"{what}: {wrong} not zero", wrong == 0)

    def record(self, line: str, passed: bool) -> None:
        """Add a line to the report."""
        self.measured.append(line)
        if not passed:
            self.failed.append(line)


def square(x: Array) -> np.float64:
    """Return the square of an array's Euclidean norm; converting a large array to float64 would take much memory."""
    return np.float64(np.square(x, dtype=np.float32).sum(dtype=np.float64))
