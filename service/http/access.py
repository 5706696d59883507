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

from service.base.errors import Draining, KeyMissing, KeyWrong, RateLimited
from service.base.settings import Settings
from service.http.keys import Keys

bearer = HTTPBearer(auto_error=False, description="One of the keys that the service was configured with.")

Check = Callable[[Request], Awaitable[None]]


async def _bearer_key(request: Request) -> bytes | None:
    credentials = await bearer(request)
    return None if credentials is None else credentials.credentials.encode("latin-1")  # headers are decoded so


@dataclass(frozen=True)
class Credentials:
    """Where requests have their key."""

    key: Callable[[Request], Awaitable[bytes | None]]
    """None if a request has none."""
    hint: str
    """What a client reads that sent none."""
    scheme: Callable[..., Any] | None
    """By which OpenAPI knows of it, if it can."""


BEARER = Credentials(_bearer_key, "Authorization: Bearer <key>", bearer)


@dataclass
class Guards:
    """The checks that a request passes before its body is read, in order, and what OpenAPI says of them."""

    checks: list[Check] = field(default_factory=list)
    statuses: tuple[int, ...] = ()
    """The statuses that the checks may answer with."""
    described: list[Any] = field(default_factory=list)
    """Dependencies of routes, from which the OpenAPI description knows of keys."""


class Access:
    """The checks that the settings ask for. A client has one rate, wherever it asks.

    Args:
        rates: where requests are counted for several servers, if so.
    """

    def __init__(self, settings: Settings, keys: Keys, rates: Path | None) -> None:
        self._keys = keys
        self._rate = settings.rate_limit
        self._limiter: RateLimiter | RemoteRateLimiter | None = None
        if self._rate is not None:
            self._limiter = RateLimiter(self._rate) if rates is None else RemoteRateLimiter(rates)

    @property
    def wants_keys(self) -> bool:
        """Whether there are any."""
        return bool(self._keys)

    def guards(self, credentials: Credentials | None = BEARER) -> Guards:
        """What a route checks.

        Args:
            credentials: where requests have their key; None: the route asks for none, and clients are addresses.
        """
        guards = Guards()
        if self._keys and credentials is not None:
            guards.checks.append(key_check(self._keys, credentials))
            guards.statuses += (401, 403)
            guards.described += [Security(credentials.scheme)] if credentials.scheme is not None else []
        if self._rate is not None and self._limiter is not None:
            guards.checks.append(rate_check(self._rate, self._limiter, credentials if self._keys else None))
            guards.statuses += (429,)
        return guards


def key_check(keys: Keys, credentials: Credentials) -> Check:
    """A check that raises KeyMissing or KeyWrong."""

    async def check(request: Request) -> None:
        key = await credentials.key(request)
        if key is None:
            raise KeyMissing(f"A key is required: {credentials.hint}")
        if not keys.have(key):
            raise KeyWrong("The key is not one of this service's keys")

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
        """Count a request; seconds until the client may come again, 0 if it may now.

        Raises:
            Draining: the process has gone, and the servers end with it.
        """
        async with self._asking:
            streams, self._streams = self._streams, None  # whoever is cancelled leaves an answer unread
            try:
                streams = streams or await asyncio.open_unix_connection(self._path)
                incoming, outgoing = streams
                outgoing.write(json.dumps(client).encode() + b"\n")
                answer = int(await incoming.readline())
            except (OSError, ValueError):  # at its end a line is empty
                if streams is not None:
                    streams[1].close()
                raise Draining("The process that counts requests does not answer", retry_after_s=5) from None
            self._streams = streams
            return answer


def rate_check(rate: str, limiter: RateLimiter | RemoteRateLimiter, credentials: Credentials | None) -> Check:
    """A check that raises RateLimited. A client is its key, where keys have been checked, or else its address."""

    async def check(request: Request) -> None:
        key = await credentials.key(request) if credentials is not None else None
        address = request.client.host if request.client else "unknown"
        client = address if key is None else key.decode("latin-1")
        wait_s = limiter.wait_s(client) if isinstance(limiter, RateLimiter) else await limiter.wait_s(client)
        if wait_s > 0:
            raise RateLimited(f"Rate limit exceeded: {parse(rate)} for each client", retry_after_s=wait_s)

    return check
