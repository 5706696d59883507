"""A collector of traces: it receives OTLP over HTTP, and keeps the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """The spans that came, and the attributes of the service that sent them."""

    url: str
    spans: list[Span]
    resource: dict[str, Any]
    bodies: list[bytes]

    def server_spans(self) -> list[Span]:
        return [span for span in self.spans if span.kind == Span.SPAN_KIND_SERVER]

    def below(self, parent: Span) -> list[Span]:
        return [span for span in self.spans if span.parent_span_id == parent.span_id]


def attributes(values: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""

    def value(item: KeyValue) -> Any:
        kind = item.value.WhichOneof("value")
        return kind and getattr(item.value, kind)

    return {item.key: value(item) for item in values.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a port that the system chose."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                found.resource.update(attributes(sent.resource))
                found.spans.extend(span for scope in sent.scope_spans for span in scope.spans)
            found.bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Collector(f"http://127.0.0.1:{server.server_port}", [], {}, [])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
