"""What is wrong with an input: an error without a name, too much time, too much memory."""

import hashlib
import resource
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.target import ROOT, Target

MAX_SECONDS = 2.0
"""Processor time for an input of at most 1 MB."""
MAX_BYTES = 500_000_000
"""Memory for an input of at most 1 MB, beside what the process has already."""


class TooSlow(BaseException):
    """An input took too much processor time."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with an input.

    Args:
        place: the error and the line of the project that raised it. Findings of one place count as one.
        details: the traceback.
    """

    place: str
    details: str

    def save(self, data: bytes, folder: Path) -> bool:
        """Save the input and the traceback, unless there is a smaller input of this place. Return whether it is new."""
        name = hashlib.sha256(self.place.encode()).hexdigest()[:12]
        path = folder / name
        is_new = not path.exists()
        if is_new or len(data) < path.stat().st_size:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(f"{self.place}\n\n{self.details}", encoding="utf-8")
        return is_new


def finding_of(target: Target, data: bytes, max_seconds: float | None = MAX_SECONDS) -> Finding | None:
    """Read an input, and return what is wrong with it.

    Args:
        max_seconds: limit of the processor time; None: no limit.
    """
    try:
        with _time_limit(max_seconds):
            for _ in target.read(data):
                pass
    except target.allowed:
        return None
    except (Exception, TooSlow) as error:
        return Finding(_place(error), "".join(traceback.format_exception(error)))
    return None


def limit_memory() -> None:
    """Let this process have no more than `MAX_BYTES` beside what it has: the rest raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT) and "/.venv/" not in frame.filename]
    last = own[-1] if own else frames[-1]
    where = f"{Path(last.filename).name}:{last.name}:{last.lineno}"
    if isinstance(error, TooSlow):  # any line of a slow function may be the last one
        where = f"{Path(last.filename).name}:{last.name}"
    return f"{type(error).__name__} in {where}"
