"""A document to translate, as all servers see it."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from service.documents.contents import ReadOptions
from service.schemas.requests import DocumentOptions, TranslateRequest

Status = Literal["queued", "translating", "done", "error"]


@dataclass(frozen=True)
class Job:
    """One document. Times are seconds since 1970, by the clock of the database."""

    id: str
    file_name: str
    kind: str
    """Name of the kind of document (documents/kinds.py)."""
    source: str
    target: str
    options: str
    """`TranslationOptions` and `DocumentOptions`, as JSON."""
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
    code: str | None
    """The code of that error (docs/errors.md)."""
    least_sure: str | None
    """The passages with the least confidence, as JSON, if that was requested and is known."""
    read_at: float
    """When this was read, by the clock of the other times. The clock of this machine may differ."""

    @cached_property
    def request(self) -> TranslateRequest:
        """A request with the languages and the options of every text. Its options_of text means nothing."""
        options = json.loads(self.options)
        of_texts = {name: value for name, value in options.items() if name not in DocumentOptions.model_fields}
        return TranslateRequest(text=["-"], source=self.source, target=self.target, **of_texts)

    @cached_property
    def read_options(self) -> ReadOptions:
        options = json.loads(self.options)
        of_document = {name: options[name] for name in DocumentOptions.model_fields if name in options}
        return ReadOptions(source=self.source, target=self.target, **of_document)

    @property
    def is_finished(self) -> bool:
        return self.status in ("done", "error")

    @property
    def progress(self) -> float:
        """The share that is translated, from 0 to 1."""
        return 1.0 if self.status == "done" else min(1.0, self.n_translated / max(1, self.n_characters))

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, when this was read."""
        return self.deadline - self.read_at

    @property
    def remaining_s(self) -> float | None:
        """Estimate the remaining time from the speed so far; None before anything is translated."""
        if self.status != "translating" or self.begun_at is None or self.n_translated == 0:
            return None
        return (self.read_at - self.begun_at) * (self.n_characters - self.n_translated) / self.n_translated
