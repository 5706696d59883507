"""Who may ask, and how often: API keys and a rate per client, each only where it is configured."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import KeyMissing, KeyWrong, RateLimited
from service.http.keys import Keys
from service.settings import Settings

bearer = HTTPBearer(auto_error=False, description="One of the keys that the service was configured with.")

Check = Callable[[Request], Awaitable[None]]


@dataclass
class Guards:
    """The checks that a request passes before its body is read, in order, and what OpenAPI says of them."""

    checks: list[Check] = field(default_factory=list)
    statuses: tuple[int, ...] = ()
    """The statuses that the checks may answer with."""
    described: list[Any] = field(default_factory=list)
    """Dependencies of routes, from which the OpenAPI description knows of keys."""


def access(settings: Settings, keys: Keys, rates: Path | None) -> Guards:
    """The checks that the settings ask for.

    Args:
        rates: where requests are counted for several servers, if so.
    """
    guards = Guards()
    if keys:
        guards.checks.append(key_check(keys))
        guards.statuses += (401, 403)
        guards.described.append(Security(bearer))
    if settings.rate_limit is not None:
        guards.checks.append(rate_check(settings.rate_limit, bool(keys), rates))
        guards.statuses += (429,)
    return guards


def key_check(keys: Keys) -> Check:
    """A check that raises KeyMissing or KeyWrong."""

    async def check(request: Request) -> None:
        credentials = await bearer(request)
        if credentials is None:
            raise KeyMissing("this service wants a key: Authorization: Bearer <key>")
        if not keys.have(credentials.credentials.encode("latin-1")):  # headers are decoded so
            raise KeyWrong("the key is not one of this service's keys")

    return check


class RateLimiter:
    """A rate for each client.

    Args:
        rate: such as 60/minute.
    """

    def __init__(self, rate: str) -> None:
        self._limit = parse(rate)
        # The counters of a sliding window expire. A moving window would keep every client in memory for ever.
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def wait_s(self, client: str) -> int:
        """Count a request; seconds until the client may come again, 0 if it may now."""
        if self._limiter.hit(self._limit, client):
            return 0
        return max(1, math.ceil(self._limiter.get_window_stats(self._limit, client).reset_time - time.time()))


class RemoteRateLimiter:
    """The same for several servers, which ask the process that counts for all of them.

    Args:
        path: of its Unix socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asking = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def wait_s(self, client: str) -> int:
        """Count a request; seconds until the client may come again, 0 if it may now."""
        async with self._asking:
            streams, self._streams = self._streams, None  # whoever is cancelled leaves an answer unread
            incoming, outgoing = streams or await asyncio.open_unix_connection(self._path)
            outgoing.write(json.dumps(client).encode() + b"\n")
            answer = int(await incoming.readline())
            self._streams = incoming, outgoing
            return answer


def rate_check(rate: str, by_key: bool, counted_at: Path | None) -> Check:
    """A check that raises RateLimited. A client is its key, where keys have been checked, or else its address."""
    own = RateLimiter(rate)
    shared = None if counted_at is None else RemoteRateLimiter(counted_at)

    async def check(request: Request) -> None:
        key = await bearer(request) if by_key else None
        address = request.client.host if request.client else "unknown"
        client = key.credentials if key is not None else address
        wait_s = own.wait_s(client) if shared is None else await shared.wait_s(client)
        if wait_s > 0:
            raise RateLimited(f"more than {parse(rate)} from this client", retry_after_s=wait_s)

    return check
