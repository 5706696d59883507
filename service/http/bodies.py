"""Reads bodies: forms, and JSON under any content type."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request, UploadFile
from starlette.formparsers import MultiPartException

from service.base.errors import BadRequest, NotStored, UnsupportedMediaType
from service.http.form_parser import FormParser
from service.http.json_route import Body, check_encoding, parse_json_body, parse_json_object, read_json, validate
from service.schemas.requests import Input

logger = logging.getLogger(__name__)

ReadBody = Callable[[type[Any], Request], Awaitable[Any]]

MAX_FORM_FIELDS = 1000
"""Limit of one form, repeated fields included."""


class FileForm(Input):
    """A form with a file."""

    file: UploadFile
    _data: bytes = b""

    @property
    def data(self) -> bytes:
        """Content of the file."""
        return self._data

    @classmethod
    def value_of(cls, name: str, sent: Any) -> Any:  # noqa: ARG003  forms of files with options look at it
        """Return the value of a field. Raises InvalidFields."""
        return sent


async def file_or_json(model: type[Body], request: Request) -> Body:
    """Read a form with a file, or JSON for other models. The headers must declare either.

    Raises:
        UnsupportedMediaType, BadRequest, NotStored: the body cannot be read.
        InvalidFields: fields are not valid in the model.
    """
    if not issubclass(model, FileForm):
        return await read_json(model, request)
    try:
        fields = await form_fields(request)
        form = validate(model, {name: model.value_of(name, sent) for name, sent in fields.items()})
        form._data = await form.file.read()
    finally:
        await request.close()
    return form


async def json_body(model: type[Body], request: Request) -> Body:
    """Read a body of JSON, whatever type its headers declare. Raises UnsupportedMediaType: the body is compressed.
    Raises BadRequest, InvalidFields: the body is not JSON, or not valid in the model."""
    check_encoding(request.headers.get("content-encoding", ""))
    return parse_json_body(model, await request.body())


async def form_or_json(model: type[Body], request: Request) -> Body:
    """Read a model from the fields of query and body. Raises UnsupportedMediaType, BadRequest: the body cannot be read.
    Raises InvalidFields: fields are not valid in the model."""
    return validate(model, await fields_of(request))


async def form_fields(request: Request) -> dict[str, Any]:
    """Return the fields of query and body. The headers must declare a form with files. Raises UnsupportedMediaType,
    BadRequest, NotStored: the body cannot be read."""
    content_type = request.headers.get("content-type", "none")
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        raise UnsupportedMediaType(f"Content-Type must be multipart/form-data, not {content_type}")
    return await fields_of(request)


async def fields_of(request: Request) -> dict[str, Any]:
    """Return the fields of query and body; a field of the body replaces one of the query. A repeated field is a list.
    The body is a form if its content type says so, and JSON otherwise.

    Raises:
        UnsupportedMediaType: the body is compressed.
        BadRequest: the body is not what its content type says.
        NotStored: the system has no room for uploaded files.
    """
    if not hasattr(request.state, "fields"):  # the check of the API key may have read them already
        request.state.fields = _of_form(request.scope["query_string"], "query") | await _of_body(request)
    fields: dict[str, Any] = request.state.fields
    return fields


async def _of_body(request: Request) -> dict[str, Any]:
    check_encoding(request.headers.get("content-encoding", ""))
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        return await _of_parts(request)
    body = await request.body()
    if media_type == "application/x-www-form-urlencoded":
        return _of_form(body, "body")
    return parse_json_object(body) if body else {}


async def _of_parts(request: Request) -> dict[str, Any]:
    limits = {"max_files": MAX_FORM_FIELDS, "max_fields": MAX_FORM_FIELDS}
    try:
        # The middleware limits the body, so a field needs no limit of its own.
        parser = FormParser(request.headers, request.stream(), **limits, max_part_size=2**31)
        request._form = form = await parser.parse()  # `request.close()` closes its files
    except MultiPartException as error:
        raise BadRequest(f"The body is not a form: {error.message}") from None
    except UnicodeError as error:
        raise BadRequest(f"The body is not in the charset that it declares: {error}") from None
    except OSError as error:  # large parts go to a temporary file
        logger.error("no room for an uploaded file: %s", error)
        raise NotStored("The service has no room for the file now", retry_after_s=5) from None
    return _gathered(form.multi_items())


def _of_form(form: bytes, where: str) -> dict[str, Any]:
    try:
        return _gathered(
            parse_qsl(form.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS)
        )
    except UnicodeDecodeError as error:
        raise BadRequest(f"The {where} is not UTF-8: {error.reason}") from None
    except ValueError:
        raise BadRequest(f"The {where} must have at most {MAX_FORM_FIELDS} fields") from None


def _gathered(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, list[Any]] = {}
    for name, value in items:
        fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
