"""Sums of what engines did, for the metrics: a worker sends a server sums and no single events."""

from bisect import bisect_left
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from service.base.contract import Event, Phase, QueueWait

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds of the buckets of histograms."""
PHASES: tuple[Phase, ...] = ("probe", "encode", "decode")


class Observations:
    """The values that a histogram counts. `counts` has the number of values in each bucket, the last one beyond all
    bounds; `total` is their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


@dataclass
class EngineCounts:
    """Sums of the events of one engine. An encoder's pass has a row for each source."""

    queue_seconds: Observations = field(default_factory=lambda: Observations(SECONDS))
    inference_seconds: dict[Phase, Observations] = field(
        default_factory=lambda: {phase: Observations(SECONDS) for phase in PHASES}
    )
    rows: Observations = field(default_factory=lambda: Observations(ROWS))
    decode_steps: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    padding_tokens: int = 0

    def add(self, event: Event) -> None:
        if isinstance(event, QueueWait):
            self.queue_seconds.add(event.seconds)
            return
        self.inference_seconds[event.phase].add(event.seconds)
        if event.phase == "encode":
            tokens = sum(event.source_tokens)
            self.rows.add(len(event.source_tokens))
            self.source_tokens += tokens
            self.padding_tokens += max(event.source_tokens) * len(event.source_tokens) - tokens
        elif event.phase == "decode":
            self.rows.add(event.rows)
            self.decode_steps += 1
            self.target_tokens += event.sequences


def add_up(events: deque[tuple[str, Event]]) -> dict[str, EngineCounts]:
    """Take all events, and return their sums by the names of their engines. Other threads may add and take events
    meanwhile."""
    counts: dict[str, EngineCounts] = {}
    with suppress(IndexError):  # no more events
        while True:
            engine, event = events.popleft()
            if engine not in counts:
                counts[engine] = EngineCounts()
            counts[engine].add(event)
    return counts
