"""Translation memories in a database. Each has a name, two languages and any number of segments."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from service.access.ownership import Requester
from service.base.errors import InvalidMemory, LimitExceeded, MemoryMismatch, UnknownMemory
from service.memories.likeness import alike, form_of, fts5_words, grams_of, key_of, signed
from service.schemas.memories import MAX_CHARACTERS
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.storage.sql import sa, tables_of
from service.text.languages import are_same, canonical

if TYPE_CHECKING:
    from service.memories import tables
else:
    tables = tables_of("service.memories")

MAX_MEMORIES = 1_000
MAX_SEGMENTS = 2_000_000
"""Maximum number of segments in one memory."""
MAX_NAMED_MEMORIES = 5
"""Maximum number of memories that one request may name."""
BATCH = 5_000
"""Number of segments that one transaction stores or deletes: other writers wait for it."""
PAGE = 1_000
"""Number of segments that are read at once."""
_GRAMS_OF_SQLITE = (
    "CREATE VIRTUAL TABLE attend_grams_{0} "
    "USING fts5(grams, content='', detail='none', columnsize=0, tokenize='ascii')",
    "INSERT INTO attend_grams_{0} (attend_grams_{0}, rank) VALUES ('automerge', 16)",
)


class Segment(NamedTuple):
    """A text and its translation."""

    source: str
    target: str
    context: str | None = None
    author: str | None = None
    is_reviewed: bool = True
    changed_at: datetime | None = None
    """When it was stored; None: not yet."""
    number: int = 0


@dataclass(frozen=True)
class Memory:
    """A memory without its segments.

    Attributes:
        owner: the client of the key that made it; None: everybody.
        job: the id of the last file that was read into it in the background.
    """

    number: int
    id: str
    name: str
    source: str
    target: str
    created_at: datetime
    changed_at: datetime
    n_segments: int
    owner: str | None
    job: str | None


class Memories:
    """All stored memories.

    Every method may be called from any thread, waits for the database, and raises NotStored if that cannot be used
    now; `delete` and `named` are for the event loop.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, requester: Requester, name: str, source: str, target: str, memory_id: str | None = None) -> Memory:
        """Store a new memory, by default with a random id. Raises InvalidMemory, LimitExceeded."""
        for code in (source, target):
            if canonical(code) is None:
                raise InvalidMemory(f"{code} is not a language code")
        source, target = canonical(source) or source, canonical(target) or target
        if are_same(source, target):
            raise InvalidMemory(f"A memory needs two languages; both are {source}")
        memory_id, now, stored = memory_id or str(uuid.uuid4()), self.database.now, tables.MEMORIES
        with self.database.writing() as connection:
            n_memories = connection.scalar(sa.select(sa.func.count()).select_from(stored)) or 0
            if n_memories >= MAX_MEMORIES:
                raise LimitExceeded(f"There are {n_memories} memories, which is the limit; delete one first")
            row = {"id": memory_id, "name": name, "source": source, "target": target, "owner": requester.client}
            connection.execute(sa.insert(stored).values(**row, created_at=now, changed_at=now))
            memory = self._get(connection, requester, memory_id)
            if connection.dialect.name == "sqlite":
                for statement in _GRAMS_OF_SQLITE:
                    connection.exec_driver_sql(statement.format(memory.number))
            return memory

    def all(self, requester: Requester) -> list[Memory]:
        """Return all memories that the requester may read, the oldest first."""
        if not self.database.exists:
            return []
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(tables.MEMORIES).order_by(tables.MEMORIES.c.number))
            return [_memory(row) for row in rows if requester.may_read(row.owner)]

    def get(self, requester: Requester, memory_id: str) -> Memory:
        """Return a memory. Raises UnknownMemory."""
        with self.database.reading() as connection:
            return self._get(connection, requester, memory_id)

    def put(self, requester: Requester, memory_id: str, segments: Iterable[Segment]) -> int:
        """Store segments, and return the number of those that were skipped because they are empty or too long. A
        segment replaces one with the same source, unless only the other one is reviewed. Raises UnknownMemory,
        NotOwner. LimitExceeded: the memory would have too many segments."""
        given = [(alike(segment.source), segment) for segment in segments]
        texts = [(source, segment) for source, segment in given if source and _is_allowed(segment)]
        stored = tables.SEGMENTS
        with self.database.writing() as connection:
            memory = self._get(connection, requester, memory_id, to_write=True)
            is_sqlite, seed = connection.dialect.name == "sqlite", memory.number
            last = connection.scalar(sa.select(sa.func.max(stored.c.number))) or 0
            now = connection.scalar(sa.select(self.database.now)) or 0.0
            grams = [None] * len(texts) if is_sqlite else [[*map(signed, _found_by(text, seed))] for text, _ in texts]
            rows = [
                (number, seed, key_of(text), *segment[:4], now, segment.is_reviewed, its_grams)
                for number, ((text, segment), its_grams) in enumerate(zip(texts, grams, strict=True), start=last + 1)
            ]
            insert = tables.INSERT[connection.dialect.name](stored)
            replaced = {name: insert.excluded[name] for name in Segment._fields[:-1]}
            better = sa.or_(insert.excluded.is_reviewed, sa.not_(stored.c.is_reviewed))  # no suggestion replaces others
            insert = insert.on_conflict_do_update(index_elements=("memory", "key"), set_=replaced, where=better)
            if is_sqlite and rows:  # SQLAlchemy would take as long for the rows as SQLite does
                connection.exec_driver_sql(str(insert.compile(dialect=connection.dialect)), rows)
            elif rows:
                connection.execute(insert, [dict(zip(stored.c.keys(), row, strict=True)) for row in rows])
            new = connection.scalars(sa.select(stored.c.number).where(stored.c.number > last)).all()
            if memory.n_segments + len(new) > MAX_SEGMENTS:
                raise LimitExceeded(f"The memory would have more than {MAX_SEGMENTS:,} segments, which is the limit")
            if is_sqlite and new:
                self._index(connection, seed, [(number, texts[number - last - 1][0]) for number in new])
            self._update(connection, memory, n_segments=memory.n_segments + len(new))
        return len(given) - len(texts)

    def note_job(self, requester: Requester, memory_id: str, job: str) -> None:
        """Note by which job a file is read into the memory. Raises UnknownMemory, NotOwner."""
        with self.database.writing() as connection:
            self._update(connection, self._get(connection, requester, memory_id, to_write=True), job=job)

    def segments(
        self,
        requester: Requester,
        memory_id: str,
        after: int = 0,
        limit: int = PAGE,
        text: str = "",
        reviewed: bool | None = None,
    ) -> list[Segment]:
        """Return segments in the order in which they were first stored, after the one with the number `after`. Source
        or target of each has `text`, in small or capital letters. Raises UnknownMemory."""
        stored = tables.SEGMENTS.c
        with self.database.reading() as connection:
            memory = self._get(connection, requester, memory_id)
            wanted = [stored.memory == memory.number, stored.number > after]
            if text:
                sides = (stored.source, stored.target)
                wanted.append(sa.or_(*(side.icontains(text, autoescape=True) for side in sides)))
            if reviewed is not None:
                wanted.append(stored.is_reviewed == reviewed)
            query = sa.select(*(stored[name] for name in Segment._fields)).where(*wanted)
            rows = connection.execute(query.order_by(stored.number).limit(limit))
            return [Segment(*row)._replace(changed_at=datetime.fromtimestamp(row.changed_at, UTC)) for row in rows]

    def delete_segment(self, requester: Requester, memory_id: str, source: str) -> None:
        """Delete the segment of a source. Raises UnknownMemory: there is none. Raises NotOwner."""
        stored, text = tables.SEGMENTS.c, alike(source)
        with self.database.writing() as connection:
            memory = self._get(connection, requester, memory_id, to_write=True)
            which = sa.and_(stored.memory == memory.number, stored.key == key_of(text))
            number = connection.scalar(sa.select(stored.number).where(which))
            if number is None:
                raise UnknownMemory(f"Memory {memory.name!r} has no segment with this source")
            if connection.dialect.name == "sqlite":  # its index has no texts, so it must be told them again
                self._index(connection, memory.number, [(number, text)], "delete")
            connection.execute(sa.delete(tables.SEGMENTS).where(stored.number == number))
            self._update(connection, memory, n_segments=memory.n_segments - 1)

    async def delete(self, requester: Requester, memory_id: str) -> None:
        """Delete a memory, segments first. Raises UnknownMemory, NotOwner."""
        while await in_thread(self._delete_some, requester, memory_id):
            pass

    async def named(self, requester: Requester, memory_id: str, source: str, target: str) -> dict[int, Memory]:
        """Return memories by their numbers. `memory_id` is one id, or several separated by commas. Raises
        UnknownMemory. Raises MemoryMismatch: a memory is of other languages. Raises LimitExceeded: too many ids."""
        ids = [*dict.fromkeys(memory_id.split(","))]
        if len(ids) > MAX_NAMED_MEMORIES:
            raise LimitExceeded(f"`memory_id` names {len(ids)} memories; the limit is {MAX_NAMED_MEMORIES}")
        memories = await in_thread(lambda: [self.get(requester, each) for each in ids])
        for memory in memories:
            if not (are_same(memory.source, source) and are_same(memory.target, target)):
                pair = f"from {memory.source} to {memory.target}, not {source} to {target}"
                raise MemoryMismatch(f"Memory {memory.name!r} is {pair}")
        return {memory.number: memory for memory in memories}

    def _get(self, connection: "sa.Connection", requester: Requester, memory_id: str, to_write: bool = False) -> Memory:
        query = sa.select(tables.MEMORIES).where(tables.MEMORIES.c.id == memory_id)
        row = connection.execute(query).one_or_none()
        if row is None or not requester.may_read(row.owner):
            raise UnknownMemory(f"No memory has the id {memory_id}")
        if to_write:
            requester.refuse_writing(row.owner, f"Memory {row.name!r}")
        return _memory(row)

    def _update(self, connection: "sa.Connection", memory: Memory, **values: Any) -> None:
        this = sa.update(tables.MEMORIES).where(tables.MEMORIES.c.number == memory.number)
        connection.execute(this.values(changed_at=self.database.now, **values))

    def _delete_some(self, requester: Requester, memory_id: str) -> bool:
        """Delete some segments of a memory, or the memory, once it has none. Return whether it still exists."""
        stored = tables.SEGMENTS.c
        with self.database.writing() as connection:
            memory = self._get(connection, requester, memory_id, to_write=True)
            some = sa.select(stored.number).where(stored.memory == memory.number).limit(BATCH).scalar_subquery()
            n_deleted = connection.execute(sa.delete(tables.SEGMENTS).where(stored.number.in_(some))).rowcount
            if n_deleted:
                self._update(connection, memory, n_segments=memory.n_segments - n_deleted)
                return True
            connection.execute(sa.delete(tables.MEMORIES).where(tables.MEMORIES.c.number == memory.number))
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(f"DROP TABLE attend_grams_{memory.number}")
            return False

    def _index(self, connection: "sa.Connection", memory: int, texts: Iterable[tuple[int, str]], *command: str) -> None:
        """Tell SQLite's index of the texts of segments. A command is one of FTS5."""
        name = f"attend_grams_{memory}"
        columns = ", ".join([*[name] * len(command), "rowid", "grams"])
        rows = [(*command, number, fts5_words(_found_by(text, memory))) for number, text in texts]
        added = f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(rows[0]))})"  # noqa: S608
        connection.exec_driver_sql(added, rows)


def _is_allowed(segment: Segment) -> bool:
    return bool(segment.target.strip()) and max(len(segment.source), len(segment.target)) <= MAX_CHARACTERS


def _found_by(text: str, seed: int) -> set[int]:
    return grams_of(text, seed) | {form_of(text, seed)}


def _memory(row: Any) -> Memory:
    fields = {**row._mapping}
    for name in ("created_at", "changed_at"):
        fields[name] = datetime.fromtimestamp(fields[name], UTC)
    return Memory(**fields)
