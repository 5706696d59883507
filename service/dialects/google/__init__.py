"""Google Translation, versions 2 and 3, over REST."""

from typing import Any

from fastapi import APIRouter
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

from service.base.errors import KeyMissing, KeyWrong, RequestError
from service.dialects.google.v2 import add_v2
from service.dialects.google.v3 import CLIENT_FIELDS, add_v3
from service.dialects.shared.keys import credentials
from service.http.bodies import form_or_json
from service.http.dialect import Backend, Dialect, ErrorBody

KEY = credentials(
    "x-goog-api-key: <key>, ?key=<key> or Authorization: Bearer <key>",
    headers=("x-goog-api-key",),
    query=("key",),
    described=APIKeyHeader(name="x-goog-api-key", auto_error=False),
)
PREFIXES = ("", "/google")
"""At the root, a client changes only the name of its host."""
OF_MTRANSERVER = "/mtran/google"
V2 = "/language/translate/v2"
STATUSES = {
    400: ("INVALID_ARGUMENT", "invalid"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    405: ("UNIMPLEMENTED", "httpMethodNotAllowed"),
    408: ("DEADLINE_EXCEEDED", "requestTimeout"),
    409: ("FAILED_PRECONDITION", "conflict"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    500: ("INTERNAL", "backendError"),
    503: ("UNAVAILABLE", "backendError"),
    504: ("DEADLINE_EXCEEDED", "backendError"),
}
"""The status in words and the reason for each status."""
WRONG_KEY = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
    "metadata": {"service": "translate.googleapis.com"},
}


class GoogleReason(BaseModel):
    message: str
    domain: str = "global"
    reason: str


class GoogleStatus(BaseModel):
    code: int
    message: str
    errors: list[GoogleReason]
    status: str
    details: list[Any] = Field(default=[], description="For a wrong key, an ErrorInfo.")


class GoogleError(ErrorBody):
    error: GoogleStatus

    @classmethod
    def of(cls, error: RequestError) -> "GoogleError":
        code, message, details = GOOGLE.status_of(error), str(error), []
        status, reason = STATUSES[code]
        if isinstance(error, KeyWrong):
            message, reason, details = "API key not valid. Please pass a valid API key.", "badRequest", [WRONG_KEY]
        elif isinstance(error, KeyMissing):
            message = f"The request is missing a valid API key. {message}"
        reasons = [GoogleReason(message=message, domain="global", reason=reason)]
        return cls(error=GoogleStatus(code=code, message=message, errors=reasons, status=status, details=details))


def routers(backend: Backend) -> list[APIRouter]:
    guards = backend.access.guards(KEY, is_open_to_all=True)
    of_v2, of_v3 = GOOGLE.router(guards, form_or_json), GOOGLE.router(guards, client_fields=CLIENT_FIELDS)
    for prefix in (*PREFIXES, OF_MTRANSERVER):
        add_v2(of_v2, f"{prefix}{V2}", backend.models)
    for prefix in PREFIXES:
        add_v3(of_v3, f"{prefix}/v3/projects/{{parent:path}}", backend)
    return [of_v2, of_v3]


GOOGLE = Dialect(
    name="google",
    about="Google Translation, versions 2 and 3; the endpoint for its clients is the server, or ends in /google.",
    paths=("/google", V2, f"{OF_MTRANSERVER}{V2}", "/v3/projects"),
    error=GoogleError,
    routers=routers,
    # Never 401: Google's clients answer it by refreshing a token, and hide the reason.
    statuses={401: 403, 413: 400, 415: 400, 422: 400, "key_wrong": 400, "unknown_model": 400},
    client_fields={"text": ("q",)},
    is_open_to_all=True,
)
