"""Memory of the service's processes. The proportional set size divides shared pages among the processes that share
them."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PAUSE_S = 30.0
"""Least time between two measurements: the system looks at every page, which takes 50 ms for each GB."""


class Footprint:
    """Memory of a process and its descendants, measured in a thread, and not at every call."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._bytes: int | None = None
        self._next_at = 0.0

    def bytes(self) -> int | None:
        """Return the memory at the last measurement; None where the system does not tell it."""
        if self._bytes is None:
            self._measure()
        elif time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + PAUSE_S
            threading.Thread(target=self._measure, name="memory", daemon=True).start()
        return self._bytes

    def _measure(self) -> None:
        self._next_at = time.monotonic() + PAUSE_S
        self._bytes = sum(map(proportional_bytes, family(self._process_id))) or None


def family(process_id: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield process_id
    with suppress(OSError):  # it has ended, or this is not Linux
        for children in Path(f"/proc/{process_id}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from family(int(child))


def proportional_bytes(process_id: int) -> int:
    """Return the memory of one process; 0 if it has ended, or the system does not tell it."""
    with suppress(OSError):
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return 0
