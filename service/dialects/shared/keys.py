"""Places of keys in requests: headers, the query, and the schemes of `Authorization`."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import Request

from service.access.guards import Credentials, bearer


def credentials(
    hint: str,
    headers: Sequence[str] = (),
    query: Sequence[str] = (),
    schemes: Sequence[str] = ("bearer",),
    described: Callable[..., Any] = bearer,
) -> Credentials:
    """Return the place of a key that a request may have in one of several.

    Args:
        hint: for a client that sent no key.
        headers: names of headers. The first header that has a key counts.
        query: names of parameters in the query.
        schemes: of `Authorization`, in small letters. basic: the key is the name or the password. "": no scheme.
        described: the security scheme for OpenAPI.
    """

    async def key(request: Request) -> bytes | None:
        given = {name.lower(): value for name, value in request.query_params.items()}
        named = [request.headers.get(name, "").encode("latin-1") for name in headers]
        in_query = [given.get(name.lower(), "").encode(errors="surrogatepass") for name in query]
        authorization = request.headers.get("authorization", "").encode("latin-1")
        return next(filter(None, [*named, _authorized(authorization, schemes), *in_query]), None)

    return Credentials(key, hint, described)


def _authorized(authorization: bytes, schemes: Sequence[str]) -> bytes:
    scheme, _, credential = authorization.strip().partition(b" ")
    if not credential:
        return scheme if "" in schemes else b""
    if scheme.lower().decode("latin-1") not in schemes:
        return b""
    if scheme.lower() != b"basic":
        return credential.strip()
    try:
        name, _, password = b64decode(credential, validate=True).partition(b":")
    except ValueError:
        return b""
    return name or password


TOKEN = credentials(
    "Authorization: Bearer <key>, X-API-Token: <key> or ?token=<key>",
    headers=("X-API-Token",),
    query=("token", "api_token"),
    schemes=("bearer", "deepl-auth-key", ""),
)
"""Where add-ons of browsers and small apps have their keys."""
