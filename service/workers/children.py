"""Forked processes: what they return through a pipe, and why they end."""

import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from service.base.errors import StartRefused
from service.workers.wire import Unpacker, packed

Result = TypeVar("Result")


def exit_cause(wait_status: int) -> str:
    """Return the signal that ended a process, such as SIGKILL if memory is short, or "exit 1"."""
    code = os.waitstatus_to_exitcode(wait_status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def run_in_child(call: Callable[[], Result]) -> Result:
    """Call a function in a process of its own, and return its result.

    Raises:
        StartRefused: the function raised this, or the process died.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            try:
                message = packed(None, call())
            except StartRefused as refusal:
                message = packed(str(refusal), None)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(message)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        result: Result = read_result(reading)
    finally:
        os.waitpid(child, 0)
    return result


def read_result(file: int) -> Any:
    """Read the result that another process wrote into a pipe.

    Raises:
        StartRefused: the process wrote a refusal, or nothing.
    """
    with os.fdopen(file, "rb") as pipe:
        messages = list(Unpacker().feed(pipe.read()))
    if not messages:
        raise StartRefused("A process ended while it was loading models")
    [(refusal, result)] = messages
    if refusal is not None:
        raise StartRefused(refusal)
    return result
