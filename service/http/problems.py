"""Errors to HTTP, once: every error leaves as RFC 9457 problem details."""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
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

    def body(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


MEDIA_TYPE = "application/problem+json"

WHEN = {
    400: "The body is not JSON, not UTF-8, or not an object.",
    401: "The key is missing.",
    403: "The key is wrong.",
    404: "No model has this name.",
    408: "The body did not come in time.",
    413: "The body or a text is over its limit.",
    415: "The content type is not JSON.",
    422: "Well-formed, but not acceptable.",
    429: "This client's rate limit.",
    500: "A bug; logged under the request id.",
    503: "Starting, draining, broken, or the queue is full; Retry-After says when to come again.",
    504: "The request's deadline passed.",
}


def install(app: FastAPI) -> None:
    """Let every error of routing, validation and handling be answered as a problem."""

    @app.exception_handler(RequestError)
    async def of_request(request: Request, error: RequestError) -> Response:
        return refusal(request, error)

    @app.exception_handler(RequestValidationError)
    async def of_validation(request: Request, error: RequestValidationError) -> Response:
        return _validation_problem(request, error)

    @app.exception_handler(HTTPException)
    async def of_routing(request: Request, error: HTTPException) -> Response:
        phrase = HTTPStatus(error.status_code).phrase
        detail = {
            400: "the body is JSON that cannot be read: nested too deeply, or with a number of too many digits",
            404: f"there is nothing at {request.url.path}",
            405: f"{request.url.path} does not take {request.method}",
        }.get(error.status_code, error.detail)
        return problem(request, error.status_code, phrase, detail, headers=dict(error.headers or {}))


def problem(
    request: Request,
    status: int,
    title: str,
    detail: str,
    headers: dict[str, str] | None = None,
    errors: list[FieldProblem] | None = None,
) -> Response:
    """One problem as a response."""
    body = Problem(title=title, status=status, detail=detail, request_id=request.state.request_id, errors=errors).body()
    # In ASCII, because what is quoted from a request may hold half of a surrogate pair, which UTF-8 cannot.
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def refusal(request: Request, error: RequestError) -> Response:
    """The response to a request that fails with this error."""
    return problem(request, error.status, error.title, str(error), headers=error.headers)


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


def _validation_problem(request: Request, error: RequestValidationError) -> Response:
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        reason, place = found[0]["ctx"]["error"].removesuffix(" at"), found[0]["loc"][-1]
        return problem(request, 400, "Bad Request", f"the body is not JSON: {reason} at character {place}")
    if found[0]["loc"] == ("body",):
        is_object = found[0]["type"] not in {"missing", "model_attributes_type"}
        detail = f"the body: {_message(found[0])}" if is_object else "the body is not a JSON object"
        return problem(request, 400, "Bad Request", detail)
    errors = [FieldProblem(loc=list(item["loc"][1:]), msg=_message(item)) for item in found]
    first = f"{'.'.join(str(part) for part in errors[0].loc)}: {errors[0].msg}"
    detail = first if len(errors) == 1 else f"{len(errors)} fields are not acceptable; the first is {first}"
    return problem(request, 422, "Unprocessable Content", detail, errors=errors)


def _message(item: dict[str, Any]) -> str:
    """Pydantic's message, with the number that is out of range, and our own refusals in their own words."""
    if item.get("ctx", {}).keys() & {"ge", "gt", "le", "lt"}:
        return f"{item['msg']}, not {item['input']}"
    return str(item["msg"]).removeprefix("Value error, ")
