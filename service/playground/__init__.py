"""The playground: one page at / that shows what the service does. Its files lie beside this one.

The page is served under a content security policy that lets it load and reach nothing but this service.
"""

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).parent

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
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


def playground_routes() -> APIRouter:
    """The page and its files, read once."""
    files = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return answer("index.html", request)

    @router.api_route("/playground/{name}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        if name not in files or name == "index.html":
            raise HTTPException(404)
        return answer(name, request)

    def answer(name: str, request: Request) -> Response:
        etag = f'"{hashlib.sha256(files[name]).hexdigest()[:32]}"'
        headers = HEADERS | {"ETag": etag}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(files[name], headers=headers, media_type=MEDIA_TYPES[Path(name).suffix])

    return router
