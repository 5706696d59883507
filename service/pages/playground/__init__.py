"""The playground: a page at / that shows what the service does. Its files are in this folder."""

from pathlib import Path

from fastapi import APIRouter

from service.documents.kinds import KINDS_BY_ENDING, LISTED_GROUPS
from service.pages.static_files import MEDIA_TYPES, StaticFile, page_routes
from service.schemas.requests import DocumentOptions

FOLDER = Path(__file__).parent


def playground_routes(max_text_characters: int) -> APIRouter:
    """Return the routes of the page and its files."""
    values = [("$LISTED_GROUPS", LISTED_GROUPS), ("$ENDINGS", ",".join(KINDS_BY_ENDING))]
    values.append(("$MAX_TEXT_CHARACTERS", str(max_text_characters)))
    for option in DocumentOptions.model_fields:
        endings = [ending for ending, kind in KINDS_BY_ENDING.items() if option in kind.options]
        values.append((f"$WITH_{option.upper()}", ",".join(endings)))
    paths = [path for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES and path.name != "index.html"]
    files = {path.name: StaticFile(path) for path in paths}
    return page_routes("/", StaticFile(FOLDER / "index.html", values), "/playground", files)
