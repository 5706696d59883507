"""Measures how fast an engine works when it has all the work that it can take."""

from collections.abc import Collection
from typing import Any

from service.engine.scheduler import Sequence

MAX_AGE_S = 60.0
"""After this many seconds without a measurement the rate is unknown. A rate that was measured too low, for example
while the machine stood still, refuses almost everything and would never be corrected by a new measurement."""


class Rate:
    """The work that an engine finishes in a second while sequences wait for it, other engines of its loop included.
    Sequences that were admitted together end together. So a measurement lasts until as many are finished as ran when it
    began."""

    def __init__(self) -> None:
        self.work_per_s: float | None = None
        """The mean of the measurements, of which each counts half as much as the next; None without a recent one."""
        self._measured_at = 0.0
        self._begun_at: float | None = None
        self._n_awaited = self._work = 0

    def finished(self, sequences: Collection[Sequence[Any]], n_running: int, now: float) -> None:
        """Count sequences that were finished at the time `now`, in seconds. `n_running` sequences still run."""
        if self._begun_at is None:  # those that filled the rows were finished late
            self._begin(n_running, now)
            return
        self._n_awaited -= len(sequences)
        self._work += sum([sequence.work for sequence in sequences])
        if self._n_awaited <= 0 and now > self._begun_at:
            measured = self._work / (now - self._begun_at)
            self.work_per_s = measured if self.work_per_s is None else (self.work_per_s + measured) / 2
            self._measured_at = now
            self._begin(n_running, now)

    def pause(self, now: float) -> None:
        """Forget a measurement that has begun: while nobody waits, the engine could do more. Forget an old rate too."""
        self._begun_at = None
        if now - self._measured_at > MAX_AGE_S:
            self.work_per_s = None

    def _begin(self, n_running: int, now: float) -> None:
        self._begun_at, self._n_awaited, self._work = now, n_running, 0
