"""Every error that this package raises on purpose, and the HTTP status of those that answer a request.

    AttendError
    ├── StartRefused                the process exits with this sentence
    │   ├── ArtifactRefused
    │   └── ProviderUnavailable
    └── RequestError                answered as application/problem+json (http/problems.py) or as a dialect has it
        ├── BadRequest              400
        ├── KeyMissing              401
        ├── KeyWrong                403
        ├── NotFound                404
        │   ├── UnknownModel
        │   ├── UnknownGlossary
        │   └── UnknownDocument
        ├── UnknownPath             404
        ├── MethodNotAllowed        405
        ├── BodyTooSlow             408
        ├── ReloadRefused           409
        ├── NotYet                  409
        ├── TooLarge                413
        ├── UnsupportedMediaType    415
        ├── UnprocessableRequest           422
        │   ├── InvalidFields
        │   └── DocumentFailed
        ├── ClientGone              499  never sent, only counted: nobody is left to read it
        ├── InferenceFailed         500
        ├── DeadlinePassed          504
        └── RetryLater              says when in Retry-After
            ├── RateLimited         429
            └── Unavailable         503
                ├── QueueFull
                ├── Starting
                ├── Draining
                ├── Broken
                │   ├── Silent
                │   └── WorkerEnded
                ├── NotStored
                └── NotReady        only said by /health/ready

The message is one sentence, with the numbers in it.
"""

# ruff: noqa: N818  Each name says what happened, and reads better without "Error" behind it.

from collections.abc import Sequence
from typing import ClassVar


class AttendError(Exception):
    """The root."""


class StartRefused(AttendError):
    """The service cannot start as configured."""


class ArtifactRefused(StartRefused):
    """An artifact directory is missing, foreign, or not what its manifest says."""


class ProviderUnavailable(StartRefused):
    """The execution provider asked for cannot be used on this machine."""


class RequestError(AttendError):
    """A request that is answered with a problem instead of a result."""

    status: ClassVar[int]
    title: ClassVar[str]

    fields: Sequence[tuple[Sequence[str | int], str]] = ()
    """Where each mistake is in the body, and what is wrong."""

    @property
    def headers(self) -> dict[str, str]:
        return {}


class BadRequest(RequestError):
    status, title = 400, "Bad Request"


class KeyMissing(RequestError):
    status, title = 401, "Unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class KeyWrong(RequestError):
    status, title = 403, "Forbidden"


class NotFound(RequestError):
    status, title = 404, "Not Found"


class UnknownModel(NotFound):
    """No model has this name."""


class UnknownGlossary(NotFound):
    """No glossary has this id, or it has no such dictionary."""


class UnknownDocument(NotFound):
    """No document has this id and key, or it was forgotten."""


class UnknownPath(RequestError):
    status, title = 404, "Not Found"


class MethodNotAllowed(RequestError):
    status, title = 405, "Method Not Allowed"

    def __init__(self, detail: str, allowed: str) -> None:
        super().__init__(detail)
        self._allowed = allowed

    @property
    def headers(self) -> dict[str, str]:
        return {"Allow": self._allowed}


class BodyTooSlow(RequestError):
    status, title = 408, "Request Timeout"


class ReloadRefused(RequestError):
    """The models stay as they are."""

    status, title = 409, "Conflict"


class NotYet(RequestError):
    """A document is not translated."""

    status, title = 409, "Conflict"


class TooLarge(RequestError):
    status, title = 413, "Content Too Large"


class UnsupportedMediaType(RequestError):
    status, title = 415, "Unsupported Media Type"


class UnprocessableRequest(RequestError):
    """Well-formed, but not something this service can do."""

    status, title = 422, "Unprocessable Content"


class InvalidFields(UnprocessableRequest):
    """Fields have the wrong shape; at least one."""

    def __init__(self, fields: Sequence[tuple[Sequence[str | int], str]]) -> None:
        loc, message = fields[0]
        first = f"{'.'.join(map(str, loc))}: {message}"
        super().__init__(
            first if len(fields) == 1 else f"{len(fields)} fields are not acceptable; the first is {first}"
        )
        self.fields = fields


class DocumentFailed(UnprocessableRequest):
    """A document could not be translated."""


class RetryLater(RequestError):
    """A request that may succeed when it is sent again after `retry_after_s`."""

    def __init__(self, detail: str, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


class RateLimited(RetryLater):
    status, title = 429, "Too Many Requests"


class ClientGone(RequestError):
    status, title = 499, "Client Closed Request"


class InferenceFailed(RequestError):
    status, title = 500, "Internal Server Error"


def unexpected(request_id: str) -> InferenceFailed:
    """What is said of an error that nobody expected: nothing of its cause."""
    return InferenceFailed(f"an unexpected error; the log has it under request id {request_id}")


class Unavailable(RetryLater):
    """`reason` is the label under which metrics count the refusal."""

    status, title = 503, "Service Unavailable"
    reason: ClassVar[str]


class QueueFull(Unavailable):
    reason = "queue_full"


class Starting(Unavailable):
    reason = "starting"


class Draining(Unavailable):
    reason = "draining"


class Broken(Unavailable):
    reason = "broken"


class Silent(Broken):
    """A worker has not reported: it hangs and will be replaced, or the machine was suspended."""


class WorkerEnded(Broken):
    """The worker process died that computed for this request, perhaps because of it."""


class NotStored(Unavailable):
    """A file, or what is kept, cannot be written now, as on a full disk or without a descriptor."""

    reason = "not_stored"


class NotReady(Unavailable):
    reason = "not_ready"


class DeadlinePassed(RequestError):
    status, title = 504, "Gateway Timeout"
