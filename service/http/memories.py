"""The routes of translation memories."""

from collections.abc import AsyncIterator, Callable
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import Field

from service.access.guards import Guards, requester_of
from service.access.ownership import Requester
from service.base.errors import InvalidFields, RequestError
from service.documents.memory_files import TMX, TMX_END, MemoryFile, tmx_head, tmx_units
from service.http.bodies import FileForm, file_or_json
from service.http.files import name_of
from service.http.json_route import json_route, whole_number
from service.http.problems import document_errors
from service.jobs.imports import import_file
from service.jobs.job import Job
from service.jobs.worker import DocumentJobs
from service.memories.store import PAGE, Memories, Memory, Segment
from service.schemas.glossaries import Code, Name
from service.schemas.memories import (
    MemoriesResponse,
    MemoryCard,
    MemoryRequest,
    SegmentCard,
    SegmentsRequest,
    SegmentsResponse,
)
from service.storage.database_threads import in_thread

MEMORY_FILE_PATH = "/memories/file"
TMX_ANSWER: dict[int | str, dict[str, Any]] = {200: {"description": "The memory.", "content": {"text/xml": {}}}}
LARGE = 1_000_000
"""Files of more bytes are read in the background."""


class MemoryForm(FileForm):
    """A file with texts in two languages."""

    file: UploadFile = Field(description="The texts, as .tmx, .xlf, .xliff, .po, .csv or .tsv.")
    source: Code | None = Field(default=None, description="Language code; required for a new memory.")
    target: Code | None = Field(default=None, description="Language code; required for a new memory.")
    name: Name | None = Field(default=None, description="Name of a new memory; by default the name of the file.")
    memory_id: str | None = Field(default=None, description="Id of a memory that receives the segments.")


