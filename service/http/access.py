"""Who may ask, and how often: API keys and a rate per client, each only where it is configured."""

import hmac
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import KeyMissing, KeyWrong, RateLimited
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


def access(settings: Settings) -> Guards:
    """The checks that the settings ask for."""
    guards = Guards()
    if settings.api_keys:
        guards.checks.append(key_check([key.get_secret_value() for key in settings.api_keys]))
        guards.statuses += (401, 403)
        guards.described.append(Security(bearer))
    if settings.rate_limit is not None:
        guards.checks.append(rate_check(settings.rate_limit, by_key=bool(settings.api_keys)))
        guards.statuses += (429,)
    return guards


def key_check(keys: list[str]) -> Check:
    """A check that raises KeyMissing or KeyWrong."""

    async def check(request: Request) -> None:
        credentials = await bearer(request)
        if credentials is None:
            raise KeyMissing("this service wants a key: Authorization: Bearer <key>")
        given = credentials.credentials.encode("latin-1")  # headers are decoded so
        # Every key is compared, each in constant time, so that the answer's time tells nothing about the keys.
        matches = [hmac.compare_digest(given, key.encode()) for key in keys]
        if not any(matches):
            raise KeyWrong("the key is not one of this service's keys")

    return check


def rate_check(rate: str, by_key: bool) -> Check:
    """A check that raises RateLimited. A client is its key, where keys have been checked, or else its address."""
    limit = parse(rate)
    # The counters of a sliding window expire. A moving window would keep every client in memory for ever.
    limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def check(request: Request) -> None:
        key = await bearer(request) if by_key else None
        address = request.client.host if request.client else "unknown"
        client = key.credentials if key is not None else address
        if not limiter.hit(limit, client):
            reset_s = math.ceil(limiter.get_window_stats(limit, client).reset_time - time.time())
            raise RateLimited(f"more than {limit} from this client", retry_after_s=max(1, reset_s))

    return check
