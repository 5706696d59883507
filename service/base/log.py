"""One form of log line in every process of the service: text for people, or JSON for what collects logs."""

import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Form = Literal["text", "json"]

FIELDS = ("request_id", "method", "path", "status", "seconds")
"""What a line may say of a request, in `extra`; each is a field of its own in JSON."""

N_CHARACTERS = 200
"""Of what a client chose, a line has no more."""


@dataclass(frozen=True)
class Log:
    """How a process logs."""

    level: str = "info"
    form: Form = "text"

    def configure(self) -> None:
        """Log to standard error from here on, warnings of Python too."""
        handler = logging.StreamHandler()
        handler.setFormatter(_Text() if self.form == "text" else _json())
        logging.basicConfig(level=self.level.upper(), handlers=[handler])
        logging.captureWarnings(True)


def harmless(text: str) -> str:
    """A client's text in printable ASCII, cut."""
    return text[:N_CHARACTERS].encode("unicode_escape").decode()[:N_CHARACTERS]


class _Text(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802  logging's own
        return _time(record)


def _json() -> logging.Formatter:
    import structlog  # by those alone who want it

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
    """With the offset from UTC."""
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
