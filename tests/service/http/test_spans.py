from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from service.base.contract import Answer
from service.http.spans import MAX_PHASES, spans_of_request
from service.schemas.timing import Timing
from tests.service.conftest import Serve, post

pytestmark = pytest.mark.anyio

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Spans(InMemorySpanExporter):
    """The spans of requests, and of the phases below them."""

    def __init__(self) -> None:
        super().__init__()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self))

    def of_server(self) -> list[ReadableSpan]:
        return [span for span in self.get_finished_spans() if span.kind == SpanKind.SERVER]

    def below(self, parent: ReadableSpan) -> Sequence[ReadableSpan]:
        ids = parent.context.span_id
        return [span for span in self.get_finished_spans() if span.parent and span.parent.span_id == ids]


@pytest.fixture
def spans() -> Spans:
    return Spans()


async def test_a_request_and_its_phases_become_spans_that_lie_inside_one_another(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider) as client:
        answer = await client.post(
            "/translate", json={"text": ["a b c", "b"]}, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}
        )
    usage = answer.json()["usage"]
    [span] = spans.of_server()
    assert span.name == "POST /translate"
    assert dict(span.attributes) == {  # type: ignore[arg-type]
        "url.scheme": "http",
        "url.path": "/translate",
        "http.request.method": "POST",
        "http.route": "/translate",
        "http.response.status_code": 200,
        "network.protocol.version": "1.1",
        "server.address": "attend",
        "server.port": 80,
        "attend.dialect": "native",
        "attend.request_id": answer.headers["X-Request-ID"],
        "attend.task": "translation",
        "attend.direction": "en-fr",
        "attend.texts": 2,
        "attend.characters": 6,
        "gen_ai.request.model": "tiny-en-fr",
        "gen_ai.usage.input_tokens": usage["source_tokens"],
        "gen_ai.usage.output_tokens": usage["target_tokens"],
    }
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT
    phases = spans.below(span)
    assert {phase.name for phase in phases} == {"queue", "tokenize", "encode", "decode"}
    for phase in phases:
        assert span.start_time <= phase.start_time <= phase.end_time <= span.end_time, phase.name  # type: ignore[operator]
        assert not phase.attributes


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/classify", {"text": ["a b"]}, {"attend.task": "classification", "gen_ai.request.model": "tiny-sentiment"}),
        ("/detect", {"text": ["a b"]}, {"attend.task": "detection"}),
        ("/embed", {"text": ["a"], "model": "tiny-en-fr"}, {"attend.task": "embedding"}),
        ("/libretranslate/translate", {"q": "a", "source": "en", "target": "fr"}, {"attend.dialect": "libretranslate"}),
        ("/translate", {"text": ["a b"], "source": "auto"}, {"attend.task": "translation"}),
    ],
)
async def test_every_task_tells_what_it_did(
    serve: Serve, spans: Spans, path: str, body: dict[str, Any], expected: dict[str, str]
) -> None:
    async with serve(traces=spans.provider) as client:
        await post(client, path, **body)
    [span] = spans.of_server()
    assert span.attributes is not None
    assert expected.items() <= dict(span.attributes).items()
    assert span.attributes["http.route"] == path


async def test_a_streamed_answer_is_told_when_it_ends(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider) as client:
        answer = await client.post(
            "/translate", json={"text": ["a b. c d. b"] * 3}, headers={"Accept": "application/x-ndjson"}
        )
    assert answer.status_code == 200
    [span] = spans.of_server()
    assert span.attributes is not None
    assert span.attributes["attend.texts"] == 3
    assert "decode" in {phase.name for phase in spans.below(span)}


async def test_an_error_is_told_by_its_code(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider) as client:
        await client.post("/translate", json={"text": ["a dog"], "timeout_s": 1e-9})
        await client.post("/translate", json={"text": []})
    late, refused = spans.of_server()
    assert late.attributes is not None
    assert refused.attributes is not None
    assert (late.attributes["http.response.status_code"], late.attributes["attend.error"]) == (504, "deadline_passed")
    assert refused.attributes["http.response.status_code"] == 422
    assert late.status.is_ok is False
    assert refused.status.is_ok


async def test_routes_of_fastapi_have_names_and_those_that_machines_ask_for_have_no_spans(
    serve: Serve, spans: Spans
) -> None:
    async with serve(traces=spans.provider, root_path="/base", allowed_origins=["https://a.org"]) as client:
        for path in ("/models", "/base/languages", "/health/ready", "/base/metrics", "/base?key=secret", "/nothing"):
            await client.get(path)
        preflight = {"Origin": "https://a.org", "Access-Control-Request-Method": "POST"}
        await client.options("/translate?key=secret", headers=preflight)
    assert [span.name for span in spans.of_server()] == ["GET /models", "GET /languages", "GET"]


async def test_no_span_has_a_text_a_key_or_a_query(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider, api_keys="hunter2") as client:
        key = {"Authorization": "Bearer hunter2", "baggage": "text=zebra"}
        await client.post("/translate?text=zebra", json={"text": ["zebra zebra"]}, headers=key)
        await client.post("/translate", json={"text": ["zebra"], "zebra": "hunter2"}, headers=key)
        await client.post("/translate?auth_key=hunter2", json={"text": [{"zebra": 1}]}, headers=key)
        await client.get("/languages?text=zebra", headers=key)
        await client.get("/libretranslate/download_file/1/hunter2/zebra.txt", headers=key)
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "/languages" in told
    assert "zebra" not in told
    assert "hunter2" not in told


async def test_a_trace_that_its_client_does_not_sample_has_no_spans(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider) as client:
        answer = await client.post(
            "/translate", json={"text": ["a"]}, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}
        )
    assert answer.status_code == 200
    assert spans.get_finished_spans() == ()


async def test_a_line_of_the_log_names_the_trace(serve: Serve, spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "service.http.identity")
    async with serve(traces=spans.provider, access_log=True) as client:
        await post(client, "/translate", text=["a"])
    [span] = spans.of_server()
    [record] = [record for record in caplog.records if hasattr(record, "trace_id")]
    assert record.trace_id == f"{span.context.trace_id:032x}"


async def test_a_request_has_a_bounded_number_of_spans(serve: Serve, spans: Spans) -> None:
    async with serve(traces=spans.provider) as client:
        headers = {"Accept": "application/x-ndjson"}
        await client.post("/translate", json={"text": ["a. b. c. d"] * 40}, headers=headers)
    [span] = spans.of_server()
    assert len(spans.below(span)) == MAX_PHASES


def test_no_phase_begins_before_its_request(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("test")
    with tracer.start_as_current_span("request", kind=SpanKind.SERVER):
        request = spans_of_request(tracer, {"fastapi.telemetry": object()})
        assert request is not None
        Timing(phases=request.phases).ran(Answer([], 100.0, 200.0, 1e-9))
        request.end()
    [parent] = spans.of_server()
    for phase in spans.below(parent):
        assert parent.start_time <= phase.start_time <= phase.end_time <= parent.end_time, phase.name  # type: ignore[operator]
    assert [phase.name for phase in spans.below(parent)] == ["queue", "encode", "decode"]


def test_phases_of_an_answer_follow_one_another() -> None:
    timing = Timing(phases=[])
    timing.ran(Answer([], 1.0, 2.0, 4.0))
    assert timing.phases is not None
    assert [(phase.name, round(phase.ended - phase.began)) for phase in timing.phases] == [
        ("queue", 1),
        ("encode", 2),
        ("decode", 4),
    ]
    assert timing.phases[0].ended == timing.phases[1].began
    assert timing.phases[1].ended == timing.phases[2].began
