"""Let pages of other origins read answers in a browser (CORS)."""

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.dialect import Dialects

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
KEY_HEADERS = ["Authorization", "X-API-Token", "X-Goog-Api-Key"]
REQUEST_HEADERS = [*KEY_HEADERS, "Content-Type", "traceparent", "X-Request-ID"]
"""Headers that a page may send."""
RESPONSE_HEADERS = ["Retry-After", "Server-Timing", "traceparent", "X-Request-ID"]
"""Headers that a page may read."""


class Origins:
    """Middleware for browsers: pages of the configured origins may read all answers, and pages of any origin the
    answers of dialects that are open to all."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str], dialects: Dialects) -> None:
        self._app = _readable_by(allowed, app, METHODS) if allowed else app
        self._open_app = _readable_by(["*"], app, ["*"])
        self._open_paths = dialects.open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] == "http" and f"{scope['path']}/".startswith(self._open_paths)
        await (self._open_app if is_open else self._app)(scope, receive, send)


def _readable_by(origins: Sequence[str], app: ASGIApp, methods: Sequence[str]) -> CORSMiddleware:
    return CORSMiddleware(app, origins, methods, REQUEST_HEADERS, expose_headers=RESPONSE_HEADERS)
