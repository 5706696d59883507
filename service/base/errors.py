"""Every error that this package raises on purpose.

A `RequestError` has the status of its answer, and the code by which programs tell it from others. docs/errors.md
describes each code.

    AttendError
    ├── StartRefused                    the process exits with this sentence
    │   ├── ArtifactRefused
    │   └── ProviderUnavailable
    └── RequestError                    answered as application/problem+json (http/problems.py), or as a dialect does
        ├── BadRequest                  400  malformed_body
        ├── KeyMissing                  401  key_missing
        ├── KeyWrong                    403  key_wrong
        ├── RouteForbidden              403  route_forbidden
        ├── NotOwner                    403  not_owner
        ├── CrossSite                   403  cross_site
        ├── UnknownModel                404  unknown_model
        ├── UnknownGlossary             404  unknown_glossary
        ├── UnknownMemory               404  unknown_memory
        ├── UnknownDocument             404  unknown_document
        ├── UnknownPath                 404  unknown_path
        ├── MethodNotAllowed            405  method_not_allowed
        ├── BodyTooSlow                 408  body_timeout
        ├── SocketIdle                  408  socket_idle
        ├── ReloadRefused               409  reload_refused
        ├── DocumentNotReady            409  document_not_ready
        ├── TooLarge                    413  content_too_large
        │   └── TextTooLong             413  text_too_long
        ├── UnsupportedMediaType        415  unsupported_media_type
        │   └── UnsupportedFileType     415  unsupported_file_type
        ├── UnprocessableRequest        422  no code: raised only by dialects, whose answers carry none
        │   ├── InvalidFields           422  invalid_fields
        │   ├── TargetRequired          422  target_required
        │   ├── SourceRequired          422  source_required
        │   ├── ModelRequired           422  model_required
        │   ├── UnsupportedLanguagePair 422  unsupported_language_pair
        │   ├── LanguageNotDetected     422  language_not_detected
        │   ├── UnsupportedOption       422  unsupported_option
        │   ├── EmptyText               422  empty_text
        │   ├── TooManyTexts            422  too_many_texts
        │   ├── LimitExceeded           422  limit_exceeded
        │   ├── InvalidGlossary         422  invalid_glossary
        │   ├── GlossaryMismatch        422  glossary_mismatch
        │   ├── InvalidMemory           422  invalid_memory
        │   ├── MemoryMismatch          422  memory_mismatch
        │   ├── InvalidDocument         422  invalid_document
        │   ├── DocumentFailed          422  document_failed
        │   └── KeyReused               422  idempotency_key_reused
        ├── QuotaExceeded               429  quota_exceeded
        ├── ClientGone                  499  no code: counted, but never sent, as nobody is left to read it
        ├── InferenceFailed             500  internal_error
        ├── DeadlinePassed              504  deadline_passed
        └── RetryLater                  its answer has Retry-After
            ├── RateLimited             429  rate_limited
            └── Unavailable
                ├── QueueFull           503  queue_full
                ├── TooManySockets      503  too_many_sockets
                ├── Starting            503  starting
                ├── Draining            503  draining
                ├── Broken              503  broken
                │   ├── Silent
                │   └── WorkerEnded
                ├── NotStored           503  not_stored
                └── NotReady            503  not_ready

A message names the field in back-ticks, says what is wrong, and what is allowed. It begins with a capital letter or a
back-tick, and has no full stop at its end.
"""

# ruff: noqa: N818  Each name says what happened, and reads better without "Error" behind it.

from collections.abc import Sequence
from typing import Any, ClassVar


class AttendError(Exception):
    """Base of all errors below."""


class StartRefused(AttendError):
    """The service cannot start as configured."""


class ArtifactRefused(StartRefused):
    """An artifact directory is missing, is no artifact, or differs from its manifest."""


class ProviderUnavailable(StartRefused):
    """The configured execution provider cannot be used on this machine."""


class RequestError(AttendError):
    """A request that is answered with a problem instead of a result."""

    status: ClassVar[int]
    code: ClassVar[str]
    """What programs compare. It never changes, while messages may."""

    fields: Sequence[tuple[Sequence[str | int], str]] = ()
    """Each invalid field: its path in the request, and a message that begins with a verb, such as "must be ..."."""

    def __init_subclass__(cls, status: int | None = None, code: str | None = None) -> None:
        if status is not None:
            cls.status = status
        if code is not None:
            cls.code = code

    @property
    def headers(self) -> dict[str, str]:
        return {}


class BadRequest(RequestError, status=400, code="malformed_body"):
    """The body cannot be read as what it should be."""


class KeyMissing(RequestError, status=401, code="key_missing"):
    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class KeyWrong(RequestError, status=403, code="key_wrong"):
    """The key is not one of this service's keys."""


class RouteForbidden(RequestError, status=403, code="route_forbidden"):
    """The key may not use this route."""


class NotOwner(RequestError, status=403, code="not_owner"):
    """What the request would change belongs to another key."""


class CrossSite(RequestError, status=403, code="cross_site"):
    """A browser sent it for a page of another site, to a service that anybody may use without a key."""


class UnknownModel(RequestError, status=404, code="unknown_model"):
    """No model has this name, or the model has another task."""


class UnknownGlossary(RequestError, status=404, code="unknown_glossary"):
    """No glossary has this id, or it has no such dictionary."""


class UnknownMemory(RequestError, status=404, code="unknown_memory"):
    """No memory has this id, or it has no such segment."""


class UnknownDocument(RequestError, status=404, code="unknown_document"):
    """No document has this id and key, or the document was deleted."""


class UnknownPath(RequestError, status=404, code="unknown_path"):
    """Nothing is at this path."""


