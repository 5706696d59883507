"""Who may ask, and how often: API keys and a rate per client, each only where it is configured."""

import hmac
import math
import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from service.errors import KeyMissing, KeyWrong, RateLimited
from service.settings import Settings

bearer = HTTPBearer(auto_error=False, description="One of the keys that the service was configured with.")


@dataclass
class Guards:
    """Dependencies of a route, in the order in which they are checked, and the statuses that they may answer with."""

    checks: list[Any] = field(default_factory=list)
    statuses: tuple[int, ...] = ()


def access(settings: Settings) -> Guards:
    """What the settings ask for."""
    guards = Guards()
    if settings.api_keys:
        guards.checks.append(Depends(key_check([key.get_secret_value() for key in settings.api_keys])))
        guards.statuses += (401, 403)
    if settings.rate_limit is not None:
        guards.checks.append(Depends(rate_check(settings.rate_limit, by_key=bool(settings.api_keys))))
        guards.statuses += (429,)
    return guards


def key_check(keys: list[str]) -> Any:
    """A dependency that raises KeyMissing or KeyWrong."""

    async def check(credentials: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]) -> None:
        if credentials is None:
            raise KeyMissing("this service wants a key: Authorization: Bearer <key>")
        given = credentials.credentials.encode("latin-1")  # as headers are decoded
        # Every key is compared, each in constant time, so that the answer's time tells nothing about them.
        matches = [hmac.compare_digest(given, key.encode()) for key in keys]
        if not any(matches):
            raise KeyWrong("the key is not one of this service's keys")

    return check


def rate_check(rate: str, by_key: bool) -> Any:
    """A dependency that raises RateLimited. A client is its key, where keys have been checked, or else its address."""
    limit = parse(rate)
    limiter = MovingWindowRateLimiter(MemoryStorage())

    async def check(request: Request, key: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]) -> None:
        address = request.client.host if request.client else "unknown"
        client = key.credentials if by_key and key is not None else address
        if not limiter.hit(limit, client):
            reset_s = math.ceil(limiter.get_window_stats(limit, client).reset_time - time.time())
            raise RateLimited(f"more than {limit} from this client", retry_after_s=max(1, reset_s))

    return check
