"""The state shared by all steps that serve one request."""

import math
import time
from dataclasses import dataclass, field

from service.schemas.timing import Timing
from service.workers.pool import Admission


@dataclass
class Context:
    """The timing and the deadline of one request.

    Attributes:
        deadline: on the clock of time.monotonic, as the deadlines of engines are.
        admission: counts the request once for all engines; None where one engine does all the work.
        is_document: whether the texts are parts of a document: then a passage may have any number of tags.
    """

    timing: Timing = field(default_factory=Timing)
    deadline: float = math.inf
    admission: Admission | None = None
    is_document: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()
