"""How long a request would wait: the work before it, over the rate at which its engine works (Little's law)."""

import math
from typing import NamedTuple

from service.base.errors import QueueFull

MARGIN = 1.5
"""How many times as long as predicted a request may take, because others pass it and the rate changes."""
EARLY_SHARE = 0.85
"""At which share of these limits a server refuses, before it reads the texts. Other requests are on their way to the
worker, which shall not refuse there what the server has let pass."""


class Backlog(NamedTuple):
    """What an engine does before the last sequence of a request.

    Attributes:
        n_waiting: how many waiting sequences are before it.
        work: their work and that of the running sequences, as `Sequence.work` has it.
        work_per_s: the rate of the engine while sequences wait for it; None before it was measured.
    """

    n_waiting: int = 0
    work: float = 0.0
    work_per_s: float | None = None

    def with_more(self, work: float) -> "Backlog":
        """Return the backlog after `work` more has come. If `work` is negative, it has been done."""
        if not self.work:
            return self
        later = max(0.0, self.work + work)
        return Backlog(int(self.n_waiting * later / self.work), later, self.work_per_s)

    def wait_s(self, work_of_request: float = 0.0) -> float:
        """Predict the seconds until this work and that of the request are done; 0 if nobody waits, or the rate is
        unknown."""
        return (self.work + work_of_request) / self.work_per_s if self.n_waiting and self.work_per_s else 0.0

    def refuse_late(self, left_s: float, work_of_request: float = 0.0, share: float = 1.0) -> None:
        """Raise QueueFull if a request would be late with this share of its time."""
        wait_s = self.wait_s(work_of_request)
        if 0 < share * left_s < wait_s * MARGIN:
            raise QueueFull(
                f"The queue is full: this request would take about {wait_s:.1f} s, and its deadline is in "
                f"{left_s:.1f} s",
                self.retry_after_s,
            )

    def refuse_beyond(self, max_waiting: float, share: float = 1.0) -> None:
        """Raise QueueFull if more than this share of `max_waiting` sequences are before the request."""
        if self.n_waiting >= share * max_waiting:
            raise QueueFull(
                f"The queue is full: {self.n_waiting} sequences would be before this one; the limit is {max_waiting}",
                self.retry_after_s,
            )

    @property
    def retry_after_s(self) -> int:
        """Whole seconds until what waits now is done; at least 1."""
        return max(1, math.ceil(self.wait_s()))


NO_BACKLOG = Backlog()
