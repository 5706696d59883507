"""Files of the pages that the service has for browsers.

They are served under a content security policy that lets a page load and reach nothing but this service.
"""

import hashlib
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from service.http.compression import answer

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # A browser keeps the files, but asks each time if they have changed: no page mixes two versions.
    "Cache-Control": "no-cache",
}


class StaticFile:
    """A file, read once."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        self._media_type = MEDIA_TYPES[path.suffix]

    async def answer(self, request: Request) -> Response:
        """The file, or 304 where the browser has it."""
        headers = HEADERS | {"ETag": self._etag}
        if self._etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers | {"Vary": "Accept-Encoding"})
        return await answer(self._content, request, self._media_type, headers)

    @cached_property
    def _etag(self) -> str:
        """A weak one, as the file may be sent compressed or not."""
        return f'W/"{hashlib.sha256(self._content).hexdigest()[:32]}"'


def page_routes(path: str, page: StaticFile, files_path: str, files: dict[str, StaticFile]) -> APIRouter:
    """A page at one path, and its files by name below another."""
    router = APIRouter(include_in_schema=False)

    @router.api_route(path, methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return await page.answer(request)

    @router.api_route(f"{files_path}/{{name}}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        return await files[name].answer(request)

    return router
