"""Names of the files that clients send, and answers with files."""

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from fastapi import Response

from service.documents.kinds import KINDS_BY_NAME, LISTED_KINDS
from service.jobs.job import Job

MAX_NAME_CHARACTERS = 255
FILE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The translated file, of the type of its kind.",
        "content": {"application/octet-stream": {}, "application/jsonl": {}},
    }
}
"""OpenAPI's description of an answer that is a file."""
TRANSLATE_FILE = f"Translate a file: {LISTED_KINDS}. Its formatting stays."
"""OpenAPI's description of a route that takes a file."""


def name_of(file_name: str | None) -> str:
    """Return the name without folders, shortened at its start if it is too long."""
    name = "".join(filter(str.isprintable, PurePath((file_name or "").replace("\\", "/")).name))
    return name if len(name) <= MAX_NAME_CHARACTERS else name[-MAX_NAME_CHARACTERS:]


def translated_name(job: Job) -> str:
    return KINDS_BY_NAME[job.kind].translated_name(job.file_name, job.target)


def file_response(job: Job, data: bytes) -> Response:
    """Return an answer that a browser saves, and never shows as a page of this service."""
    headers = {
        "content-type": KINDS_BY_NAME[job.kind].media_type,  # without a charset: some files are UTF-16
        "content-disposition": f"attachment; filename*=UTF-8''{quote(translated_name(job), safe='')}",
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    return Response(data, headers=headers)
