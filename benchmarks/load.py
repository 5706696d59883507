"""Generates load over HTTP with wrk, which is in C and takes little of the processor it shares with the server."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parent / "wrk.lua"
TIMEOUT_S = 60
WARM_UP_S = 2.0


class LoadGeneratorError(RuntimeError):
    """wrk is not installed."""


@dataclass(frozen=True)
class Load:
    """Results of one run of the load generator.

    Args:
        failed: answers other than 200, broken connections, and answers that took over a minute.
    """

    requests: int
    seconds: float
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    failed: int

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def saturate(url: str, bodies: Path, connections: int, seconds: float) -> Load:
    """Send requests on each connection without pause."""
    _run(url, bodies, connections, WARM_UP_S, think_ms=0)
    return _run(url, bodies, connections, seconds, think_ms=0)


def offer(url: str, bodies: Path, connections: int, rate: float, seconds: float) -> Load:
    """Send about `rate` requests per second at random moments: each of many connections waits for its answer, pauses
    and asks again. A first run, which also warms up, measures how long they wait."""
    cycle_ms = 1000 * connections / rate
    waiting = _run(url, bodies, connections, WARM_UP_S, think_ms=cycle_ms)
    return _run(url, bodies, connections, seconds, think_ms=max(1.0, cycle_ms - waiting.mean_ms))


def _run(url: str, bodies: Path, connections: int, seconds: float, think_ms: float) -> Load:
    wrk = shutil.which("wrk")
    if wrk is None:
        raise LoadGeneratorError("wrk is not installed: apt install wrk, or brew install wrk")
    options = [f"--connections={connections}", "--threads=1", f"--duration={max(1, round(seconds))}s"]
    completed = subprocess.run(
        [wrk, *options, f"--timeout={TIMEOUT_S}s", f"--script={SCRIPT}", url, "--", str(bodies), str(think_ms), "1"],
        check=True,
        capture_output=True,
        text=True,
    )
    return Load(**json.loads(completed.stdout.splitlines()[-1]))
