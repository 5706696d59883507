"""The playground: one page at / that shows what the service does. Its files lie beside this one."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from service.static_files import MEDIA_TYPES, StaticFile

FOLDER = Path(__file__).parent


def playground_routes() -> APIRouter:
    """The page and its files."""
    files = {path.name: StaticFile(path) for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    page = files.pop("index.html")
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return await page.answer(request)

    @router.api_route("/playground/{name}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        return await files[name].answer(request)

    return router
