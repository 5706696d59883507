"""Traces, sent to a collector by OpenTelemetry if its standard variables name one. Without them nothing is imported.

The SDK reads all other OTEL_ variables itself: headers, timeouts, sampling, the service's name.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service import __version__
from service.base.log import LOG_INTERVAL_S
from service.front.suppliers import in_daemon_thread

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = logging.getLogger(__name__)

ENDPOINTS = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOLS = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
PROTOCOL = "http/protobuf"
PACKAGES = "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"
"""Those of the extra `otel`."""
MAX_ATTRIBUTE_CHARACTERS = 256
"""Limit of an attribute, unless OTEL_ variables have another: clients choose paths, and spans wait in memory."""
FLUSH_S = 2.0
"""Time at the end of the service in which the last spans are sent."""
HEADERS_LOGGER = "opentelemetry.util.re"
"""The logger of OpenTelemetry that names the whole variable of headers, which has keys."""
LOGGERS = "opentelemetry.exporter.", "opentelemetry.sdk.", HEADERS_LOGGER
"""Loggers of which this process shows lines. Others tell what is wrong with the headers of clients, which would hide
what is wrong here."""


def announce_traces(environment: MutableMapping[str, str] = os.environ) -> None:
    """Log where traces are sent, or why they are not although an endpoint is set. Propagators that are not installed
    are removed from the environment: OpenTelemetry could not be imported with them."""
    if "OTEL_PROPAGATORS" in environment:
        try:
            import_module("opentelemetry.propagate")
        except ValueError as error:
            logger.warning("OTEL_PROPAGATORS is ignored: %s", error)
            del environment["OTEL_PROPAGATORS"]
    if (name := _endpoint_variable(environment)) is None:
        return
    if (obstacle := _obstacle(name, environment)) is not None:
        logger.warning("traces are not sent: %s", obstacle)
    else:
        logger.info("traces are sent to %s", urlsplit(environment[name]).hostname)


def open_traces(environment: Mapping[str, str] = os.environ) -> "TracerProvider | None":
    """Return a provider that makes and sends spans, in a thread of its own; None if no endpoint is set, or nothing can
    be sent."""
    name = _endpoint_variable(environment)
    if name is None or _obstacle(name, environment) is not None:
        return None
    _log_rarely(logging.getLogger("opentelemetry"))
    ours = {"service.name": "attend", "service.version": __version__}
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        limits = SpanLimits()
        if limits.max_span_attribute_length is None:
            limits.max_span_attribute_length = MAX_ATTRIBUTE_CHARACTERS
        provider = TracerProvider(
            resource=Resource.create(ours | dict(OTELResourceDetector().detect().attributes)),
            span_limits=limits,
            shutdown_on_exit=False,
        )
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        logger.warning("traces are not sent: an OTEL_ variable is wrong: %s", error)
        return None
    return provider


async def close_traces(provider: "TracerProvider") -> None:
    """Send the remaining spans, as long as the collector takes them in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(FLUSH_S):
            await in_daemon_thread(provider.shutdown)


def _endpoint_variable(environment: Mapping[str, str]) -> str | None:
    """Return the variable that names the endpoint; None if traces are not wanted."""
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or environment.get("OTEL_TRACES_EXPORTER", "").strip() == "none":
        return None
    return next((name for name in ENDPOINTS if environment.get(name)), None)


def _obstacle(name: str, environment: Mapping[str, str]) -> str | None:
    """Return why spans cannot be sent to this variable's endpoint; None if they can."""
    protocol = next((environment[variable] for variable in PROTOCOLS if environment.get(variable)), PROTOCOL)
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    try:
        url = urlsplit(environment[name])
        is_url = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        return f"{name} must be a URL such as http://collector:4318"
    if protocol != PROTOCOL:
        return f"OTEL_EXPORTER_OTLP_PROTOCOL must be {PROTOCOL}, not {protocol}"
    if exporter != "otlp":
        return f"OTEL_TRACES_EXPORTER must be otlp or none, not {exporter}"
    if not _is_installed():
        return f"{name} is set, but packages are missing; install them with: pip install {' '.join(PACKAGES)}"
    return None


def _is_installed() -> bool:
    try:
        return all(find_spec(name) for name in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # the package that would contain it is missing
        return False


def _log_rarely(library: logging.Logger) -> None:
    if not any(isinstance(handler, _Rarely) for handler in library.handlers):
        library.addHandler(_Rarely())
        library.propagate = False


class _Rarely(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._may_log_at = -math.inf

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == HEADERS_LOGGER:
            record.msg, record.args = "the OTEL_ variable of headers must be NAME=VALUE, separated by commas", ()
        if record.name.startswith(LOGGERS) and time.monotonic() >= self._may_log_at:
            self._may_log_at = time.monotonic() + LOG_INTERVAL_S
            logging.getLogger().handle(record)
