"""What a trace tells of one request: attributes of the server's span, and a span below it for each phase.

FastAPI makes the server's span. The phases are told after the fact, from times that are measured anyway. No span has a
text, a key or a query.
"""

from collections.abc import Mapping
from time import perf_counter, perf_counter_ns, time_ns
from typing import Any

from fastapi.telemetry import TelemetryConfig
from opentelemetry.trace import Span, Tracer, TracerProvider, format_trace_id, get_current_span, set_span_in_context

from service.schemas.timing import Phase

OFF: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}

UNTRACED = frozenset({"", "/health/live", "/health/ready", "/metrics"})
"""Paths that machines request all the time, and the root path itself, which is redirected."""
MAX_PHASES = 64
"""Most spans below the server's. A streamed answer may have thousands of phases."""


def telemetry(traces: TracerProvider | None, root_path: str) -> TelemetryConfig:
    """Return FastAPI's telemetry: spans of requests if there is a provider, and nothing else. Its log has texts."""
    if traces is None:
        return OFF
    return OFF | {
        "tracing": True,
        "tracer_provider": traces,
        "operation_spans": False,
        "exclude": lambda scope: scope["method"] == "OPTIONS" or scope["path"].removeprefix(root_path) in UNTRACED,
    }


class RequestSpans:
    """The spans of the request that is being answered. `tracer` makes the spans of its phases; the router adds the
    route to `scope`."""

    def __init__(self, tracer: Tracer, span: Span, scope: Mapping[str, Any]) -> None:
        self._tracer = tracer
        self._scope = scope
        self._span = span
        self._began = perf_counter()
        self.phases: list[Phase] = []
        self.attributes: dict[str, Any] = {}
        """Attributes of the server's span, from whoever works on the request."""

    @property
    def trace_id(self) -> str:
        return format_trace_id(self._span.get_span_context().trace_id)

    def found_route(self, method: str, route: str) -> None:
        """Name the route of a request that FastAPI's router does not see."""
        self._span.update_name(f"{method} {route}")
        self._span.set_attribute("http.route", route)

    def end(self) -> None:
        """Tell what is known, before the server's span ends. Afterwards this has no effect."""
        if not self._span.is_recording():
            return
        self._span.set_attributes(self.attributes)
        route = getattr(self._scope.get("route"), "path_format", "")
        if "{" in route:  # the path may have keys and names of documents
            self._span.set_attribute("url.path", route)
        context = set_span_in_context(self._span)
        to_epoch = time_ns() - perf_counter_ns()
        for name, began, ended in self.phases[:MAX_PHASES]:
            # Of several workers the longest times count, which may add up to more than the request has taken.
            start, end = (to_epoch + round(max(at, self._began) * 1e9) for at in (began, ended))
            self._tracer.start_span(name, context, start_time=start).end(end)
        self.phases.clear()


def spans_of_request(tracer: Tracer, scope: Mapping[str, Any]) -> RequestSpans | None:
    """Return the spans of the request that the current task answers; None if it is not traced."""
    span = get_current_span()
    if scope.get("fastapi.telemetry") is None or not span.is_recording():
        return None
    if scope.get("query_string"):  # it may have texts and keys
        span.set_attribute("url.query", "REDACTED")
    return RequestSpans(tracer, span, scope)
