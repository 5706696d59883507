"""What was sent, and what came of it."""

from collections import Counter
from dataclasses import dataclass, field

MAX_WRONG = 40
"""Complaints that are kept; all are counted."""


@dataclass
class Ledger:
    """Counts of one storm.

    Attributes:
        answered: whole answers by dialect, route and status, as metrics count them.
        unanswered: requests by dialect and route whose client left, or whose connection was lost. Metrics may have
            counted them or not.
        outcomes: requests by kind and by what came of them.
    """

    answered: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    unanswered: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_wrong: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def n_requests(self) -> int:
        return self.outcomes.total()

    def complain(self, what: str) -> None:
        self.n_wrong += 1
        if len(self.wrong) < MAX_WRONG:
            self.wrong.append(what)