def memory_routes(memories: Memories, jobs: DocumentJobs, guards: Guards) -> APIRouter:
    """Return the routes. They access the database in threads."""
    router = APIRouter(
        tags=["memories"],
        route_class=json_route(guards, file_or_json),
        dependencies=guards.described,
        responses=document_errors(*guards.statuses, 404, 500),
    )
    of_bodies = document_errors(400, 408, 413, 415, 422, 503)

    @router.post("/memories", status_code=201, responses=of_bodies, response_model_exclude_none=True)
    async def create_memory(request: MemoryRequest, http: Request) -> MemoryCard:
        """Make a translation memory. Requests name it by its id."""
        asked = requester_of(http), request.name, request.source, request.target
        return _card(await in_thread(memories.create, *asked), None)

    @router.post(MEMORY_FILE_PATH, status_code=201, responses=of_bodies, response_model_exclude_none=True)
    async def upload_memory(form: Annotated[MemoryForm, Form()], http: Request) -> MemoryCard:
        """Store the translations of a file, in a new memory or in one that exists. A large file is read in the
        background: the memory has its progress."""
        name, requester, is_new = name_of(form.file.filename), requester_of(http), form.memory_id is None
        if is_new:
            missing = [field for field in ("source", "target") if getattr(form, field) is None]
            if missing:
                raise InvalidFields([((field,), "is required for a new memory") for field in missing])
            MemoryFile(name, form.data, "", "")  # refuses other kinds of files before a memory is made
            title = form.name or PurePath(name).stem
            memory = await in_thread(memories.create, requester, title, form.source, form.target)
        else:
            memory = await in_thread(memories.get, requester, form.memory_id)
            requester.refuse_writing(memory.owner, f"Memory {memory.name!r}")
        file = MemoryFile(name, form.data, memory.source, memory.target)
        try:
            if len(form.data) > LARGE:
                job = await jobs.submit_import(name, form.data, memory.id, (memory.source, memory.target))
                await in_thread(memories.note_job, requester, memory.id, job.id)
                skipped = None
            else:
                skipped = await import_file(memories, requester, memory.id, file)
        except RequestError:
            if is_new:
                await memories.delete(requester, memory.id)
            raise
        return (await get_memory(http, memory.id)).model_copy(update={"skipped": skipped})

    @router.get("/memories", response_model_exclude_none=True)
    async def list_memories(http: Request) -> MemoriesResponse:
        """List all memories, the oldest first, without their segments."""
        return MemoriesResponse(memories=await _cards(jobs, lambda: memories.all(requester_of(http))))

    @router.get("/memories/{memory_id}", response_model_exclude_none=True)
    async def get_memory(http: Request, memory_id: str) -> MemoryCard:
        """Return a memory without its segments."""
        (card,) = await _cards(jobs, lambda: [memories.get(requester_of(http), memory_id)])
        return card

    @router.delete("/memories/{memory_id}", status_code=204, responses=document_errors(503))
    async def delete_memory(http: Request, memory_id: str) -> Response:
        """Delete a memory."""
        await memories.delete(requester_of(http), memory_id)
        return Response(status_code=204)

    @router.post("/memories/{memory_id}/segments", responses=of_bodies, response_model_exclude_none=True)
    async def put_segments(request: SegmentsRequest, http: Request, memory_id: str) -> MemoryCard:
        """Store segments. One with the same source as another replaces it."""
        segments = [Segment(**segment.model_dump()) for segment in request.segments]
        await in_thread(memories.put, requester_of(http), memory_id, segments)
        return await get_memory(http, memory_id)

    @router.get("/memories/{memory_id}/segments", responses=document_errors(422), response_model_exclude_none=True)
    async def list_segments(
        http: Request, memory_id: str, after: str = "0", text: str = "", reviewed: str | None = None
    ) -> SegmentsResponse:
        """List segments in the order in which they were first stored, 1,000 in a page."""
        if reviewed not in (None, "true", "false"):
            raise InvalidFields([(("query", "reviewed"), "must be true or false")])
        wanted = None if reviewed is None else reviewed == "true"
        asked = requester_of(http), memory_id, whole_number("after", after, 0, 10**18), PAGE, text, wanted
        segments = await in_thread(memories.segments, *asked)
        cards = [SegmentCard.model_validate(segment, from_attributes=True) for segment in segments]
        return SegmentsResponse(segments=cards, next=segments[-1].number if len(segments) == PAGE else None)

    @router.delete("/memories/{memory_id}/segments", status_code=204, responses=document_errors(422, 503))
    async def delete_segment(http: Request, memory_id: str, source: str) -> Response:
        """Delete the segment of a source."""
        await in_thread(memories.delete_segment, requester_of(http), memory_id, source)
        return Response(status_code=204)

    @router.get("/memories/{memory_id}/file", response_class=Response, responses=TMX_ANSWER)
    async def download_memory(http: Request, memory_id: str) -> Response:
        """Return a memory as TMX 1.4."""
        requester = requester_of(http)
        return tmx_response(memories, requester, await in_thread(memories.get, requester, memory_id))

    return router


def tmx_response(memories: Memories, requester: Requester, memory: Memory) -> Response:
    """Return a memory as TMX, which is written piece by piece."""

    async def pieces() -> AsyncIterator[str]:
        yield tmx_head(memory)
        after = 0
        while segments := await in_thread(memories.segments, requester, memory.id, after):
            yield tmx_units(memory, segments)
            after = segments[-1].number
        yield TMX_END

    headers = {"content-disposition": f'attachment; filename="{memory.id}.tmx"', "x-content-type-options": "nosniff"}
    return StreamingResponse(pieces(), media_type=TMX, headers=headers)


async def _cards(jobs: DocumentJobs, read: Callable[[], list[Memory]]) -> list[MemoryCard]:
    """Return the cards of the memories that `read` finds."""
    memories = await in_thread(read)
    states = {memory.id: await jobs.state(memory.job) for memory in memories if memory.job is not None}
    if states:  # what was read before a job had ended may lack its last segments
        memories = await in_thread(read)
    return [_card(memory, states.get(memory.id)) for memory in memories]


def _card(memory: Memory, job: Job | None) -> MemoryCard:
    progress = None if job is None or job.is_finished else round(job.progress, 3)
    its_job = {"progress": progress, "error": job and job.error, "code": job and job.code}
    return MemoryCard.model_validate(vars(memory) | its_job)
