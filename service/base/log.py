"""Log lines of every process of the service: text for people, or JSON for log collectors."""

import logging
import math
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Form = Literal["text", "json"]

FIELDS = ("request_id", "trace_id", "method", "path", "status", "seconds", "key")
"""Fields of a request that a log call may pass in `extra`; in JSON each is a field of its own."""
MAX_CLIENT_CHARACTERS = 200
"""Limit of a text in a log line that a client chose."""
LOG_INTERVAL_S = 60.0
"""Time between two log lines about something that stays broken."""


@dataclass(frozen=True)
class Log:
    """The log settings of a process."""

    level: str = "info"
    form: Form = "text"

    def configure(self) -> None:
        """Send log lines and Python's warnings to standard error."""
        handler = logging.StreamHandler()
        handler.setFormatter(_Text() if self.form == "text" else _json())
        logging.basicConfig(level=self.level.upper(), handlers=[handler])
        logging.captureWarnings(True)


class Outage:
    """Logs that something cannot be used, once a minute at most, and that it can be used again."""

    def __init__(self, logger: logging.Logger, what: str, meanwhile: str = "") -> None:
        self._logger = logger
        self._what, self._meanwhile = what, meanwhile
        self._may_log_at = -math.inf
        self._is_told = False
        self.lasts = False

    def failed(self, reason: str) -> None:
        """Log the reason, unless a line about this outage was logged a moment ago."""
        if time.monotonic() >= self._may_log_at:
            self._logger.error("%s cannot be used%s: %s", self._what, self._meanwhile, reason)
            self._may_log_at = time.monotonic() + LOG_INTERVAL_S
            self._is_told = True
        self.lasts = True

    def ended(self) -> None:
        """Log the end of an outage that was logged."""
        if self._is_told:
            self._logger.info("%s can be used again", self._what)
        self._is_told = self.lasts = False


def escaped(text: str) -> str:
    """Return a client's text as printable ASCII of limited length, for a log line."""
    return text[:MAX_CLIENT_CHARACTERS].encode("unicode_escape").decode()[:MAX_CLIENT_CHARACTERS]


class _Text(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802  as logging has it
        return _time(record)


def _json() -> logging.Formatter:
    import structlog  # here, as text needs none of it

    def add_time(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {"timestamp": _time(event["_record"]), **event}

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(FIELDS),
            add_time,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
