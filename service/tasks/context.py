"""What everything that is done for one request has in common, in however many models and parts."""

import time
from dataclasses import dataclass

from service.schemas.timing import Timing
from service.workers.pool import Admission


@dataclass(frozen=True)
class Context:
    """Of one request."""

    deadline: float
    """On the clock of time.monotonic, as those of engines are."""
    timing: Timing
    admission: Admission

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()
