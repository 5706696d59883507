"""The documentation of the HTTP interface: its OpenAPI document, and a page at /docs that shows it with Swagger UI.

Swagger UI is a set of files in the package fastapi-swagger; nothing else of that package is used.
"""

import asyncio
import importlib.util
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from service.http.compression import compressed_response
from service.pages.static_files import StaticFile, page_routes

FOLDER = Path(__file__).parent


def api_docs_routes(openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the routes of the OpenAPI document, of the page and of its files. `openapi` makes the document when it is
    first asked for."""
    paths = {name: _swagger_ui() / name for name in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")}
    paths["start.js"] = FOLDER / "start.js"
    files = {name: StaticFile(path) for name, path in paths.items()}
    router = page_routes("/docs", StaticFile(FOLDER / "index.html"), "/docs", files)

    making = asyncio.Lock()

    @cache
    def document() -> bytes:
        return json.dumps(openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @router.api_route("/openapi.json", methods=["GET", "HEAD"])
    async def describe(request: Request) -> Response:
        async with making:  # takes a second: meanwhile others are answered
            content = await asyncio.to_thread(document)
        return await compressed_response(content, request, "application/json")

    return router


def _swagger_ui() -> Path:
    """The package is not imported: only its files are used."""
    package = importlib.util.find_spec("fastapi_swagger")
    assert package is not None, "it is a dependency"
    assert package.origin is not None
    return Path(package.origin).parent / "resources"
