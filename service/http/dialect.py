"""The definition of a dialect: the interface of another service, whose clients work here unchanged."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from service.access.guards import Access, Check, Guards
from service.base.errors import RequestError
from service.base.settings import Settings
from service.front.models import Models
from service.http import problems
from service.http.bodies import ReadBody, json_body
from service.http.json_route import json_route
from service.http.stores import Stores

STATUSES = (400, 404, 408, 413, 415, 422, 500, 503, 504)
"""Native statuses of the errors that any route may raise."""
ClientFields = Mapping[str, Sequence[str]]
NAMED_FIELD = re.compile("`([^`]+)`")
"""A field's path in the message of an error."""


class ErrorBody(BaseModel):
    """Base of a dialect's error bodies. Fields that are not set are left out."""

    @classmethod
    def of(cls, error: RequestError) -> Self:
        """Return the body that answers this error."""
        raise NotImplementedError


@dataclass(frozen=True)
class Backend:
    """The native service, as the routes of a dialect use it."""

    models: Models
    stores: Stores
    settings: Settings
    access: Access


@dataclass(frozen=True)
class Dialect:
    name: str
    """Name in `ATTEND_DIALECTS`, in metrics and in the tags of the OpenAPI document."""
    about: str
    """Description of its tag in the OpenAPI document."""
    paths: tuple[str, ...]
    """Errors at or below these paths have the dialect's shape."""
    error: type[ErrorBody]
    routers: Callable[[Backend], list[APIRouter]]
    statuses: Mapping[int | str, int] = field(default_factory=dict)
    """The dialect's statuses of errors by the native ones or by their codes, where they differ."""
    client_fields: ClientFields = field(default_factory=dict)
    """Paths in the client's request by native fields, such as "text" or "tags.keep", where they differ. Errors use the
    client's path."""
    is_open_to_all: bool = False
    """Whether pages of every origin may read answers (CORS)."""
    paths_of_documents: tuple[str, ...] = ()
    """Paths that take files, whose bodies may be larger than others."""

    def router(
        self, guards: Guards, read_body: ReadBody = json_body, client_fields: ClientFields | None = None
    ) -> APIRouter:
        """Return a router for routes with these guards and this kind of body. `client_fields` replaces the dialect's,
        where these routes have other fields."""
        if client_fields is not None:
            guards = replace(guards, checks=[_remember(client_fields), *guards.checks])
        return APIRouter(
            route_class=json_route(guards, read_body),
            dependencies=guards.described,
            tags=[self.name],
            responses=self.document_errors(*guards.statuses, *STATUSES),
        )

    def refusal(self, request: Request, error: RequestError) -> Response:
        """Return the answer to a request that failed with this error."""
        fields = getattr(request.state, "client_fields", self.client_fields)
        status = self.status_of(error)
        headers = error.headers if status == error.status else {}
        body = self.error.of(_with_client_fields(error, fields)).model_dump(exclude_unset=True)
        return problems.ascii_json(body, status, headers, "application/json")

    def status_of(self, error: RequestError) -> int:
        """Return the dialect's status of an error."""
        status = self.statuses.get(error.status, error.status)
        return self.statuses.get(getattr(error, "code", ""), status)

    def document_errors(self, *statuses: int) -> dict[int | str, dict[str, Any]]:
        """Return OpenAPI's description of errors with these native statuses."""
        when: dict[int, list[str]] = defaultdict(list)
        for native in statuses:
            codes = [code for code, status in problems.codes() if status == native and code in self.statuses]
            for status in (self.statuses.get(native, native), *map(self.statuses.__getitem__, codes)):
                when[status].append(problems.WHEN[native])
        return {status: problems.describe_error(" ".join(reasons), self.error) for status, reasons in when.items()}


def _remember(client_fields: ClientFields) -> Check:
    async def check(request: Request) -> None:
        request.state.client_fields = client_fields

    return check


def _with_client_fields(error: RequestError, client_fields: ClientFields) -> RequestError:
    """The error itself stays as it is, since several requests may share it."""

    def path_of(path: Sequence[str | int]) -> Sequence[str | int]:
        for n in (2, 1):
            if (client_path := client_fields.get(".".join(map(str, path[:n])))) is not None:
                return *client_path, *path[n:]
        return path

    def in_words(message: str) -> str:
        return NAMED_FIELD.sub(lambda name: f"`{'.'.join(map(str, path_of(name[1].split('.'))))}`", message)

    copy = type(error).__new__(type(error), in_words(str(error)))
    fields = [(path_of(path), in_words(message)) for path, message in error.fields]
    vars(copy).update(vars(error), fields=fields)
    return copy


class Native:
    """The service's own interface."""

    name = "native"

    def refusal(self, request: Request, error: RequestError) -> Response:
        return problems.refusal(request, error)


AnyDialect = Dialect | Native


class Dialects:
    """The dialects enabled on this server. Some of `native_paths` are below the paths of a dialect."""

    def __init__(self, dialects: Iterable[Dialect], native_paths: Collection[str]) -> None:
        self._native = Native()
        self._native_paths = frozenset(native_paths)
        self._dialects = [*dialects]
        paths = [(f"{path}/", dialect) for dialect in self._dialects for path in dialect.paths]
        self._paths = sorted(paths, key=lambda path: -len(path[0]))
        self.open_to_all = tuple(path for path, dialect in paths if dialect.is_open_to_all)
        """Paths below which pages of every origin may read answers."""

    def __iter__(self) -> Iterator[Dialect]:
        return iter(self._dialects)

    def of(self, path: str) -> AnyDialect:
        """Return the dialect whose path matches most of this path. The first of several counts."""
        if path in self._native_paths:
            return self._native
        below = f"{path}/"
        return next((dialect for start, dialect in self._paths if below.startswith(start)), self._native)
