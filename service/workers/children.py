"""Processes that are forked: what they say through a pipe, and how they end."""

import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from service.base.errors import StartRefused
from service.workers.wire import Unpacker, packed

Result = TypeVar("Result")


def how_ended(status: int) -> str:
    """By which signal a process was ended, such as SIGKILL where memory is short, or "exit 1"."""
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def in_a_child(call: Callable[[], Result]) -> Result:
    """What a function returns in a process of its own.

    Raises:
        StartRefused: it raises this, or the process dies.
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
        result: Result = what_is_said(reading)
    finally:
        os.waitpid(child, 0)
    return result


def what_is_said(file: int) -> Any:
    """What another process has written into a pipe.

    Raises:
        StartRefused: this, or nothing.
    """
    with os.fdopen(file, "rb") as pipe:
        messages = list(Unpacker().feed(pipe.read()))
    if not messages:
        raise StartRefused("A process ended while it was loading models")
    [(refusal, result)] = messages
    if refusal is not None:
        raise StartRefused(refusal)
    return result
