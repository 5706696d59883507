"""What a soak is asked to do, and what it has found."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.ledger import Ledger


@dataclass(frozen=True)
class Options:
    """How long a soak takes, and how hard it is.

    Attributes:
        minutes: how long the clients ask.
        n_requests: they stop after so many requests, if that is earlier.
        artifacts: the folder of the shipped models; None: tiny ones are made.
        fault_s: how long a fault lasts that has a length.
        pause_s: mean time between two faults.
        n_different: number of different requests.
        warm_up_s: how long clients ask before the first fault.
        documents_kept_s: how long the service keeps translated documents.
        log: where the log of the service is copied to.
    """

    minutes: float = 5.0
    n_requests: int | None = None
    seed: int = 0
    artifacts: Path | None = None
    postgresql: bool = False
    fault_s: float = 4.0
    pause_s: float = 6.0
    n_different: int = 2000
    warm_up_s: float = 15.0
    documents_kept_s: float = 20.0
    log: Path | None = None


@dataclass
class Strikes:
    """How often a fault struck, and how long it took each time until the service was ready again."""

    n: int = 0
    seconds_until_ready: list[float] = field(default_factory=list)
    n_excused: int = 0


@dataclass
class Result:
    """What a soak has found."""

    options: Options
    ledger: Ledger
    strikes: dict[str, Strikes] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Faults that could not be made, and why."""
    memory: list[tuple[float, int]] = field(default_factory=list)
    """Bytes of all processes, by seconds since the first fault may come."""
    failures: list[str] = field(default_factory=list)
    """Of the service as a whole: what is left over, or not counted right."""
    seconds: float = 0.0

    @property
    def memory_growth(self) -> float:
        """Return by which share the median memory of the second half is larger than that of the first."""
        values = [n_bytes for _, n_bytes in self.memory]
        half = len(values) // 2
        if half == 0:
            return 0.0
        return sorted(values[half:])[(len(values) - half) // 2] / sorted(values[:half])[half // 2] - 1

    def complaints(self, most_growth: float) -> list[str]:
        """Return everything that is wrong."""
        found = [*self.failures, *self.ledger.wrong]
        if self.ledger.n_wrong > len(self.ledger.wrong):
            found.append(f"{self.ledger.n_wrong} complaints about answers in all")
        if self.memory_growth > most_growth:
            found.append(f"memory grew by {self.memory_growth:.0%}")
        return found
