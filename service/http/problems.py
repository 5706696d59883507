"""Errors to HTTP, once: every error leaves as RFC 9457 problem details."""

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from service.errors import RequestError


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

WHEN = {
    400: "The body is not JSON, not UTF-8, or not an object.",
    401: "The key is missing.",
    403: "The key is wrong.",
    404: "No model has this name.",
    408: "The body did not come in time.",
    409: "The models stay as they are: those on disk are not what they should be, or are loading already.",
    413: "The body or a text is over its limit.",
    415: "The content type is not JSON.",
    422: "Well-formed, but not acceptable.",
    429: "This client's rate limit.",
    500: "A bug; logged under the request id.",
    503: "Starting, draining, broken, or the queue is full; Retry-After says when to come again.",
    504: "The request's deadline passed.",
}


def refusal(request: Request, error: RequestError) -> Response:
    """The response to a request that fails with this error."""
    return _problem(request, error.status, error.title, str(error), error.headers, error.fields)


async def routing_problem(request: Request, error: HTTPException) -> Response:
    """The response to a request that no route takes."""
    detail = {
        404: f"there is nothing at {request.url.path}",
        405: f"{request.url.path} does not take {request.method}",
    }.get(error.status_code, error.detail)
    phrase = HTTPStatus(error.status_code).phrase
    return _problem(request, error.status_code, phrase, detail, dict(error.headers or {}))


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's description of these problems."""
    return {status: {"model": Problem, "description": WHEN[status]} for status in statuses}


def openapi_of(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """The application's OpenAPI document, in which problems have their own media type."""
    without_problems = app.openapi

    def openapi() -> dict[str, Any]:
        document = without_problems()
        for path in document["paths"].values():
            for operation in path.values():
                for status, response in operation["responses"].items():
                    if int(status) >= 400 and "application/json" in response["content"]:
                        response["content"][MEDIA_TYPE] = response["content"].pop("application/json")
        return document

    return openapi


def _problem(
    request: Request,
    status: int,
    title: str,
    detail: str,
    headers: dict[str, str],
    fields: Sequence[tuple[Sequence[str | int], str]] = (),
) -> Response:
    errors = [FieldProblem(loc=list(loc), msg=msg) for loc, msg in fields] or None
    request_id = request.state.request_id
    body = Problem(title=title, status=status, detail=detail, request_id=request_id, errors=errors)
    # In ASCII, because what is quoted from a request may hold half of a surrogate pair, which UTF-8 cannot.
    return Response(json.dumps(body.model_dump(exclude_none=True)), status, headers, MEDIA_TYPE)
