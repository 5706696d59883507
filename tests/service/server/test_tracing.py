import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from packaging.requirements import Requirement

from service import __version__
from service.server import tracing
from service.server.tracing import announce_traces, close_traces, open_traces
from tests.collector import collector
from tests.running_service import ROOT, Service, running_service
from tests.waiting import wait_until

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@contextmanager
def service(artifacts: Path, folder: Path, **environment: str) -> Iterator[Service]:
    settings = {"ATTEND_ARTIFACTS": str(artifacts), "ATTEND_PROVIDER": "cpu", "ATTEND_DATA": str(folder / "data")}
    with running_service(folder / "log", settings | environment) as client:
        yield client


@pytest.mark.process
def test_a_service_sends_its_last_spans_before_it_ends(artifacts: Path, tmp_path: Path) -> None:
    with collector() as found:
        environment = {ENDPOINT: found.url, "OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_RESOURCE_ATTRIBUTES": "a=b"}
        with service(artifacts, tmp_path, **environment) as client:
            assert client.post("/translate", json={"text": ["a"]}).status_code == 200
            assert found.spans == []
        assert [span.name for span in found.server_spans()] == ["POST /translate"]
        assert found.resource["service.name"] == "attend"
        assert found.resource["service.version"] == __version__
        assert found.resource["a"] == "b"


@pytest.mark.process
def test_a_collector_that_never_answers_delays_nothing_and_is_told_once(artifacts: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            ENDPOINT: f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "0.1",
            "OTEL_BSP_SCHEDULE_DELAY": "10",
            "OTEL_BSP_MAX_QUEUE_SIZE": "8",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
        }
        with service(artifacts, tmp_path, **environment) as client:
            answers = [client.post("/translate", json={"text": ["a"]}) for _ in range(50)]
            wait_until(lambda: " opentelemetry." in client.log.read_text(encoding="utf-8"))
            assert {answer.status_code for answer in answers} == {200}
            assert max(answer.elapsed.total_seconds() for answer in answers) < 5
            stopped = time.monotonic()
        assert time.monotonic() - stopped < tracing.FLUSH_S + 10
    lines = [line for line in client.log.read_text(encoding="utf-8").splitlines() if "opentelemetry" in line]
    assert len(lines) == 1, lines


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, None),
        ({ENDPOINT: ""}, None),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({ENDPOINT: "http://c:4318"}, "traces are sent to c"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://user:secret@c/v1/traces"}, "traces are sent to c"),
        ({ENDPOINT: "c:4318"}, f"traces are not sent: {ENDPOINT} must be a URL such as http://collector:4318"),
        ({ENDPOINT: "http://[c"}, f"traces are not sent: {ENDPOINT} must be a URL such as http://collector:4318"),
        (
            {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "traces are not sent: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not grpc",
        ),
        (
            {ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "zipkin"},
            "traces are not sent: OTEL_TRACES_EXPORTER must be otlp or none, not zipkin",
        ),
    ],
)
def test_the_start_tells_where_traces_go(
    environment: Mapping[str, str], said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    announce_traces(environment)
    assert caplog.messages == ([said] if said else [])
    if not said or "not sent" in said:
        assert open_traces(environment) is None


def test_without_the_packages_the_start_tells_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(name: str) -> None:
        if "exporter" in name:
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(tracing, "find_spec", missing)
    announce_traces({ENDPOINT: "http://c:4318"})
    assert caplog.messages == [
        f"traces are not sent: {ENDPOINT} is set, but packages are missing; "
        "install them with: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
    ]
    assert open_traces({ENDPOINT: "http://c:4318"}) is None


def test_a_variable_that_the_sdk_cannot_read_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    with quiet_library():
        assert open_traces() is None
    assert "an OTEL_ variable is wrong" in caplog.text


@pytest.mark.parametrize("endpoint", [{}, {ENDPOINT: "http://collector"}])
def test_propagators_that_are_not_installed_are_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, endpoint: dict[str, str]
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.propagate")
    monkeypatch.setenv("OTEL_PROPAGATORS", "no-such-one")
    environment = {"OTEL_PROPAGATORS": "no-such-one"} | endpoint
    announce_traces(environment)
    assert environment == endpoint
    assert "OTEL_PROPAGATORS is ignored: Propagator no-such-one not found" in caplog.text


@pytest.mark.process
def test_a_variable_with_which_the_sdk_cannot_be_imported_is_told() -> None:
    code = "from service.server.tracing import open_traces; assert open_traces() is None"
    environment = {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-1", ENDPOINT: "http://collector"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **environment}, timeout=60, stderr=subprocess.PIPE
    )
    assert ended.returncode == 0
    assert b"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be" in ended.stderr


def test_the_log_has_no_headers_of_clients_and_no_keys(caplog: pytest.LogCaptureFixture) -> None:
    library = logging.getLogger("some-library")
    tracing._log_rarely(library)
    handler = next(one for one in library.handlers if isinstance(one, tracing._Rarely))
    for name in ("opentelemetry.trace.span", "opentelemetry.baggage.propagation", tracing.HEADERS_LOGGER):
        handler.handle(logging.LogRecord(name, logging.WARNING, __file__, 1, "wrong: %s", ("secret",), None))
    (line,) = caplog.messages
    assert line == "the OTEL_ variable of headers must be NAME=VALUE, separated by commas"


@pytest.mark.parametrize(("variable", "limit"), [(None, 256), ("10", 10)])
def test_texts_of_clients_are_cut_as_spans_wait_in_memory(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, limit: int
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    if variable is not None:
        monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", variable)
    with quiet_library():
        provider = open_traces()
        assert provider is not None
        span = provider.get_tracer("test").start_span("one", attributes={"url.path": "/" * 1000})
        assert isinstance(span, ReadableSpan)
        assert span.attributes == {"url.path": "/" * limit}
        provider.shutdown()


@pytest.mark.anyio
async def test_the_last_spans_of_a_dead_collector_are_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "FLUSH_S", 0.1)
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    with quiet_library():
        provider = open_traces()
        assert provider is not None
        provider.get_tracer("test").start_span("one").end()
        async with asyncio.timeout(3):
            await close_traces(provider)


@contextmanager
def quiet_library() -> Iterator[None]:
    """Leave the library's logger as it was."""
    library = logging.getLogger("opentelemetry")
    handlers, propagates = [*library.handlers], library.propagate
    try:
        yield
    finally:
        library.handlers, library.propagate = handlers, propagates


def test_the_packages_that_are_named_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {Requirement(one).name for one in extras["otel"]} == set(tracing.PACKAGES)
