"""Errors to HTTP, once: every error leaves as RFC 9457 problem details, but below the paths of a dialect."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Route

from service.base.errors import MethodNotAllowed, RequestError, UnknownPath


class FieldProblem(BaseModel):
    loc: list[str | int]
    msg: str


class Problem(BaseModel):
    """RFC 9457 problem details."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="One sentence.")
    request_id: str
    errors: list[FieldProblem] | None = Field(default=None, description="What is wrong with which field.")


MEDIA_TYPE = "application/problem+json"
SCHEMAS = "#/components/schemas/"
OF_FASTAPI = {"schema": {"$ref": f"{SCHEMAS}HTTPValidationError"}}

WHEN = {
    400: "The body is not JSON, not UTF-8, or not an object.",
    401: "The key is missing.",
    403: "The key is wrong.",
    404: "No model has this name, no glossary this id, or no document this id and key.",
    408: "The body did not come in time.",
    409: "The models stay as they are, or the document is not translated yet; the detail says why.",
    413: "The body or a text is over its limit.",
    415: "The content type is not JSON.",
    422: "Well-formed, but not acceptable.",
    429: "This client's rate limit.",
    500: "A bug; logged under the request id.",
    503: "Starting, draining, broken, no room for a file, or the queue is full; Retry-After says when to come again.",
    504: "The request's deadline passed.",
}


def refusal(request: Request, error: RequestError) -> Response:
    """The response to a request that fails with this error."""
    fields = [FieldProblem(loc=list(loc), msg=msg) for loc, msg in error.fields]
    problem = Problem(
        title=error.title,
        status=error.status,
        detail=str(error),
        request_id=request.state.request_id,
        errors=fields or None,
    )
    return in_ascii(problem.model_dump(exclude_none=True), error.status, error.headers, MEDIA_TYPE)


def in_ascii(body: Any, status: int, headers: Mapping[str, str], media_type: str) -> Response:
    """JSON. What is quoted from a request may hold half of a surrogate pair, which UTF-8 cannot."""
    return Response(json.dumps(body), status, headers, media_type)


async def not_routed(request: Request, error: HTTPException) -> Response:
    """Name what no route takes. It answers nothing: the middleware does, as it does for all other errors.

    Raises:
        UnknownPath, MethodNotAllowed
    """
    if error.status_code == 404:
        raise UnknownPath(f"there is nothing at {request.url.path}")
    if error.status_code == 405:
        raise MethodNotAllowed(f"{request.url.path} does not take {request.method}", _methods(request))
    raise error


def _methods(request: Request) -> str:
    """Those of a path, which may have a route for each."""
    path = request.scope["route"].path
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path == path]
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's description of these problems."""
    return {status: described(WHEN[status], Problem, MEDIA_TYPE) for status in statuses}


def described(description: str, error: type[BaseModel], media_type: str = "application/json") -> dict[str, Any]:
    """OpenAPI's description of an error. It names the schema: given the model, FastAPI would make a validator for each
    route and status, which takes as long as the rest of an application."""
    schema = {"$ref": f"{SCHEMAS}{error.__name__}"}
    return {"description": description, "content": {media_type: {"schema": schema}}}


def openapi_of(app: FastAPI, errors: Sequence[type[BaseModel]]) -> Callable[[], dict[str, Any]]:
    """The application's OpenAPI document with these errors, and without those of FastAPI's own validation, which never
    runs."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        for operation in (operation for path in document["paths"].values() for operation in path.values()):
            for status, response in [*operation["responses"].items()]:
                if response.get("content", {}).get("application/json") == OF_FASTAPI:
                    del operation["responses"][status]
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        _, of_errors = models_json_schema(
            [(error, "serialization") for error in errors], ref_template=f"{SCHEMAS}{{model}}"
        )
        schemas |= of_errors["$defs"]
        return document

    return openapi
