"""API keys and the rate limit of each client, where they are configured."""

import asyncio
import hashlib
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
from service.http.addresses import client_at
from service.http.keys import Keys

bearer = HTTPBearer(auto_error=False, description="One of the keys that the service was configured with.")

Check = Callable[[Request], Awaitable[None]]


async def _bearer_key(request: Request) -> bytes | None:
    credentials = await bearer(request)
    # Starlette decodes headers as Latin-1.
    return None if credentials is None else credentials.credentials.encode("latin-1")


@dataclass(frozen=True)
class Credentials:
    """The place of the key in a kind of request."""

    key: Callable[[Request], Awaitable[bytes | None]]
    """Returns the key of a request; None if it has none."""
    hint: str
    """The hint in the error for a client that sent no key."""
    scheme: Callable[..., Any] | None
    """The security scheme for OpenAPI; None where OpenAPI has no such scheme."""


BEARER = Credentials(_bearer_key, "Authorization: Bearer <key>", bearer)


@dataclass
class Guards:
    """The checks of a request before its body is read, in order, and their descriptions for OpenAPI."""

    checks: list[Check] = field(default_factory=list)
    statuses: tuple[int, ...] = ()
    """Statuses of the errors that the checks may raise."""
    described: list[Any] = field(default_factory=list)
    """Dependencies of routes, by which OpenAPI describes the keys."""


class Access:
    """The checks that the settings require. A client has one rate for all routes and interfaces.

    Args:
        rates: the socket of the process that counts for several servers; None: this process counts.
    """

    def __init__(self, settings: Settings, keys: Keys, rates: Path | None) -> None:
        self._keys = keys
        self._rate = settings.rate_limit
        self._limiter: RateLimiter | RemoteRateLimiter | None = None
        if self._rate is not None:
            self._limiter = RateLimiter(self._rate) if rates is None else RemoteRateLimiter(rates)

    @property
    def wants_keys(self) -> bool:
        """Return whether requests need a key."""
        return bool(self._keys)

    def guards(self, credentials: Credentials | None = BEARER) -> Guards:
        """Return the checks of a route.

        Args:
            credentials: the place of keys; None: the route needs no key, and identifies clients by address.
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
    """Return a check that raises KeyMissing or KeyWrong."""

    async def check(request: Request) -> None:
        key = await credentials.key(request)
        if key is None:
            raise KeyMissing(f"A key is required: {credentials.hint}")
        if not keys.have(key):
            raise KeyWrong("The key is not one of this service's keys")
        request.state.context.caller = hashlib.sha256(key).hexdigest()

    return check


class RateLimiter:
    """Counts the requests of each client.

    Args:
        rate: the maximum rate of one client, such as 60/minute.
    """

    def __init__(self, rate: str) -> None:
        self._limit = parse(rate)
        # The counters of a sliding window expire. A moving window would keep every client in memory for ever.
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def wait_s(self, client: str) -> int:
        """Count a request. Return the seconds until the client may send another one; 0: this one is allowed."""
        if self._limiter.hit(self._limit, client):
            return 0
        return max(1, math.ceil(self._limiter.get_window_stats(self._limit, client).reset_time - time.time()))


class RemoteRateLimiter:
    """Asks the process that counts for several servers.

    Args:
        path: the Unix socket of that process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asking = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def wait_s(self, client: str) -> int:
        """Count a request. Return the seconds until the client may send another one; 0: this one is allowed.

        Raises:
            Draining: the process has ended, and the servers end with it.
        """
        async with self._asking:
            streams, self._streams = self._streams, None  # a cancelled request leaves its answer unread
            try:
                streams = streams or await asyncio.open_unix_connection(self._path)
                incoming, outgoing = streams
                outgoing.write(json.dumps(client).encode() + b"\n")
                answer = int(await incoming.readline())
            except (OSError, ValueError):  # a closed connection reads as an empty line
                if streams is not None:
                    streams[1].close()
                raise Draining("The process that counts requests does not answer", retry_after_s=5) from None
            self._streams = streams
            return answer


def rate_check(rate: str, limiter: RateLimiter | RemoteRateLimiter, credentials: Credentials | None) -> Check:
    """Return a check that raises RateLimited. It knows a client by its key if keys are checked, else by its address."""

    async def check(request: Request) -> None:
        key = await credentials.key(request) if credentials is not None else None
        address = request.client.host if request.client else "unknown"
        client = client_at(address) if key is None else key.decode("latin-1")
        wait_s = limiter.wait_s(client) if isinstance(limiter, RateLimiter) else await limiter.wait_s(client)
        if wait_s > 0:
            raise RateLimited(f"Rate limit exceeded: {parse(rate)} for each client", retry_after_s=wait_s)

    return check
