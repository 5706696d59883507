"""Read files of translations into memories: small ones at once, large ones as a job that servers share."""

import asyncio
from collections.abc import Callable
from itertools import islice

from service.access.ownership import Requester
from service.documents.memory_files import MemoryFile
from service.memories.store import BATCH, Memories
from service.storage.database_threads import in_thread

KIND = "memory"
"""The kind of jobs that read a file into a memory, beside those of documents (documents/kinds.py)."""


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
