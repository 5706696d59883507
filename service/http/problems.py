"""Answers to errors: RFC 9457 problem details, except below the paths of a dialect."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Route

from service.base.errors import MethodNotAllowed, RequestError, UnknownPath


def codes(error: type[RequestError] = RequestError) -> Iterator[tuple[str, int]]:
    """Yield the code and the status of each error that is answered with a problem."""
    if "code" in vars(error):
        yield error.code, error.status
    for subclass in error.__subclasses__():
        yield from codes(subclass)


class FieldProblem(BaseModel):
    loc: list[str | int] = Field(description="Path of the field in the request.", examples=[["text"]])
    msg: str = Field(description="What is wrong with the field.", examples=["must not be empty"])


class Problem(BaseModel):
    """RFC 9457 problem details."""

    type: str = Field(
        description="Reference to the code in the documentation: docs/errors.md.", examples=["errors#target_required"]
    )
    code: str = Field(
        description="What went wrong, for programs. Codes never change.",
        examples=["target_required"],
        json_schema_extra=lambda schema: schema.update(enum=[code for code, _ in codes()]),
    )
    title: str = Field(description="The code in words.", examples=["Target required"])
    status: int
    detail: str = Field(
        description="What went wrong, for people. The wording may change.",
        examples=["`target` is required; available: de, fr"],
    )
    request_id: str
    errors: list[FieldProblem] | None = Field(default=None, description="Each invalid field.")


MEDIA_TYPE = "application/problem+json"
SCHEMAS = "#/components/schemas/"
FASTAPI_ERROR = {"schema": {"$ref": f"{SCHEMAS}HTTPValidationError"}}

WHEN = {
    400: "The body is not JSON, not UTF-8, or not an object.",
    401: "The key is missing.",
    403: "The key is wrong or may not use this route, or a page of another site asks.",
    404: "No model has this name, no glossary or memory this id, or no document this id and key.",
    408: "The body did not arrive in time.",
    409: "The models were not replaced, or the document is not translated yet; the detail says why.",
    413: "The body or a text is larger than its limit.",
    415: "The content type is not supported.",
    422: "The request is well-formed, but cannot be done.",
    429: "This client has sent more requests than its rate allows, or used its characters of this month.",
    500: "A bug; the log has it under the request id.",
    503: "The service is starting, draining or broken, a queue is full, or a file cannot be written; Retry-After says "
    "when to try again.",
    504: "The deadline of the request passed.",
}


def refusal(request: Request, error: RequestError) -> Response:
    """Return the answer to a request that failed with this error."""
    return ascii_json(problem_of(error, request.state.request_id), error.status, error.headers, MEDIA_TYPE)


def problem_of(error: RequestError, request_id: str) -> dict[str, Any]:
    """Return the problem details of an error."""
    fields = [FieldProblem(loc=list(loc), msg=msg) for loc, msg in error.fields]
    problem = Problem(
        type=f"errors#{error.code}",
        code=error.code,
        title=error.code.replace("_", " ").capitalize(),
        status=error.status,
        detail=str(error),
        request_id=request_id,
        errors=fields or None,
    )
    return problem.model_dump(exclude_none=True)


def ascii_json(body: Any, status: int, headers: Mapping[str, str], media_type: str) -> Response:
    """Return JSON in ASCII: a quoted request may contain half of a surrogate pair, which UTF-8 cannot encode."""
    return Response(json.dumps(body), status, headers, media_type)


async def raise_not_routed(request: Request, error: HTTPException) -> Response:
    """Raise a named error where no route matches. The middleware answers it, as it answers all other errors. Raises
    UnknownPath, MethodNotAllowed."""
    if error.status_code == 404:
        raise UnknownPath(f"Nothing is at {request.url.path}")
    if error.status_code == 405:
        allowed = _methods(request)
        raise MethodNotAllowed(f"{request.url.path} does not take {request.method}; allowed: {allowed}", allowed)
    raise error


def _methods(request: Request) -> str:
    """Return all methods of a path, which may have a route for each."""
    path = request.scope["route"].path
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path == path]
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


def document_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of problems with these statuses."""
    return {status: describe_error(WHEN[status], Problem, MEDIA_TYPE) for status in statuses}


def describe_error(description: str, error: type[BaseModel], media_type: str = "application/json") -> dict[str, Any]:
    """Return OpenAPI's description of an error, with the name of the schema. From the model, FastAPI would make a
    validator for each route and status, which takes as long as building the rest of the application."""
    schema = {"$ref": f"{SCHEMAS}{error.__name__}"}
    return {"description": description, "content": {media_type: {"schema": schema}}}


TAGS = {
    "translate": "Translate texts, and detect their languages.",
    "documents": "Translate files: documents, messages of programs, subtitles, web pages.",
    "glossaries": "Keep terms and their translations, for texts and files.",
    "memories": "Keep translations, for texts and files.",
    "classify": "Label texts and pairs of texts, and rank texts for a query.",
    "embed": "Turn texts into vectors.",
    "models": "See which models and languages are served, and load models anew.",
    "operations": "Health and metrics, for whoever runs the service.",
}
"""Groups of the native routes, in the order in which they are described."""


def openapi_of(
    app: FastAPI, errors: Sequence[type[BaseModel]], native: Collection[str]
) -> Callable[[], dict[str, Any]]:
    """Return a function that makes the OpenAPI document, with the schemas of these errors. FastAPI's own validation
    never runs, so its errors are left out. `native` has the tags of native routes, whose operations are called as their
    functions are."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        for operation in (operation for path in document["paths"].values() for operation in path.values()):
            for status, response in [*operation["responses"].items()]:
                if response.get("content", {}).get("application/json") == FASTAPI_ERROR:
                    del operation["responses"][status]
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        _, of_errors = models_json_schema(
            [(error, "serialization") for error in errors], ref_template=f"{SCHEMAS}{{model}}"
        )
        schemas |= of_errors["$defs"]
        _name_operations(document["paths"], native)
        return document

    return openapi


def _name_operations(paths: dict[str, Any], native: Collection[str]) -> None:
    """Call operations as people would: translate, deepl_translate. Where several would have one name, the later names
    also have what differs in their paths, or the method."""
    known: dict[str, str] = {}
    for path in sorted(paths, key=len):
        for method, operation in paths[path].items():
            [tag] = operation["tags"]
            name = operation["summary"].lower().replace(" ", "_")
            name = name if tag in native else f"{tag}_{name}"
            words = [word for word in path.split("/") if word not in known.get(name, path).split("/")]
            names = (name, "_".join([name, *words]), "_".join([name, *words, method]), "_".join([name, method, path]))
            operation["operationId"] = next(name for name in names if name not in known)
            known[operation["operationId"]] = path
