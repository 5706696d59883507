"""What each request may be answered: what it was answered in calm, or the error of a fault that it can feel."""

import io
import json
import math
import time
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from service.base.errors import DeadlinePassed, QueueFull, RequestError, UnknownDocument
from service.dialects import ALL
from tests.soak.faults import STANDSTILL, Fault
from tests.soak.http import Answer
from tests.soak.requests import EVENTS, LINES, Request

STANDSTILL_S, AFTER_STANDSTILL_S = 5.0, 3.0
"""A pause that no work of this process takes, and how long its end is felt."""
TOLERANCE = 1e-4
"""Of scores: the sums of a batch may end in other bits."""
OF_THE_ASKING = {"request_id", "id", "created", "created_at", "creation_time", "uptime"}
"""Fields that tell when or how something was asked."""
PROBLEM = "application/problem+json"
DIALECTS = {dialect.name: dialect for dialect in ALL}


def errors(kind: type[RequestError] = RequestError) -> Iterator[type[RequestError]]:
    for one in kind.__subclasses__():
        yield one
        yield from errors(one)


TOO_LATE = (DeadlinePassed.code, QueueFull.code)
"""Answers to a request whose deadline is too short: it passed, or would."""
STATUS_OF = {error.code: error.status for error in errors() if hasattr(error, "code") and hasattr(error, "status")}


@dataclass
class Window:
    """The time in which a fault may be felt."""

    fault: Fault
    began: float
    ended: float = math.inf
    n_excused: int = 0


@dataclass
class Oracle:
    """Judges answers.

    Attributes:
        calm: what each request was answered while nothing was wrong, and nothing else was asked.
        of_versions: the same for a request to a model that is replaced, with each of its versions.
    """

    calm: dict[Request, object] = field(default_factory=dict)
    of_versions: dict[Request, list[object]] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    versions: list[tuple[float, set[int]]] = field(default_factory=lambda: [(-math.inf, {0})])
    """Since when which versions of the model may answer."""
    _beat_at: float = math.inf

    def note_beat(self) -> None:
        """Say that this process runs, every second or so; a longer pause shows that the machine stood still."""
        now = time.monotonic()
        if now - self._beat_at > STANDSTILL_S:  # not before the first beat
            self.windows.append(Window(STANDSTILL, self._beat_at, now + AFTER_STANDSTILL_S))
        self._beat_at = now

    def windows_between(self, began: float, ended: float) -> list[Window]:
        """Return the windows in which a request was on its way."""
        self.note_beat()
        return [window for window in self.windows if window.began <= ended and window.ended >= began]

    def complaint(self, request: Request, answer: Answer, began: float, ended: float) -> str | None:
        """Return what is wrong with an answer; None if nothing is."""
        found = comparable(answer)
        if any(same(found, expected) for expected in self._expected(request, began, ended)):
            return None
        if request.expires and any(is_error(request, answer, code) for code in TOO_LATE):
            return None
        return f"{request.kind} {request.message.path}: {answer.status} {answer.body[:300]!r}"

    def excuses(self, request: Request, answer: Answer, began: float, ended: float) -> bool:
        """Whether a fault that the request can feel may cause this error."""
        for window in self.windows_between(began, ended):
            fault = window.fault
            if fault.touches & request.needs and any(is_error(request, answer, code) for code in fault.codes):
                window.n_excused += 1
                return True
        return False

    def excuses_loss(self, began: float, ended: float, is_timeout: bool = False) -> bool:
        """Whether a fault may have cost the connection, or why nothing came within the client's patience."""
        for window in self.windows_between(began, ended):
            if window.fault is STANDSTILL or (window.fault.loses_connections and not is_timeout):
                window.n_excused += 1
                return True
        return False

    def forgets_documents(self, began: float, ended: float) -> bool:
        """Whether a fault may have deleted finished documents."""
        return any(UnknownDocument.code in window.fault.codes for window in self.windows_between(began, ended))

    def _expected(self, request: Request, began: float, ended: float) -> Iterable[object]:
        if not request.of_version:
            return [self.calm[request]]
        answers = self.of_versions[request]
        later = [since for since, _ in self.versions[1:]] + [math.inf]
        valid = [
            of for (since, of), until in zip(self.versions, later, strict=True) if since <= ended and until >= began
        ]
        return [answers[version] for version in set().union(*valid)]


def is_error(request: Request, answer: Answer, code: str) -> bool:
    """Whether an answer is the error with this code; in a dialect, whose errors have no codes, one with its status."""
    status = STATUS_OF[code]
    if request.dialect != "native":
        of_dialect = DIALECTS[request.dialect].statuses
        return answer.status == of_dialect.get(code, of_dialect.get(status, status))
    if request.streams and answer.status == 200:  # an error after the first piece is the last event
        events = events_of(answer)
        return bool(events) and isinstance(events[-1], dict) and events[-1].get("code") == code
    if answer.status != status or answer.content_type != PROBLEM:
        return False
    found: str = answer.json().get("code")
    return found == code


def comparable(answer: Answer) -> object:
    """Return status and content, without what differs from one asking to the next."""
    kind = answer.content_type
    if kind in (EVENTS, LINES):
        return answer.status, without_asking(events_of(answer))
    if kind.endswith("json"):
        return answer.status, without_asking(answer.json())
    return answer.status, file_content(answer.body)


def events_of(answer: Answer) -> list[Any]:
    text = answer.body.decode()
    lines = text.splitlines() if answer.content_type == LINES else text.split("\n\n")
    return [
        json.loads(line.partition("data: ")[2] if answer.content_type == EVENTS else line) for line in lines if line
    ]


def file_content(data: bytes) -> object:
    """Return the files in a zip, whose own bytes have times in them, or the bytes of another file."""
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def without_asking(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_asking(one) for name, one in value.items() if name not in OF_THE_ASKING}
    if isinstance(value, list):
        return [without_asking(one) for one in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two contents are equal, but for the last bits of numbers."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
