"""One request and its answer, for the log, metrics and traces."""

import random
import re
from collections.abc import Iterator

from opentelemetry.trace import Tracer
from starlette.types import Scope

from service.access.addresses import client_at
from service.http.dialect import AnyDialect
from service.http.spans import spans_of_request
from service.http.traces import TRACE_ID, traceparent_of
from service.schemas.timing import Timing
from service.tasks.context import Context

REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Exchange:
    """What both layers of the middleware know of a request.

    Attributes:
        headers: the first header of each name.
        context: what the tasks get.
        spans: the spans of the request, if it is traced.
        status: the status of the answer, once it has begun, or if the client left before; None until then.
        path: the path of the route, if it is known without routing.
    """

    def __init__(self, scope: Scope, dialect: AnyDialect, tracer: Tracer | None) -> None:
        self.dialect = dialect
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        given_id = self.headers.get(b"x-request-id", b"")
        self.request_id = given_id.decode() if REQUEST_ID.fullmatch(given_id) else f"{random.getrandbits(128):032x}"
        self._traceparent = traceparent_of(scope["headers"])
        self._timing = Timing()
        client = client_at(scope["client"][0]) if scope.get("client") else None
        self.context = Context(self._timing, client=client)
        self.spans = spans_of_request(tracer, scope) if tracer is not None else None
        if self.spans is not None:
            self._timing.phases, self.context.attributes = self.spans.phases, self.spans.attributes
            self.spans.attributes |= {"attend.dialect": dialect.name, "attend.request_id": self.request_id}
        self.status: int | None = None
        self.path: str | None = None
        scope.setdefault("state", {}).update(exchange=self, request_id=self.request_id, context=self.context)

    @property
    def ids(self) -> dict[str, object]:
        """The ids of the request and the name of its key, as fields of a log line."""
        trace_id = self._traceparent[TRACE_ID] if self._traceparent else self.spans and self.spans.trace_id
        key = self.context.account and self.context.account.name
        further = {"trace_id": trace_id, "key": key}
        return {"request_id": self.request_id, **{name: value for name, value in further.items() if value}}

    def headers_of_answer(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the headers that tell a client the ids of its request, and where the time went."""
        yield b"x-request-id", self.request_id.encode()
        yield b"server-timing", self._timing.header().encode()
        if self._traceparent:
            yield b"traceparent", self._traceparent.encode()
