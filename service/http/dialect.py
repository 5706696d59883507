"""What the rest of HTTP knows of a dialect."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from service.base.errors import RequestError
from service.base.settings import Settings
from service.http import problems
from service.http.access import Access, Guards
from service.http.bodies import ReadBody, json_body
from service.http.json_route import json_route
from service.models.models import Models

STATUSES = (400, 404, 408, 413, 415, 422, 500, 503, 504)
"""Of errors that any route may answer with, in native terms."""


class Sent(BaseModel):
    """What a client sends as JSON. Fields that are not known are ignored, types are not guessed."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class ErrorBody(BaseModel):
    """An error as a dialect shows it; fields that were not set are left out."""

    @classmethod
    def of(cls, error: RequestError) -> Self:
        raise NotImplementedError


@dataclass(frozen=True)
class Dialect:
    name: str
    """Its setting, its label in metrics, its tag in the OpenAPI document."""
    about: str
    paths: tuple[str, ...]
    """Whatever is at or below these is answered as the dialect has it."""
    error: type[ErrorBody]
    routers: Callable[[Models, Settings, Access], list[APIRouter]]
    statuses: Mapping[int, int] = field(default_factory=dict)
    """Of errors: the dialect's by the native ones, where they differ."""
    is_open_to_all: bool = False
    """Whether pages of every origin may read answers in a browser."""
    paths_of_documents: tuple[str, ...] = ()
    """Where files are sent to, which may be larger than other bodies."""

    def router(self, guards: Guards, read_body: ReadBody = json_body) -> APIRouter:
        """A router of the dialect's routes that have these guards, and such bodies."""
        return APIRouter(
            route_class=json_route(guards, read_body),
            dependencies=guards.described,
            tags=[self.name],
            responses=self.documented(*guards.statuses, *STATUSES),
        )

    def refusal(self, request: Request, error: RequestError) -> Response:  # noqa: ARG002
        """The response to a request that fails with this error."""
        status = self.statuses.get(error.status, error.status)
        headers = error.headers if status == error.status else {}
        body = self.error.of(error).model_dump(exclude_unset=True)
        return problems.in_ascii(body, status, headers, "application/json")

    def documented(self, *statuses: int) -> dict[int | str, dict[str, Any]]:
        """OpenAPI's description of these errors, whose statuses are native ones."""
        when: dict[int, list[str]] = defaultdict(list)
        for native in statuses:
            when[self.statuses.get(native, native)].append(problems.WHEN[native])
        return {status: problems.described(" ".join(reasons), self.error) for status, reasons in when.items()}


class Native:
    """The service's own."""

    name = "native"

    def refusal(self, request: Request, error: RequestError) -> Response:
        return problems.refusal(request, error)


AnyDialect = Dialect | Native


class Dialects:
    """Those of a server.

    Args:
        native_paths: which are nobody else's, though they may be below the paths of a dialect.
    """

    def __init__(self, dialects: Iterable[Dialect], native_paths: Collection[str]) -> None:
        self._native = Native()
        self._native_paths = frozenset(native_paths)
        self._dialects = [*dialects]
        paths = [(f"{path}/", dialect) for dialect in self._dialects for path in dialect.paths]
        self._paths = sorted(paths, key=lambda path: -len(path[0]))
        self.open_to_all = tuple(path for path, dialect in paths if dialect.is_open_to_all)
        """Below these, pages of every origin may read answers."""

    def __iter__(self) -> Iterator[Dialect]:
        return iter(self._dialects)

    def of(self, path: str) -> AnyDialect:
        """Which a path belongs to: of several the one that names most of it, or else the first."""
        if path in self._native_paths:
            return self._native
        below = f"{path}/"
        return next((dialect for start, dialect in self._paths if below.startswith(start)), self._native)
