"""The documentation of the HTTP interface: its OpenAPI document, and a page at /docs that shows it with Swagger UI.

Swagger UI is that of the package fastapi-swagger, of which nothing but these files is used.
"""

import importlib.util
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from service.http.compression import answer
from service.pages.static_files import StaticFile, page_routes

FOLDER = Path(__file__).parent


def api_docs_routes(openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    """Both, and the files of the page.

    Args:
        openapi: what the document says; not called before it is asked for.
    """
    own = {"start.js": FOLDER / "start.js"}
    swagger = {name: _swagger_ui() / name for name in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")}
    files = {name: StaticFile(path) for name, path in (own | swagger).items()}
    router = page_routes("/docs", StaticFile(FOLDER / "index.html"), "/docs", files)

    @cache
    def document() -> bytes:
        return json.dumps(openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @router.api_route("/openapi.json", methods=["GET", "HEAD"])
    async def describe(request: Request) -> Response:
        return await answer(document(), request, "application/json")

    return router


def _swagger_ui() -> Path:
    """Where its files lie. The package is not imported."""
    package = importlib.util.find_spec("fastapi_swagger")
    assert package is not None, "it is a dependency"
    assert package.origin is not None
    return Path(package.origin).parent / "resources"
