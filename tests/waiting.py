"""Wait until something has happened, for a bounded time: nothing else in the tests sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

PATIENCE_S = 30
"""How long a test waits for something that must happen, before it fails."""
LOOK_S = 0.01


def wait_until(happened: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Block until `happened()` is true; fail if it is not within `patience_s`."""
    ends_at = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < ends_at, f"it did not happen within {patience_s} s"
        look_later()


def look_later(_: float = LOOK_S) -> None:
    """Sleep for a moment; also in place of the sleep of a client that would wait longer between two looks."""
    time.sleep(LOOK_S)


async def until(happened: Callable[[], bool | Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    """Let other tasks run until `happened()` is true; fail if it is not within `patience_s`."""
    async with asyncio.timeout(patience_s):
        while not (await found if isawaitable(found := happened()) else found):
            await asyncio.sleep(LOOK_S)
