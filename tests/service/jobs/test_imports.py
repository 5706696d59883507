"""Files that are read into new memories, by one server after the other."""

import asyncio
import json

import pytest

from service.access.ownership import ANYBODY
from service.jobs import imports
from service.jobs.imports import KIND, import_of, memory_of
from service.jobs.job import Job
from service.jobs.store import JobStore
from service.memories.store import Memories

pytestmark = pytest.mark.anyio

UNIT = '<tu><tuv xml:lang="en"><seg>{0}</seg></tuv><tuv xml:lang="de"><seg>{1}</seg></tuv></tu>'
TMX = (
    f"<tmx><body>{UNIT.format('dog', 'Hund')}{UNIT.format('cat', 'Katze')}{UNIT.format('x', '')}</body></tmx>".encode()
)


@pytest.fixture
def job(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that makes a memory, in batches of one segment."""
    monkeypatch.setattr(imports, "BATCH", 1)
    options = json.dumps({"owner": "ann", "name": "Dogs"})
    return JobStore(memories.database, 100, 3).add(TMX, "a.tmx", KIND, ("", ""), options, len(TMX), 100)[0]


async def test_another_server_continues_in_the_same_memory(memories: Memories, job: Job) -> None:
    def stop(_: float) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await import_of(memories, job, TMX, stop)
    assert [memory.n_segments for memory in memories.all(ANYBODY)] == [1]
    assert await import_of(memories, job, TMX, lambda _: None) == 1
    (memory,) = memories.all(ANYBODY)
    assert (memory.id, memory.owner, memory.name) == (memory_of(job), "ann", "Dogs")
    assert (memory.source, memory.target, memory.n_segments) == ("en", "de", 2)


async def test_a_memory_whose_file_cannot_be_read_to_its_end_does_not_stay(memories: Memories, job: Job) -> None:
    def fail(_: float) -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await import_of(memories, job, TMX, fail)
    assert memories.all(ANYBODY) == []
