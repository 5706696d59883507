"""Which pages of other origins may read answers in a browser (CORS)."""

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.dialect import Dialects

ASKED = ["Authorization", "Content-Type", "traceparent", "X-Request-ID"]
TOLD = ["Retry-After", "Server-Timing", "traceparent", "X-Request-ID"]


class Origins:
    """Those that are configured, and any below the paths of dialects that have it so.

    Args:
        allowed: those that are configured.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str], dialects: Dialects) -> None:
        self._app = _read_from(allowed, app, ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]) if allowed else app
        self._open_to_all = _read_from(["*"], app, ["*"])
        self._paths = dialects.open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] == "http" and scope["path"].startswith(self._paths)
        await (self._open_to_all if is_open else self._app)(scope, receive, send)


def _read_from(origins: Sequence[str], app: ASGIApp, methods: Sequence[str]) -> CORSMiddleware:
    return CORSMiddleware(app, origins, methods, ASKED, expose_headers=TOLD)
