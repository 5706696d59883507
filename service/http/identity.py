"""The outer layer of the middleware: request ids, timing, spans, metrics, and the log."""

import logging
from time import perf_counter

from opentelemetry.trace import Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.base.errors import InferenceFailed
from service.base.log import escaped
from service.base.metrics import Metrics
from service.http.dialect import Dialects
from service.http.exchange import Exchange

logger = logging.getLogger(__name__)

OPERATIONS = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Paths that machines request all the time. At the level INFO their lines would hide the others."""
UNMATCHED = "unmatched"
"""The route label in metrics if no route matches. Only the log has the path."""
UNMATCHED_PAUSE_S = 1.0
"""Seconds between logged paths without a route, if there is no access log. One line shows the wrong prefix of a proxy,
and strangers may try many paths."""


class Identity:
    """Gives every request an id and a timing, counts it once, and logs it if the setting says so.

    Args:
        dialects: the dialects enabled on this server.
        access_log: whether to log a line for each request; otherwise only some requests without a route are logged.
        tracer: makes the spans of requests that are traced; None if none is.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, dialects: Dialects, access_log: bool, tracer: Tracer | None = None
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._dialects = dialects
        self._access_log = access_log
        self._tracer = tracer
        self._unmatched_logged_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        method = scope["method"]
        if method == "HEAD":  # the server then sends no body
            scope = {**scope, "method": "GET"}
        exchange = Exchange(scope, self._dialects.of(scope["path"]), self._tracer)

        async def send_with_ids(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message.get("headers", ()), *exchange.headers_of_answer()]
            elif exchange.spans is not None and not message.get("more_body", False):
                exchange.spans.end()  # the server's span ends when the last part is sent
            await send(message)

        try:
            await self._app(scope, receive, send_with_ids)
        finally:
            if exchange.spans is not None:
                exchange.spans.end()
            routed: str = getattr(scope.get("route"), "path_format", UNMATCHED)
            self._record(exchange, method, exchange.path or routed, scope["path"], began)

    def _record(self, exchange: Exchange, method: str, route: str, path: str, began: float) -> None:
        status = exchange.status or InferenceFailed.status
        seconds = perf_counter() - began
        self._metrics.answered(exchange.dialect.name, route, status, seconds)
        if (account := exchange.context.account) is not None:
            self._metrics.asked(account.name, account.spent)
        is_unmatched = route == UNMATCHED and status >= 400
        if self._access_log or (is_unmatched and self._may_log_unmatched(began)):
            level = logging.DEBUG if route in OPERATIONS and status < 400 else logging.INFO
            _log_access(level, exchange, method, escaped(path) if route == UNMATCHED else route, status, seconds)

    def _may_log_unmatched(self, now: float) -> bool:
        if now < self._unmatched_logged_at + UNMATCHED_PAUSE_S:
            return False
        self._unmatched_logged_at = now
        return True


def _log_access(level: int, exchange: Exchange, method: str, path: str, status: int, seconds: float) -> None:
    fields = exchange.ids | {"method": method, "path": path, "status": status, "seconds": round(seconds, 6)}
    who = " ".join(str(fields[name]) for name in ("request_id", "key") if name in fields)
    logger.log(level, "%s %s %d %.1f ms %s", method, path, status, seconds * 1000, who, extra=fields)