class MethodNotAllowed(RequestError, status=405, code="method_not_allowed"):
    def __init__(self, detail: str, allowed: str) -> None:
        super().__init__(detail)
        self._allowed = allowed

    @property
    def headers(self) -> dict[str, str]:
        return {"Allow": self._allowed}


class BodyTooSlow(RequestError, status=408, code="body_timeout"):
    """The body did not arrive in time."""


class SocketIdle(RequestError, status=408, code="socket_idle"):
    """Nothing came on a WebSocket for a long time."""


class ReloadRefused(RequestError, status=409, code="reload_refused"):
    """The models stay as they are."""


class DocumentNotReady(RequestError, status=409, code="document_not_ready"):
    """The document is not translated yet."""


class TooLarge(RequestError, status=413, code="content_too_large"):
    """The body, or a file in it, is larger than allowed."""


class TextTooLong(TooLarge, code="text_too_long"):
    """A text is longer than its limit."""


class UnsupportedMediaType(RequestError, status=415, code="unsupported_media_type"):
    """The headers of the body name a type, charset or encoding that the route does not read."""


class UnsupportedFileType(UnsupportedMediaType, code="unsupported_file_type"):
    """The file is of a kind that is not translated here."""


class UnprocessableRequest(RequestError, status=422):
    """The request is well-formed, but cannot be done."""


class InvalidFields(UnprocessableRequest, code="invalid_fields"):
    """At least one field has a value that is not allowed."""

    def __init__(self, fields: Sequence[tuple[Sequence[str | int], str]]) -> None:
        loc, message = fields[0]
        first = f"`{'.'.join(map(str, loc))}` {message}"
        super().__init__(first if len(fields) == 1 else f"{len(fields)} fields are invalid; the first: {first}")
        self.fields = fields


class TargetRequired(UnprocessableRequest, code="target_required"):
    """Several target languages are possible."""


class SourceRequired(UnprocessableRequest, code="source_required"):
    """Several source languages are possible, and none is detected."""


class ModelRequired(UnprocessableRequest, code="model_required"):
    """Several models are possible."""


class UnsupportedLanguagePair(UnprocessableRequest, code="unsupported_language_pair"):
    """No model translates between these languages."""


class LanguageNotDetected(UnprocessableRequest, code="language_not_detected"):
    """A text seems to be in a language that is not translated into the target."""


class UnsupportedOption(UnprocessableRequest, code="unsupported_option"):
    """The format, the model or the route does not have an option that the request asks for."""


class EmptyText(UnprocessableRequest, code="empty_text"):
    """A text has nothing to read."""


class TooManyTexts(UnprocessableRequest, code="too_many_texts"):
    """The request has too many texts or sentences."""


class LimitExceeded(UnprocessableRequest, code="limit_exceeded"):
    """The request or its answer has too much of something else."""


class InvalidGlossary(UnprocessableRequest, code="invalid_glossary"):
    """The entries, languages or number of dictionaries of a glossary are not allowed."""


class GlossaryMismatch(UnprocessableRequest, code="glossary_mismatch"):
    """The glossary has no dictionary for the languages of the translation."""


class InvalidMemory(UnprocessableRequest, code="invalid_memory"):
    """The languages or the segments of a memory are not allowed, or its file cannot be read."""


class MemoryMismatch(UnprocessableRequest, code="memory_mismatch"):
    """The memory is of other languages than the translation."""


class InvalidDocument(UnprocessableRequest, code="invalid_document"):
    """The file is damaged, or is not what its name says."""


class DocumentFailed(UnprocessableRequest, code="document_failed"):
    """The document could not be translated."""


class KeyReused(UnprocessableRequest, code="idempotency_key_reused"):
    """The request's Idempotency-Key was sent before, with something else."""


class QuotaExceeded(RequestError, status=429, code="quota_exceeded"):
    """The key has used its characters of this month. Without Retry-After: some clients would wait for weeks."""


class ClientGone(RequestError, status=499):
    """The client left before it was answered."""


class InferenceFailed(RequestError, status=500, code="internal_error"):
    """A forward pass failed, or there is a bug."""


def unexpected(request_id: str) -> InferenceFailed:
    """Return the answer to an error that nobody expected. It tells nothing of the cause."""
    return InferenceFailed(f"Unexpected error; the log has it under request id {request_id}")


class DeadlinePassed(RequestError, status=504, code="deadline_passed"):
    """The request was not answered by its deadline."""


class RetryLater(RequestError):
    """A request that may succeed when it is sent again after `retry_after_s`."""

    def __init__(self, detail: str, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


class RateLimited(RetryLater, status=429, code="rate_limited"):
    """The client has sent more requests than its rate allows."""


class Unavailable(RetryLater, status=503):
    """Metrics count these refusals under their codes."""


class QueueFull(Unavailable, code="queue_full"):
    state: Any = None
    """The state of the engine that refused (`EngineState`), where there is one."""


class TooManySockets(Unavailable, code="too_many_sockets"):
    """The server has as many WebSockets as it takes."""


class Starting(Unavailable, code="starting"):
    """The models are being loaded."""


class Draining(Unavailable, code="draining"):
    """The service is about to stop."""


class Broken(Unavailable, code="broken"):
    """A model or a worker does not answer."""


class Silent(Broken):
    """A worker has not reported: it hangs and will be replaced, or the machine was suspended."""


class WorkerEnded(Broken):
    """The worker process died that computed for this request, perhaps because of it."""


class NotStored(Unavailable, code="not_stored"):
    """A file or a record cannot be read or written now: no room, no descriptor, or a database that is down."""


class NotReady(Unavailable, code="not_ready"):
    """The answer of health checks while a model cannot be used."""
