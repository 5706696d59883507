"""A document that somebody wants translated, as all servers know it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["queued", "translating", "done", "error"]


@dataclass(frozen=True)
class Job:
    """Times are seconds since 1970, which all processes share."""

    id: str
    file_name: str
    kind: str
    """The name of one of the kinds of documents."""
    source: str
    target: str
    options: str
    """A TranslateRequest without its text, as JSON."""
    status: Status
    n_characters: int
    n_translated: int
    """Of these characters."""
    created_at: float
    deadline: float
    """When it is given up."""
    begun_at: float | None
    finished_at: float | None
    error: str | None
    """Why it could not be translated, in a sentence."""

    @property
    def is_finished(self) -> bool:
        return self.status in ("done", "error")

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return 1.0 if self.status == "done" else self.n_translated / max(1, self.n_characters)

    def remaining_s(self, now: float) -> float | None:
        """As it went so far; None where nothing tells."""
        if self.status != "translating" or self.begun_at is None or self.n_translated == 0:
            return None
        return (now - self.begun_at) * (self.n_characters - self.n_translated) / self.n_translated
