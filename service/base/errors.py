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
        ├── CrossSite                   403  cross_site
        ├── UnknownModel                404  unknown_model
        ├── UnknownGlossary             404  unknown_glossary
        ├── UnknownDocument             404  unknown_document
        ├── UnknownPath                 404  unknown_path
        ├── MethodNotAllowed            405  method_not_allowed
        ├── BodyTooSlow                 408  body_timeout
        ├── ReloadRefused               409  reload_refused
        ├── DocumentNotReady            409  document_not_ready
        ├── TooLarge                    413  content_too_large
        │   └── TextTooLong             413  text_too_long
        ├── UnsupportedMediaType        415  unsupported_media_type
        │   └── UnsupportedFileType     415  unsupported_file_type
        ├── UnprocessableRequest        422  without a code: only dialects raise it, whose answers have no codes
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
        │   ├── InvalidDocument         422  invalid_document
        │   └── DocumentFailed          422  document_failed
        ├── QuotaExceeded               429  quota_exceeded
        ├── ClientGone                  499  without a code: counted, but never sent, as nobody is left to read it
        ├── InferenceFailed             500  internal_error
        ├── DeadlinePassed              504  deadline_passed
        └── RetryLater                  its answer has Retry-After
            ├── RateLimited             429  rate_limited
            └── Unavailable
                ├── QueueFull           503  queue_full
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

    @property
    def headers(self) -> dict[str, str]:
        return {}


class BadRequest(RequestError):
    """The body cannot be read as what it should be."""

    status, code = 400, "malformed_body"


class KeyMissing(RequestError):
    status, code = 401, "key_missing"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class KeyWrong(RequestError):
    status, code = 403, "key_wrong"


class RouteForbidden(RequestError):
    """The key may not use this route."""

    status, code = 403, "route_forbidden"


class CrossSite(RequestError):
    """A browser sent it for a page of another site, to a service that anybody may use without a key."""

    status, code = 403, "cross_site"


class UnknownModel(RequestError):
    """No model has this name, or the model has another task."""

    status, code = 404, "unknown_model"


class UnknownGlossary(RequestError):
    """No glossary has this id, or it has no such dictionary."""

    status, code = 404, "unknown_glossary"


class UnknownDocument(RequestError):
    """No document has this id and key, or the document was deleted."""

    status, code = 404, "unknown_document"


class UnknownPath(RequestError):
    status, code = 404, "unknown_path"


class MethodNotAllowed(RequestError):
    status, code = 405, "method_not_allowed"

    def __init__(self, detail: str, allowed: str) -> None:
        super().__init__(detail)
        self._allowed = allowed

    @property
    def headers(self) -> dict[str, str]:
        return {"Allow": self._allowed}


class BodyTooSlow(RequestError):
    status, code = 408, "body_timeout"


class ReloadRefused(RequestError):
    """The models stay as they are."""

    status, code = 409, "reload_refused"


class DocumentNotReady(RequestError):
    """The document is not translated yet."""

    status, code = 409, "document_not_ready"


class TooLarge(RequestError):
    """The body, or a file in it, is larger than allowed."""

    status, code = 413, "content_too_large"


class TextTooLong(TooLarge):
    code = "text_too_long"


class UnsupportedMediaType(RequestError):
    """The headers of the body name a type, charset or encoding that the route does not read."""

    status, code = 415, "unsupported_media_type"


class UnsupportedFileType(UnsupportedMediaType):
    """The file is of a kind that is not translated here."""

    code = "unsupported_file_type"


class UnprocessableRequest(RequestError):
    """The request is well-formed, but cannot be done."""

    status = 422


class InvalidFields(UnprocessableRequest):
    """At least one field has a value that is not allowed."""

    code = "invalid_fields"

    def __init__(self, fields: Sequence[tuple[Sequence[str | int], str]]) -> None:
        loc, message = fields[0]
        first = f"`{'.'.join(map(str, loc))}` {message}"
        super().__init__(first if len(fields) == 1 else f"{len(fields)} fields are invalid; the first: {first}")
        self.fields = fields


class TargetRequired(UnprocessableRequest):
    """Several target languages are possible."""

    code = "target_required"


class SourceRequired(UnprocessableRequest):
    """Several source languages are possible, and none is detected."""

    code = "source_required"


class ModelRequired(UnprocessableRequest):
    """Several models are possible."""

    code = "model_required"


class UnsupportedLanguagePair(UnprocessableRequest):
    """No model translates between these languages."""

    code = "unsupported_language_pair"


class LanguageNotDetected(UnprocessableRequest):
    """A text seems to be in a language that is not translated into the target."""

    code = "language_not_detected"


class UnsupportedOption(UnprocessableRequest):
    """The format, the model or the route does not have an option that the request asks for."""

    code = "unsupported_option"


class EmptyText(UnprocessableRequest):
    """A text has nothing to read."""

    code = "empty_text"


class TooManyTexts(UnprocessableRequest):
    """The request has too many texts or sentences."""

    code = "too_many_texts"


class LimitExceeded(UnprocessableRequest):
    """The request or its answer has too much of something else."""

    code = "limit_exceeded"


class InvalidGlossary(UnprocessableRequest):
    """The entries, languages or number of dictionaries of a glossary are not allowed."""

    code = "invalid_glossary"


class GlossaryMismatch(UnprocessableRequest):
    """The glossary has no dictionary for the languages of the translation."""

    code = "glossary_mismatch"


class InvalidDocument(UnprocessableRequest):
    """The file is damaged, or is not what its name says."""

    code = "invalid_document"


class DocumentFailed(UnprocessableRequest):
    """The document could not be translated."""

    code = "document_failed"


class QuotaExceeded(RequestError):
    """The key has used its characters of this month. Without Retry-After: some clients would wait for weeks."""

    status, code = 429, "quota_exceeded"


class ClientGone(RequestError):
    status = 499


class InferenceFailed(RequestError):
    status, code = 500, "internal_error"


def unexpected(request_id: str) -> InferenceFailed:
    """Return the answer to an error that nobody expected. It tells nothing of the cause."""
    return InferenceFailed(f"Unexpected error; the log has it under request id {request_id}")


class DeadlinePassed(RequestError):
    status, code = 504, "deadline_passed"


class RetryLater(RequestError):
    """A request that may succeed when it is sent again after `retry_after_s`."""

    def __init__(self, detail: str, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


class RateLimited(RetryLater):
    status, code = 429, "rate_limited"


class Unavailable(RetryLater):
    """Metrics count these refusals under their codes."""

    status = 503


class QueueFull(Unavailable):
    code = "queue_full"

    state: Any = None
    """The state of the engine that refused (`EngineState`), where there is one."""


class Starting(Unavailable):
    code = "starting"


class Draining(Unavailable):
    code = "draining"


class Broken(Unavailable):
    code = "broken"


class Silent(Broken):
    """A worker has not reported: it hangs and will be replaced, or the machine was suspended."""


class WorkerEnded(Broken):
    """The worker process died that computed for this request, perhaps because of it."""


class NotStored(Unavailable):
    """A file or a record cannot be read or written now: no room, no descriptor, or a database that is down."""

    code = "not_stored"


class NotReady(Unavailable):
    """The answer of health checks while a model cannot be used."""

    code = "not_ready"
