"""Read files of translations into memories: small ones at once, large ones as a job that servers share."""

import asyncio
import json
import uuid
from collections.abc import Callable
from itertools import islice

from service.access.ownership import ANYBODY, Requester
from service.base.errors import UnknownMemory
from service.documents.memory_files import MemoryFile, tmx_languages
from service.jobs.job import Job
from service.memories.store import BATCH, Memories
from service.storage.database_threads import in_thread

KIND = "memory"
"""The kind of jobs that read a file into a memory, beside those of documents (documents/kinds.py)."""
UPLOAD, DOWNLOAD = "memory upload", "memory download"
"""Kinds of jobs on which no server works. Until their deadline, a client may send the file of a new memory, which makes
the job one of KIND, or fetch the file of a memory."""
ADDRESS_S = 3_600.0
"""Seconds until the deadline of both."""


async def import_file(
    memories: Memories,
    requester: Requester,
    memory_id: str,
    file: MemoryFile,
    on_progress: Callable[[float], None] = lambda _: None,
) -> int:
    """Store all segments of a file, and return the number of those that were skipped. `on_progress` receives the share
    that was read, 0 to 1. Raises InvalidMemory, LimitExceeded, NotStored, UnknownMemory, NotOwner: what was stored
    before stays."""
    segments, n_skipped = file.segments(), 0
    while batch := await asyncio.to_thread(lambda: [*islice(segments, BATCH)]):
        n_skipped += await in_thread(memories.put, requester, memory_id, batch)
        on_progress(file.progress)
    return n_skipped


async def import_of(memories: Memories, job: Job, data: bytes, on_progress: Callable[[float], None]) -> int:
    """Read the file of a job into its memory, or into a new one, which does not stay if that fails. Raises as
    `import_file`; InvalidMemory: a file for a new memory is no TMX, or has not two languages."""
    options = json.loads(job.options)
    if "memory_id" in options:
        file = MemoryFile(job.file_name, data, job.source, job.target)
        return await import_file(memories, ANYBODY, options["memory_id"], file, on_progress)
    memory_id = memory_of(job)
    try:
        memory = await in_thread(memories.get, ANYBODY, memory_id)  # another server began to read the file
    except UnknownMemory:
        languages = await asyncio.to_thread(tmx_languages, data)
        made = Requester(options["owner"]), options["name"], *languages, memory_id
        memory = await in_thread(memories.create, *made)
    try:
        file = MemoryFile("memory.tmx", data, memory.source, memory.target)
        return await import_file(memories, ANYBODY, memory_id, file, on_progress)
    except Exception:
        await memories.delete(ANYBODY, memory_id)
        raise


def memory_of(job: Job) -> str:
    """Return the id of the memory that a job makes. It is the same for every server that works on the job."""
    return str(uuid.UUID(job.id))
