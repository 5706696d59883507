"""Count the requests of clients: in this process, or in one for several servers."""

import asyncio
import json
import math
import time
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.base.errors import Draining
from service.base.settings import Settings


class Limiter(Protocol):
    async def wait_s(self, client: str, rate: str) -> int:
        """Count a request. Return the seconds until the client may send another; 0: this one is allowed. `rate` is the
        maximum rate of this client, such as 60/minute."""


class RateLimiter:
    """Counts in this process."""

    def __init__(self) -> None:
        # The counters of a sliding window expire. A moving window would keep every client in memory for ever.
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def wait_s(self, client: str, rate: str) -> int:
        return self.count(client, rate)

    def count(self, client: str, rate: str) -> int:
        """Count a request in this process, as `wait_s` does."""
        limit = parsed(rate)
        if self._limiter.hit(limit, client):
            return 0
        return seconds_until(self._limiter.get_window_stats(limit, client).reset_time)


class RemoteRateLimiter:
    """Asks the process that counts for several servers. `path` is the Unix socket of that process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asking = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def wait_s(self, client: str, rate: str) -> int:
        """Raises Draining: the process has ended, and the servers end with it."""
        async with self._asking:
            streams, self._streams = self._streams, None  # a cancelled request leaves its answer unread
            try:
                streams = streams or await asyncio.open_unix_connection(self._path)
                incoming, outgoing = streams
                outgoing.write(json.dumps([client, rate]).encode() + b"\n")
                answer = int(await incoming.readline())
            except (OSError, ValueError):  # a closed connection reads as an empty line
                if streams is not None:
                    streams[1].close()
                raise Draining("The process that counts requests does not answer", retry_after_s=5) from None
            self._streams = streams
            return answer


def may_have_rates(settings: Settings) -> bool:
    """Whether a client may have a rate: the file of keys may get one while the service runs."""
    return settings.rate_limit is not None or settings.api_keys_file is not None


@lru_cache(1000)
def parsed(rate: str) -> RateLimitItem:
    """Return the limit that a rate such as 60/minute means."""
    return parse(rate)


def seconds_until(time_s: float) -> int:
    """Return whole seconds until a time in seconds since 1970; at least 1."""
    return max(1, math.ceil(time_s - time.time()))
