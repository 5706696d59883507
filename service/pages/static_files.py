"""Files of the pages for browsers.

They are served under a content security policy that lets a page load and reach nothing but this service.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from service.http.compression import compressed_response

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
    # A browser keeps the files, but asks each time whether they have changed: no page mixes two versions.
    "Cache-Control": "no-cache",
}


class StaticFile:
    """A file that is read once and kept in memory. `values` replaces placeholders in the file."""

    def __init__(self, path: Path, values: Iterable[tuple[str, str]] = ()) -> None:
        self._content = path.read_bytes()
        for placeholder, value in values:
            self._content = self._content.replace(placeholder.encode(), value.encode())
        self._media_type = MEDIA_TYPES[path.suffix]
        # The tag is weak (W/), as the file may be sent compressed or not.
        self._etag = f'W/"{hashlib.sha256(self._content).hexdigest()[:32]}"'

    async def response(self, request: Request) -> Response:
        """Return the file, or status 304 if the browser already has it."""
        headers = HEADERS | {"ETag": self._etag}
        if self._etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers | {"Vary": "Accept-Encoding"})
        return await compressed_response(self._content, request, self._media_type, headers)


def page_routes(path: str, page: StaticFile, files_path: str, files: dict[str, StaticFile]) -> APIRouter:
    """Return the routes of a page, and of its files by name below `files_path`."""
    router = APIRouter(include_in_schema=False)

    @router.api_route(path, methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return await page.response(request)

    @router.api_route(f"{files_path}/{{name}}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        return await files[name].response(request)

    return router
