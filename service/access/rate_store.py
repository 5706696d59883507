"""Count the requests of clients in a Redis or Valkey, for several services."""

import asyncio
import logging
import math
import time
from collections.abc import Coroutine
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from service.access.limiters import Limiter, RateLimiter, RemoteRateLimiter, may_have_rates, parsed, seconds_until
from service.base.errors import StartRefused
from service.base.log import Outage
from service.base.metrics import Metrics
from service.base.settings import Settings

T = TypeVar("T")

logger = logging.getLogger(__name__)

STORE_TIMEOUT_S = 0.04
"""Seconds in which the store must answer; then this service counts the request."""
MAX_LATE = 5
"""How many times the timeout is extended when this process was too busy to read the answer."""
N_CONNECTIONS = 4
"""Most connections of a server to the store. Many requests at once would otherwise wait for connections to open."""
RETRY_S = 0.25
"""Seconds for which a store is not asked after it failed."""


def limiter_of(settings: Settings, metrics: Metrics, rates: Path | None) -> Limiter | None:
    """Return what counts requests; None if no client has a rate. `rates` is the socket of the process that counts for
    several servers; None: this process counts. Raises StartRefused: the address of the store is wrong."""
    if not may_have_rates(settings):
        return None
    local = RateLimiter() if rates is None else RemoteRateLimiter(rates)
    storage = storage_of(settings)
    return local if storage is None else StoredRateLimiter(storage, local, metrics)


class StoredRateLimiter:
    """Counts in a Redis or Valkey, for several services. While the store is down or slow, another limiter counts.
    `storage` is an asynchronous storage of `limits`."""

    def __init__(self, storage: Any, otherwise: Limiter, metrics: Metrics) -> None:
        from limits.aio.strategies import SlidingWindowCounterRateLimiter as StoredWindows

        self._limiter = StoredWindows(storage)
        self._otherwise = otherwise
        self._metrics = metrics
        self._connections = asyncio.Semaphore(N_CONNECTIONS)
        self._outage = Outage(logger, "the rate store", ", so this service counts by itself")
        self._may_ask_at = -math.inf

    async def wait_s(self, client: str, rate: str) -> int:
        wait_s = None
        with suppress(TimeoutError):  # the store is slower than requests come
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await self._connections.acquire()
            try:
                wait_s = await self._stored_wait_s(client, rate)
            finally:
                self._connections.release()
        if wait_s is not None:
            return wait_s
        self._metrics.rates_without_store.inc()
        return await self._otherwise.wait_s(client, rate)

    async def _stored_wait_s(self, client: str, rate: str) -> int | None:
        """Return the store's answer; None if it cannot be used now."""
        if (now := time.monotonic()) < self._may_ask_at:
            return None
        if self._outage.lasts:
            self._may_ask_at = now + RETRY_S  # one request finds out for the others
        try:
            wait_s = await _in_time(self._ask(client, rate))
        except Exception as error:  # whatever it is: rates are never why a request fails
            self._may_ask_at = time.monotonic() + RETRY_S
            self._outage.failed(" ".join(str(error).split()) or f"no answer within {STORE_TIMEOUT_S:g} s")
            return None
        self._outage.ended()
        self._may_ask_at = -math.inf
        return wait_s

    async def _ask(self, client: str, rate: str) -> int:
        limit = parsed(rate)
        if await self._limiter.hit(limit, client):
            return 0
        return seconds_until((await self._limiter.get_window_stats(limit, client)).reset_time)


def storage_of(settings: Settings) -> Any | None:
    """Return an asynchronous storage of `limits`, which is not connected yet; None if no store is configured. Raises
    StartRefused: its address is wrong, or redis is missing. The message never has the address."""
    if (address := settings.secret("rate_store")) is None:
        return None
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("redis", "rediss", "redis+unix", "valkey", "valkeys", "valkey+unix"):
        raise StartRefused("The address of the rate store must be redis://USER:PASSWORD@HOST:PORT")
    if find_spec("redis") is None:
        raise StartRefused("ATTEND_RATE_STORE needs redis: pip install redis")
    from limits.aio.storage import RedisStorage
    from limits.errors import ConfigurationError

    try:
        # Valkey speaks Redis' protocol, so its own client is not needed.
        return RedisStorage(f"async+{scheme.replace('valkey', 'redis')}://{rest}", implementation="redispy")
    except (ConfigurationError, ValueError):
        raise StartRefused("The address of the rate store must be redis://USER:PASSWORD@HOST:PORT") from None


async def _in_time(asking: Coroutine[Any, Any, T]) -> T:
    """Await the store's answer. The timeout starts again where this process was too busy to read it. Raises
    TimeoutError."""
    work = asyncio.ensure_future(asking)
    try:
        for _ in range(MAX_LATE + 1):
            began = time.monotonic()
            await asyncio.wait([work], timeout=STORE_TIMEOUT_S)
            if work.done():
                return work.result()
            if time.monotonic() < began + 1.25 * STORE_TIMEOUT_S:
                break
        raise TimeoutError
    finally:
        work.cancel()
