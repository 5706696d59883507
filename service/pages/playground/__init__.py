"""The playground: a page at / that shows what the service does. Its files are in this folder."""

from pathlib import Path

from fastapi import APIRouter

from service.pages.static_files import MEDIA_TYPES, StaticFile, page_routes

FOLDER = Path(__file__).parent


def playground_routes() -> APIRouter:
    """Return the routes of the page and its files."""
    files = {path.name: StaticFile(path) for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    return page_routes("/", files.pop("index.html"), "/playground", files)
