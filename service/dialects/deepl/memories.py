"""DeepL's translation memories: listed, looked into and deleted."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.access.guards import requester_of
from service.dialects.deepl.languages import code_of
from service.http.json_route import whole_number
from service.memories.store import PAGE, Memories, Memory, Segment
from service.storage.database_threads import in_thread

Answer = dict[str, Any]
MAX_PAGE = 25


def add_memories(router: APIRouter, memories: Memories) -> None:
    """Add the routes. They wait for the database in threads."""

    @router.get("/v3/translation_memories")
    async def list_memories(http: Request, page: str = "0", page_size: str = "10") -> Answer:
        """List translation memories, the oldest first."""
        number, n = whole_number("page", page, 0, 10**6), whole_number("page_size", page_size, 1, MAX_PAGE)
        stored = await in_thread(memories.all, requester_of(http))
        shown = [_described(memory) for memory in stored[number * n : (number + 1) * n]]
        return {"translation_memories": shown, "total_count": len(stored)}

    @router.get("/v3/translation_memories/{memory_id}")
    async def get_memory(http: Request, memory_id: str) -> Answer:
        """Return a translation memory without its segments."""
        return _described(await in_thread(memories.get, requester_of(http), memory_id))

    @router.delete("/v3/translation_memories/{memory_id}", status_code=204)
    async def delete_memory(http: Request, memory_id: str) -> Response:
        """Delete a translation memory."""
        await memories.delete(requester_of(http), memory_id)
        return Response(status_code=204)

    @router.get("/v3/translation_memories/{memory_id}/segments")
    async def list_segments(
        http: Request, memory_id: str, page_size: str = "100", page_cursor: str = "0", filter_text: str = ""
    ) -> Answer:
        """List segments; the filter is found in small and in capital letters."""
        n, after = whole_number("page_size", page_size, 1, PAGE), whole_number("page_cursor", page_cursor, 0, 10**18)
        requester = requester_of(http)
        memory = await in_thread(memories.get, requester, memory_id)
        segments = await in_thread(memories.segments, requester, memory_id, after, n + 1, filter_text)
        shown = [_segment(segment, memory) for segment in segments[:n]]
        more = {"next_page_cursor": str(segments[n - 1].number)} if len(segments) > n else {}
        return {"segments": shown, "segment_count": memory.n_segments} | more


def _described(memory: Memory) -> Answer:
    return {
        "translation_memory_id": memory.id,
        "name": memory.name,
        "source_language": code_of(memory.source).lower(),
        "target_languages": [code_of(memory.target).lower()],
        "segment_count": memory.n_segments,
        "creation_time": memory.created_at,
        "updated_time": memory.changed_at,
    }


def _segment(segment: Segment, memory: Memory) -> Answer:
    target = {
        "target_segment_id": str(segment.number),
        "target_language": code_of(memory.target).lower(),
        "target_text": segment.target,
        "updated_time": segment.changed_at,
    }
    shown = {"source_segment_id": str(segment.number), "source_text": segment.source, "targets": [target]}
    return shown | {"updated_time": segment.changed_at}
