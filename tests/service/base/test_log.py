"""Lines of the log, as a process writes them."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from service.base.log import MAX_CLIENT_CHARACTERS, Form, escaped

SAYS = """
import logging, sys, warnings
from service.base.log import Log
Log("info", sys.argv[1]).configure()
logger = logging.getLogger("service.x")
logger.debug("unheard")
logger.info("one %s", "two", extra={"request_id": "r-1", "trace_id": "t-1", "status": 200, "color_message": "three"})
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("it failed")
warnings.warn("old")
print("structlog" in sys.modules)
"""
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"


def said(form: Form) -> tuple[list[str], bool]:
    """The lines, and whether structlog was imported."""
    ran = subprocess.run([sys.executable, "-c", SAYS, form], capture_output=True, text=True, check=True)
    return ran.stderr.splitlines(), ran.stdout == "True\n"


@pytest.mark.process
def test_a_line_of_text_has_time_and_offset_level_logger_and_message() -> None:
    lines, has_structlog = said("text")
    assert re.fullmatch(rf"{TIME} INFO service\.x: one two", lines[0])
    assert re.fullmatch(rf"{TIME} ERROR service\.x: it failed", lines[1])
    assert "ZeroDivisionError: division by zero" in lines
    assert any(re.fullmatch(rf"{TIME} WARNING py\.warnings: .*UserWarning: old", line) for line in lines)
    assert not has_structlog


@pytest.mark.process
def test_every_line_of_json_is_an_object_with_the_fields_of_a_request() -> None:
    lines, _ = said("json")
    one, failed, old = [json.loads(line) for line in lines]
    for line in (one, failed, old):
        assert re.fullmatch(TIME, line.pop("timestamp"))
    level: dict[str, Any] = {"level": "info", "logger": "service.x"}
    assert one == level | {"event": "one two", "request_id": "r-1", "trace_id": "t-1", "status": 200}
    assert failed["exception"].endswith("ZeroDivisionError: division by zero")
    assert (failed["level"], failed["event"]) == ("error", "it failed")
    assert (old["level"], old["logger"]) == ("warning", "py.warnings")


@pytest.mark.parametrize(
    "text", ["/a\nb\x1b[31m\x85\u2028/é", "/" + 2 * MAX_CLIENT_CHARACTERS * "a", MAX_CLIENT_CHARACTERS * "\n", "\udc80"]
)
def test_a_text_of_a_client_cannot_garble_a_log(text: str) -> None:
    assert re.fullmatch(r"[\x20-\x7e]*", escaped(text))
    assert len(escaped(text)) <= MAX_CLIENT_CHARACTERS
