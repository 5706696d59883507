"""API keys and the rate limit of each client, where they are configured."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from limits import parse

from service.access.key_file import Key
from service.access.keys import Keys
from service.access.ownership import Requester
from service.access.rate_store import limiter_of
from service.access.usage import Account, Usage
from service.base.errors import CrossSite, KeyMissing, KeyWrong, RateLimited, RouteForbidden
from service.base.metrics import Metrics
from service.base.settings import Settings

bearer = HTTPBearer(auto_error=False, description="One of the keys that the service was configured with.")

Check = Callable[[Request], Awaitable[None]]


async def _bearer_key(request: Request) -> bytes | None:
    credentials = await bearer(request)
    # Starlette decodes headers as Latin-1.
    return None if credentials is None else credentials.credentials.encode("latin-1")


def requester_of(request: Request) -> Requester:
    """Return who asks, for stores of glossaries and memories."""
    requester: Requester = request.state.context.requester
    return requester


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
        usage: the characters that keys with names have used.
        rates: the socket of the process that counts for several servers; None: this process counts.
    """

    def __init__(self, settings: Settings, keys: Keys, usage: Usage, metrics: Metrics, rates: Path | None) -> None:
        self._keys = keys
        self._usage = usage
        self._rate = settings.rate_limit
        self._origins = settings.allowed_origins
        self._limiter = limiter_of(settings, metrics, rates)

    @property
    def wants_keys(self) -> bool:
        """Whether requests need a key."""
        return bool(self._keys)

    def guards(self, credentials: Credentials | None = BEARER, is_open_to_all: bool = False) -> Guards:
        """Return the checks of a route. `credentials` is the place of keys; None: the route needs no key, and
        identifies clients by address. `is_open_to_all`: whether pages of every site may ask."""
        guards = Guards()
        if not self._keys and not is_open_to_all and "*" not in self._origins:
            guards.checks.append(self._check_site)
            guards.statuses += (403,)
        if self._keys and credentials is not None:
            guards.checks.append(self._key_check(credentials))
            guards.statuses += (401, 403)
            guards.described += [Security(credentials.scheme)] if credentials.scheme is not None else []
        if self._limiter is not None:
            guards.checks.append(self._check_rate)
            guards.statuses += (429,)
        return guards

    def _key_check(self, credentials: Credentials) -> Check:
        """The check raises KeyMissing, KeyWrong or RouteForbidden, and RateLimited after many wrong keys."""

        async def check(request: Request) -> None:
            sent = await credentials.key(request)
            if sent is None:
                raise KeyMissing(f"A key is required: {credentials.hint}")
            key = self._keys.find(sent)
            if key is None:
                await self._check_rate(request)  # or keys could be found by trying
                raise KeyWrong("The key is not one of this service's keys")
            request.state.key = key
            request.state.context.caller = request.state.context.client = key.client
            request.state.context.requester = Requester(key.client, key.shared)
            if key.name is not None:
                request.state.context.account = Account(key.name, key.characters_per_month, self._usage)
            if not key.may_use(path := request.scope["path"]):
                raise RouteForbidden(f"The key {key.name} may not use {path}; available: {', '.join(key.routes)}")

        return check

    async def _check_site(self, request: Request) -> None:
        """A browser says which site a page is of. Without keys such a page may ask what its visitor may ask, though it
        cannot read the answer (CORS); with keys it has none. Raises CrossSite."""
        headers = request.headers
        if headers.get("sec-fetch-site") != "cross-site" or request.method == "GET":
            return
        if headers.get("origin") not in self._origins:
            raise CrossSite("A page of another site may not ask, unless ATTEND_ALLOWED_ORIGINS names its origin")

    def refuse_foreign_page(self, headers: Mapping[str, str]) -> None:
        """CORS does not hold a WebSocket back, so its origin must be that of this service, or an allowed one. Raises
        CrossSite."""
        origin = headers.get("origin")
        if origin is None or "*" in self._origins or origin in self._origins:
            return
        site = headers.get("sec-fetch-site")
        is_own = site == "same-origin" if site else origin.partition("://")[2] == headers.get("host")
        if not is_own:
            raise CrossSite("A page of another origin may not ask, unless ATTEND_ALLOWED_ORIGINS names it")

    async def _check_rate(self, request: Request) -> None:
        """A client is known by its key if the route needs one, else by its address. Raises RateLimited."""
        key: Key | None = getattr(request.state, "key", None)
        rate = (key and key.rate) or self._rate
        if rate is None or self._limiter is None:
            return
        client = key.client if key else request.state.context.client or "unknown"
        if (wait_s := await self._limiter.wait_s(client, rate)) > 0:
            raise RateLimited(f"Rate limit exceeded: {parse(rate)} for each client", retry_after_s=wait_s)
