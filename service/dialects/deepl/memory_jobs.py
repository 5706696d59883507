"""DeepL's imports and exports of translation memories. A client sends or fetches the TMX at an address that has its own
key, in place of the client's."""

import hmac
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.access.guards import requester_of
from service.access.ownership import ANYBODY
from service.base.errors import TooLarge, UnknownDocument
from service.http.dialect import Backend
from service.http.files import name_of
from service.http.json_route import check_encoding
from service.http.memories import TMX_ANSWER, tmx_response
from service.http.root_path import address_of
from service.jobs.imports import DOWNLOAD, KIND, UPLOAD, memory_of
from service.jobs.job import Job
from service.schemas.glossaries import Name
from service.schemas.sent import Sent
from service.storage.database_threads import in_thread

Answer = dict[str, Any]
FILE_PATH = "/v3/translation_memory_file"
TMX_BODY = {
    "requestBody": {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "required": True,
    }
}


class DeepLSourceFile(Sent):
    file_name: Name
    content_length: int = Field(ge=1)


class DeepLImportParameters(Sent):
    display_name: Name | None = Field(default=None, description="Name of the memory; by default that of the file.")


class DeepLImport(Sent):
    source_file: DeepLSourceFile
    parameters: DeepLImportParameters | None = None


def add_memory_jobs(router: APIRouter, keyless: APIRouter, backend: Backend) -> None:
    """Add the routes. Those of `keyless` check no key of a client."""
    memories, jobs, settings = backend.stores.memories, backend.stores.documents, backend.settings

    async def begin(http: Request, kind: str, file_name: str, n_bytes: int, **options: str) -> Job:
        own = {"owner": requester_of(http).client, "key": secrets.token_hex(32)}
        return await jobs.await_client(kind, file_name, n_bytes, {**options, **own})

    async def find(job_id: str, is_allowed: Callable[[Answer], bool]) -> tuple[Job, Answer]:
        """Return a job and its options. Raises UnknownDocument."""
        job = await jobs.state(job_id)
        options = json.loads(job.options) if job else {}
        if job is None or "key" not in options or not is_allowed(options):
            raise UnknownDocument("No import or export of a translation memory has this id")
        return job, options

    async def at_address(job_id: str, key: str, kind: str) -> Answer:
        """Return the options of the job that waits for a client at an address. Raises UnknownDocument."""
        job, options = await find(job_id, lambda options: hmac.compare_digest(options["key"].encode(), key.encode()))
        if job.kind != kind or job.is_finished or job.left_s < 0:
            raise UnknownDocument("The file was sent before, or its address has expired")
        return options

    def address(http: Request, job: Job) -> str:
        query = urlencode({"job_id": job.id, "key": json.loads(job.options)["key"]})
        return f"{address_of(http, settings.root_path)}{FILE_PATH}?{query}"

    @router.post("/v3/translation_memories/import", status_code=201)
    async def import_memory(request: DeepLImport, http: Request) -> Answer:
        """Begin to import a translation memory: its TMX is sent to `upload_url` by PUT."""
        given, n_bytes = request.source_file.file_name, request.source_file.content_length
        if n_bytes > settings.max_document_bytes:
            raise TooLarge(f"The file has {n_bytes} bytes; the limit is {settings.max_document_bytes}")
        name = name_of(given) or given
        title = request.parameters.display_name if request.parameters else None
        job = await begin(http, UPLOAD, name, n_bytes, name=title or name)
        return {"job_id": job.id, "upload_url": address(http, job), "expires_at": _time(job.deadline)}

    @router.post("/v3/translation_memories/{memory_id}/export", status_code=202)
    async def export_memory(http: Request, memory_id: str) -> Answer:
        """Export a translation memory: the job tells where its TMX is."""
        memory = await in_thread(memories.get, requester_of(http), memory_id)
        job = await begin(http, DOWNLOAD, "", 0, memory_id=memory.id)
        return {"job_id": job.id, "parameters": {"translation_memory_id": memory.id}}

    @router.get("/v3/translation_memories/jobs/{job_id}")
    async def get_memory_job(http: Request, job_id: str) -> Answer:
        """Return how far an import or export is."""
        requester = requester_of(http)
        job, options = await find(job_id, lambda options: requester.may_read(options["owner"]))
        result: Answer = {"status": _status(job)}
        if job.kind == DOWNLOAD and not job.is_finished:
            result |= {"download_url": address(http, job), "expires_at": _time(job.deadline)}
        elif job.status == "done":
            result |= {"translation_memory_id": memory_of(job), "skipped_segment_count": await jobs.n_skipped(job.id)}
        elif job.status == "error":
            message = job.error if job.kind == KIND else "The address of the file has expired"
            result["error"] = {"code": job.code, "message": message}
        return _described(job, options) | {"results": [result]}

    @keyless.put(FILE_PATH, status_code=204, openapi_extra=TMX_BODY)
    async def upload_memory(http: Request, job_id: str, key: str) -> Response:
        """Send the TMX of an import, once. It is read in the background."""
        await at_address(job_id, key, UPLOAD)
        check_encoding(http.headers.get("content-encoding", ""))
        await jobs.supply(job_id, await http.body())
        return Response(status_code=204)

    @keyless.get(FILE_PATH, response_class=Response, responses=TMX_ANSWER)
    async def download_memory(_: Request, job_id: str, key: str) -> Response:
        """Return the TMX of an export."""
        options = await at_address(job_id, key, DOWNLOAD)
        return tmx_response(memories, ANYBODY, await in_thread(memories.get, ANYBODY, options["memory_id"]))


def _status(job: Job) -> str:
    if job.kind == KIND:
        return {"done": "completed", "error": "failed"}.get(job.status, "processing")
    return "expired" if job.is_finished else {UPLOAD: "awaiting_input", DOWNLOAD: "completed"}[job.kind]


def _described(job: Job, options: Answer) -> Answer:
    about: Answer = {"operation": "export", "parameters": {"translation_memory_id": options.get("memory_id")}}
    if job.kind != DOWNLOAD:
        file = {"file_name": job.file_name, "content_length": job.n_characters}
        about = {"operation": "import", "parameters": {"display_name": options["name"]}, "source_file": file}
    changed_at = job.finished_at or job.begun_at or job.created_at
    times = {"creation_time": _time(job.created_at), "updated_time": _time(changed_at)}
    return {"job_id": job.id, "product": "translation_memory", **about, **times}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
