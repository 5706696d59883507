"""Log lines of every process of the service: text for people, or JSON for log collectors."""

import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Form = Literal["text", "json"]

FIELDS = ("request_id", "trace_id", "method", "path", "status", "seconds", "key")
"""Fields of a request that a log call may pass in `extra`; in JSON each is a field of its own."""

MAX_CLIENT_CHARACTERS = 200
"""Limit of a text in a log line that a client chose."""


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


def escaped(text: str) -> str:
    """Return a client's text for a log line: printable ASCII of limited length."""
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
    """Return the local time with its offset from UTC."""
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
