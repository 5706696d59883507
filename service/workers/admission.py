"""A request on its way through engines, in however many parts: accepted once, and counted once if it gets no answer."""

import asyncio
from types import TracebackType
from typing import Self

from service.base.errors import Broken, DeadlinePassed, QueueFull, Unavailable
from service.base.metrics import CANCELLED, TaskMetrics


class Admission:
    """Of one request: `with Admission(metrics) as admission` is around all that engines do for it.

    Attributes:
        accepted: whether an engine was given a part of it. It is answered then: no further part is refused because a
            pool drains or a queue is full.
    """

    def __init__(self, metrics: TaskMetrics) -> None:
        self.accepted = False
        self._metrics = metrics

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, QueueFull) or (isinstance(error, Unavailable) and not self.accepted):
            self._metrics.rejected(error.code)  # that a queue is full, a loop tells only later
        elif isinstance(error, Unavailable):
            self._metrics.cancelled(error.code if error.code in CANCELLED else Broken.code)
        elif isinstance(error, DeadlinePassed) and self.accepted:
            self._metrics.cancelled("deadline")
        elif isinstance(error, asyncio.CancelledError) and self.accepted:
            self._metrics.cancelled("client_gone")
