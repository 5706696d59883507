"""What a proof measures, and what of it is not good enough."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.manifest import Precision

Array = NDArray[Any]

TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "fp16": 1e-2, "int8": 1e-1}
"""Largest |ONNX Runtime - PyTorch| / |PyTorch|, in Euclidean norms over whole tensors. Logits and log-probabilities are
compared less their mean over the vocabulary, which no answer depends on."""


class Examination:
    """What was measured, and what of it failed."""

    def __init__(self, precision: Precision) -> None:
        self.exact = precision == "fp32"
        self.tolerance = TOLERANCES[precision]
        self.measured: list[str] = []
        self.failed: list[str] = []

    def close(self, what: str, actual: Sequence[Array], expected: Sequence[Array]) -> None:
        """Within the precision's tolerance, all tensors taken together."""
        pairs = [(a.ravel(), e.ravel()) for a, e in zip(actual, expected, strict=True)]
        difference = sum(square(np.subtract(a, e, dtype=np.float32)) for a, e in pairs)
        error = math.sqrt(difference / sum(square(e) for _, e in pairs))
        line = f"{what}: relative error {error:.1e} (tolerance {self.tolerance:.0e})"
        self.record(line, error <= self.tolerance)  # not so where the error is nan

    def equal(self, what: str, actual: Sequence[object], expected: Sequence[object]) -> None:
        """Equal one by one."""
        same = sum(a == e for a, e in zip(actual, expected, strict=True))
        self.record(f"{what}: {same} of {len(expected)} equal", same == len(expected))

    def agree(self, what: str, actual: Sequence[object], expected: Sequence[object]) -> None:
        """Equal in fp32; only counted in the others, where two nearly equal candidates may change places."""
        same = sum(a == e for a, e in zip(actual, expected, strict=True))
        self.record(f"{what}: {same} of {len(expected)} agree", same == len(expected) or not self.exact)

    def within(self, what: str, measured: float, tolerance: float) -> None:
        """No more than the tolerance, which is the same at every precision."""
        self.record(f"{what} {measured:.1e} (tolerance {tolerance:.0e})", measured <= tolerance)

    def zero(self, what: str, arrays: Sequence[Array]) -> None:
        """Exactly zero, everywhere."""
        wrong = sum(int(np.count_nonzero(array)) for array in arrays)
        self.record(f"{what}: {wrong} not zero", wrong == 0)

    def record(self, line: str, passed: bool) -> None:
        """A line of the report."""
        self.measured.append(line)
        if not passed:
            self.failed.append(line)


def square(x: Array) -> np.float64:
    """The square of an array's Euclidean norm; all numbers of a large one in float64 would take much memory."""
    return np.float64(np.square(x, dtype=np.float32).sum(dtype=np.float64))
