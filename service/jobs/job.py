"""A document to translate, as all servers see it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["queued", "translating", "done", "error"]


@dataclass(frozen=True)
class Job:
    """One document. Times are seconds since 1970, the same for all processes."""

    id: str
    file_name: str
    kind: str
    """Name of the kind of document (documents/kinds.py)."""
    source: str
    target: str
    options: str
    """A TranslateRequest without its text, as JSON."""
    status: Status
    n_characters: int
    n_translated: int
    """Number of characters that are translated so far."""
    created_at: float
    deadline: float
    """Time at which the translation is given up."""
    begun_at: float | None
    finished_at: float | None
    error: str | None
    """Why the translation failed, in one sentence."""

    @property
    def is_finished(self) -> bool:
        return self.status in ("done", "error")

    @property
    def progress(self) -> float:
        """The share that is translated, from 0 to 1."""
        return 1.0 if self.status == "done" else self.n_translated / max(1, self.n_characters)

    def remaining_s(self, now: float) -> float | None:
        """Estimate the remaining time from the speed so far; None before anything is translated."""
        if self.status != "translating" or self.begun_at is None or self.n_translated == 0:
            return None
        return (now - self.begun_at) * (self.n_characters - self.n_translated) / self.n_translated
