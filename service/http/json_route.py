"""A route that validates its body once and serializes its answer once.

FastAPI finds the route and describes it; nothing else of FastAPI runs between body and answer.
"""

import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError

from service.access.guards import Guards
from service.base.errors import BadRequest, InvalidFields, UnsupportedMediaType
from service.http.compression import compressed_response

Body = TypeVar("Body", bound=BaseModel)

CHARSET = re.compile(r"\bcharset=\"?([\w.:-]+)", re.IGNORECASE)
NAMES_OF_UTF8 = frozenset({"utf-8", "utf8", "us-ascii"})
"""Charsets that are UTF-8 or a subset of it."""
SUBJECT = re.compile(r"^\w+ should ")
"""Pydantic's messages begin with "Input should" or "List should"."""
VERBS = {"missing": "is required", "extra_forbidden": "is unknown"}
"""Messages for some types of pydantic's errors."""


async def read_json(model: type[Body], request: Request) -> Body:
    """Read a body. The headers must declare JSON. Raises UnsupportedMediaType: the headers declare another type, or
    compression. Raises BadRequest, InvalidFields: as in `parse_json_body`."""
    _check_headers(request)
    return parse_json_body(model, await request.body())


def json_route(guards: Guards, read_body: Callable[[type[Any], Request], Awaitable[Any]] = read_json) -> type[APIRoute]:
    """Return the class of routes that check the guards, then read and validate the body.

    An endpoint takes the body, if its signature has one, the request, and the parameters of path and query by name, as
    strings. It returns a response, or a value that becomes JSON.
    """

    class JsonRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            model: Any = self.body_field.field_info.annotation if self.body_field else None
            serializer = TypeAdapter(self.response_model).serializer
            exclude_none = self.response_model_exclude_none
            of_query = {param.alias: param.field_info.is_required() for param in self.dependant.query_params}

            async def handle(request: Request) -> Response:
                for check in guards.checks:
                    await check(request)
                body = () if model is None else (await read_body(model, request),)
                answer = await self.endpoint(*body, request, **request.path_params, **_query(request, of_query))
                if isinstance(answer, Response):
                    return answer
                content = serializer.to_json(answer, exclude_none=exclude_none)
                response = await compressed_response(content, request, "application/json")
                response.status_code = self.status_code or response.status_code
                return response

            return handle

    return JsonRoute


def parse_json_body(model: type[Body], body: bytes) -> Body:
    """Validate a body of JSON. Raises BadRequest: the body is not UTF-8, not JSON, or not an object. Raises
    InvalidFields: fields are not valid in the model."""
    try:
        return model.model_validate_json(body)
    except ValidationError:  # parse again by Python's slower parser, whose errors count in characters
        value = parse_json_object(body)
    return validate(model, value)


def validate(model: type[Body], value: dict[str, Any]) -> Body:
    """Validate fields. Raises BadRequest: there are too many fields. Raises InvalidFields: fields are not valid in the
    model."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        invalid = error.errors(include_url=False)
    if not invalid[0]["loc"]:
        raise BadRequest(f"The body {_message(invalid[0])}")
    raise InvalidFields([(_path(item, value), _message(item)) for item in invalid])


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises BadRequest: the body is not UTF-8, not JSON, or not an object."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise BadRequest("The body is not a JSON object")
    return value


def parse_json(body: bytes) -> Any:
    """Parse JSON; an empty body is None. Raises BadRequest: the body is not UTF-8, or not JSON."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"The body is not UTF-8: {error.reason} at byte {error.start}") from error
    if "\0" in text:  # JSON never has one, but UTF-16 does, which the parser would accept
        raise BadRequest(f"The body is not JSON in UTF-8: it has a null byte at character {text.index(chr(0))}")
    try:
        return json.loads(body) if body else None
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise BadRequest(f"The body is not JSON: {reason} at character {error.pos}") from error
    except (RecursionError, ValueError) as error:
        raise BadRequest(
            "The body is JSON that cannot be read: it is nested too deeply, or has a number with too many digits"
        ) from error


def whole_number(name: str, given: str, least: int, most: int) -> int:
    """Return a number of the query. Raises InvalidFields."""
    if not (given.isascii() and given.isdecimal() and len(given) < 20 and least <= int(given) <= most):
        raise InvalidFields([(("query", name), f"must be a whole number from {least} to {most}")])
    return int(given)


def _query(request: Request, is_required: Mapping[str, bool]) -> dict[str, str]:
    """Raises InvalidFields: a required parameter is missing."""
    if not is_required:  # most endpoints take none
        return {}
    given = {name: value for name, value in request.query_params.items() if name in is_required}
    missing = [name for name, required in is_required.items() if required and name not in given]
    if missing:
        raise InvalidFields([(("query", name), "is required") for name in missing])
    return given


def _path(item: Any, value: Any) -> list[str | int]:
    """Pydantic's path also names the alternatives of a union, which are left out."""
    path: list[str | int] = []
    *parts, last = item["loc"]
    for part in parts if item["type"] == "missing" else item["loc"]:
        if (isinstance(value, dict) and part in value) or (isinstance(value, list) and part in range(len(value))):
            value = value[part]
        elif path and isinstance(part, str):
            continue
        path.append(part)
    return [*path, last] if item["type"] == "missing" else path


def _message(item: Any) -> str:
    """Return a clause that begins with a verb. The field's name goes in front of it."""
    if item["type"] in VERBS:
        return VERBS[item["type"]]
    message = SUBJECT.sub("must ", item["msg"].removeprefix("Value error, ").replace(" after validation", ""))
    if item.get("ctx", {}).keys() & {"ge", "gt", "le", "lt"}:
        return f"{message}, not {item['input']}"
    return f"is invalid: {message}" if message[0].isupper() else message


def _check_headers(request: Request) -> None:
    headers: dict[bytes, bytes] = dict(reversed(request.scope["headers"]))  # the first of each name
    content_type = headers.get(b"content-type", b"none").decode("latin-1")
    media_type, _, parameters = content_type.partition(";")
    charset = CHARSET.search(parameters)
    is_utf8 = charset is None or charset[1].lower() in NAMES_OF_UTF8
    if media_type.strip().lower() != "application/json" or not is_utf8:
        raise UnsupportedMediaType(f"Content-Type must be application/json in UTF-8, not {content_type}")
    check_encoding(headers.get(b"content-encoding", b"").decode("latin-1"))


def check_encoding(encoding: str) -> None:
    """Refuse a compressed body. Raises UnsupportedMediaType."""
    if encoding.lower() not in ("", "identity"):
        raise UnsupportedMediaType(f"Content-Encoding {encoding} is not supported here")
