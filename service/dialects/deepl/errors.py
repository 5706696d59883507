"""DeepL's errors, and where its clients send their keys."""

from fastapi import Request
from fastapi.security import APIKeyHeader
from pydantic import Field

from service.access.guards import Credentials
from service.base.errors import RequestError
from service.http.dialect import ErrorBody

SCHEME = "DeepL-Auth-Key"


class DeepLError(ErrorBody):
    message: str
    detail: str = Field(default="", description="Why the value of the field is not supported.")

    @classmethod
    def of(cls, error: RequestError) -> "DeepLError":
        if not error.fields:
            return cls(message=str(error))
        loc, reason = error.fields[0]
        name = next(part for part in reversed(loc) if isinstance(part, str))
        message = "Invalid file data." if name == "file" else f"Value for '{name}' not supported."
        return cls(message=message, detail=reason)


async def _key(request: Request) -> bytes | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip().encode("latin-1") if scheme.lower() == SCHEME.lower() and key.strip() else None


KEY = Credentials(
    _key,
    f"Authorization: {SCHEME} <key>",
    APIKeyHeader(name="Authorization", scheme_name=SCHEME, auto_error=False, description=f"{SCHEME}, then a key."),
)
