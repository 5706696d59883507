"""Translation memories in a database. Each has a name, two languages and any number of segments."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rapidfuzz import fuzz, process

from service.access.ownership import Requester
from service.base.errors import InvalidMemory, LimitExceeded, MemoryMismatch, UnknownMemory
from service.memories.likeness import alike, form_of, grams_of, key_of
from service.memories.spans import adapted
from service.schemas.answers import MemoryMatch
from service.schemas.memories import MAX_CHARACTERS
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.storage.sql import sa, tables_of
from service.text.languages import are_same, canonical, subtag

if TYPE_CHECKING:
    from service.memories import tables
else:
    tables = tables_of("service.memories")

MAX_MEMORIES = 1_000
MAX_SEGMENTS = 2_000_000
"""Maximum number of segments in one memory."""
MAX_NAMED_MEMORIES = 5
"""Maximum number of memories that one request may name."""
MAX_MATCHES = 5
"""Maximum number of matches of one text."""
MAX_SEARCHED = 64
"""Maximum number of texts of one request for which similar ones are searched."""
BATCH = 5_000
"""Number of segments that one transaction stores or deletes: other writers wait for it."""
PAGE = 1_000
"""Number of segments that are read, or looked up, at once."""
N_OF_FORM, N_OF_GRAM, N_COMPARED = 20, 100, 100
"""Numbers of candidates: with the same form, with one gram, and with most grams."""
_GRAMS_OF_SQLITE = (
    "CREATE VIRTUAL TABLE attend_grams_{0} "
    "USING fts5(grams, content='', detail='none', columnsize=0, tokenize='ascii')",
    "INSERT INTO attend_grams_{0} (attend_grams_{0}, rank) VALUES ('automerge', 16)",
)
_OF_GRAM = {
    "sqlite": "SELECT rowid AS segment FROM attend_grams_{0} WHERE attend_grams_{0} MATCH :{1}",
    "postgresql": "SELECT number AS segment FROM attend_segments WHERE grams @> ARRAY[CAST(:{1} AS INTEGER)]",
}


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


@dataclass(frozen=True)
class Recalled:
    """What memories have for one text.

    Attributes:
        used: the segment whose translation is the answer, if there is one; its target is the whole translation.
        matches: similar segments, the best first; none beside an answer.
    """

    used: MemoryMatch | None
    matches: list[MemoryMatch]


class Memories:
    """All stored memories.

    Every method may be called from any thread, waits for the database, and raises NotStored if that cannot be used
    now; `delete` and `recall` are for the event loop.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, requester: Requester, name: str, source: str, target: str) -> Memory:
        """Store a new memory. Raises InvalidMemory, LimitExceeded."""
        for code in (source, target):
            if canonical(code) is None:
                raise InvalidMemory(f"{code} is not a language code")
        source, target = canonical(source) or source, canonical(target) or target
        if are_same(source, target):
            raise InvalidMemory(f"A memory needs two languages; both are {source}")
        memory_id, now, stored = str(uuid.uuid4()), self._database.now, tables.MEMORIES
        with self._database.writing() as connection:
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
        if not self._database.exists:
            return []
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(tables.MEMORIES).order_by(tables.MEMORIES.c.number))
            return [_memory(row) for row in rows if requester.may_read(row.owner)]

    def get(self, requester: Requester, memory_id: str) -> Memory:
        """Return a memory. Raises UnknownMemory."""
        with self._database.reading() as connection:
            return self._get(connection, requester, memory_id)

    def put(self, requester: Requester, memory_id: str, segments: Iterable[Segment]) -> int:
        """Store segments, and return the number of those that were skipped because they are empty or too long. A
        segment replaces one with the same source, unless only the other one is reviewed. Raises UnknownMemory,
        NotOwner. LimitExceeded: the memory would have too many segments."""
        given = [(alike(segment.source), segment) for segment in segments]
        texts = [(source, segment) for source, segment in given if source and _is_allowed(segment)]
        stored = tables.SEGMENTS
        with self._database.writing() as connection:
            memory = self._get(connection, requester, memory_id, to_write=True)
            is_sqlite, seed = connection.dialect.name == "sqlite", memory.number
            last = connection.scalar(sa.select(sa.func.max(stored.c.number))) or 0
            now = connection.scalar(sa.select(self._database.now)) or 0.0
            grams = [None] * len(texts) if is_sqlite else [[*map(_signed, _found_by(text, seed))] for text, _ in texts]
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
        with self._database.writing() as connection:
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
        with self._database.reading() as connection:
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
        with self._database.writing() as connection:
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

    async def recall(
        self, requester: Requester, memory_id: str, source: str, target: str, threshold: float, exact_only: bool
    ) -> "Recall":
        """Return a `Recall` of memories. `memory_id` is one id, or several separated by commas; of equal matches that
        of the first memory counts. Raises UnknownMemory. MemoryMismatch: a memory is of other languages.
        LimitExceeded: there are too many ids."""
        ids = [*dict.fromkeys(memory_id.split(","))]
        if len(ids) > MAX_NAMED_MEMORIES:
            raise LimitExceeded(f"`memory_id` names {len(ids)} memories; the limit is {MAX_NAMED_MEMORIES}")
        memories = await in_thread(lambda: [self.get(requester, one) for one in ids])
        for memory in memories:
            if not (are_same(memory.source, source) and are_same(memory.target, target)):
                pair = f"from {memory.source} to {memory.target}, not {source} to {target}"
                raise MemoryMismatch(f"Memory {memory.name!r} is {pair}")
        by_number = {memory.number: memory for memory in memories}
        return Recall(self._database, by_number, (subtag(source), subtag(target)), threshold, exact_only)

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
        connection.execute(this.values(changed_at=self._database.now, **values))

    def _delete_some(self, requester: Requester, memory_id: str) -> bool:
        """Delete some segments of a memory, or the memory, once it has none. Return whether it still exists."""
        stored = tables.SEGMENTS.c
        with self._database.writing() as connection:
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
        rows = [(*command, number, _hexadecimal(_found_by(text, memory))) for number, text in texts]
        added = f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(rows[0]))})"  # noqa: S608
        connection.exec_driver_sql(added, rows)


@dataclass
class Recall:
    """Finds texts in the memories that a request names, by their numbers.

    Attributes:
        languages: the source's and the target's, without regions.
        threshold: the least similarity of a match, 0 to 100.
        exact_only: whether no similar segments are searched.
        n_searched: for how many texts similar ones were searched.
    """

    database: Database
    memories: dict[int, Memory]
    languages: tuple[str, str]
    threshold: float
    exact_only: bool
    n_searched: int = 0

    async def find(self, texts: Iterable[str]) -> dict[str, Recalled]:
        """Return what the memories have for each text. Raises NotStored."""
        found: dict[str, Recalled] = {}
        new = iter(dict.fromkeys(texts))
        while some := [*islice(new, PAGE)]:
            found |= await in_thread(self.look_up, some)
        return found

    def look_up(self, texts: list[str]) -> dict[str, Recalled]:
        """Return what the memories have for each of some texts. Waits for the database. Raises NotStored."""
        with self.database.reading() as connection:
            exact = self._exact(connection, texts)
            found = {text: Recalled(used, []) for text, used in exact.items()}
            rest = [text for text in texts if text not in exact]
            if not self.exact_only:
                searched = rest[: MAX_SEARCHED - self.n_searched]
                self.n_searched += len(searched)
                found |= {text: Recalled(None, self._similar(connection, text)) for text in searched}
        return found

    def _exact(self, connection: "sa.Connection", texts: Sequence[str]) -> dict[str, MemoryMatch]:
        """Return the segments of the same texts, and of those that differ only in kept spans."""
        found = dict[str, MemoryMatch]()
        shown = {text: alike(text) for text in texts}
        keys = {text: key_of(same) for text, same in shown.items()}
        rows = self._rows(connection, "key", [*{*keys.values()}])
        of_key = {row.key: row for row in reversed(rows)}
        for text, key in keys.items():
            if key in of_key and alike(of_key[key].source) == shown[text]:
                found[text] = self._match(of_key[key], 100)
                continue
            grams = [(memory, form_of(shown[text], memory)) for memory in self.memories]
            for row in self._with_grams(connection, grams, N_OF_FORM):
                if (target := adapted(text, row.source, row.target, self.languages)) is not None:
                    found[text] = self._match(row, 100, target)
                    break
        return found

    def _similar(self, connection: "sa.Connection", text: str) -> list[MemoryMatch]:
        """Return the most similar segments, the best first."""
        shown = alike(text)
        rows = self._with_grams(connection, [(n, gram) for n in self.memories for gram in grams_of(shown, n)])
        sources = [alike(row.source) for row in rows]
        best = process.extract(shown, sources, scorer=fuzz.ratio, limit=MAX_MATCHES, score_cutoff=self.threshold)
        return [self._match(rows[i], round(score, 1)) for _, score, i in best]

    def _with_grams(
        self, connection: "sa.Connection", grams: Sequence[tuple[int, int]], limit: int = N_OF_GRAM
    ) -> list[Any]:
        """Return the segments with most of the grams. Each gram comes with the number of its memory."""
        if not grams:
            return []
        dialect = connection.dialect.name
        parts = (
            f"SELECT segment FROM ({_OF_GRAM[dialect].format(memory, f'gram{i}')} LIMIT {limit}) AS of_{i}"  # noqa: S608
            for i, (memory, _) in enumerate(grams)
        )
        most = (
            f"SELECT segment FROM ({' UNION ALL '.join(parts)}) AS found "  # noqa: S608
            f"GROUP BY segment ORDER BY COUNT(*) DESC LIMIT {N_COMPARED}"
        )
        write = _hexadecimal if dialect == "sqlite" else lambda of_one: _signed(*of_one)
        values = {f"gram{i}": write([gram]) for i, (_, gram) in enumerate(grams)}
        numbers = connection.scalars(sa.text(most), values).all()
        return self._rows(connection, "number", numbers) if numbers else []

    def _rows(self, connection: "sa.Connection", column: str, values: Sequence[int]) -> list[Any]:
        """Return reviewed segments, those of the memory that was named first before others, the latest first."""
        order = [*self.memories]
        given = {"values": values, "memories": order} if column == "key" else {"values": values}
        rows = [row for row in connection.execute(_query(column), given) if row.memory in self.memories]
        return sorted(rows, key=lambda row: (order.index(row.memory), -row.changed_at))

    def _match(self, row: Any, similarity: float, target: str | None = None) -> MemoryMatch:
        memory_id = self.memories[row.memory].id
        return MemoryMatch(source=row.source, target=target or row.target, similarity=similarity, memory=memory_id)


@cache
def _query(column: str) -> "sa.Select[Any]":
    """Return the query for segments by keys in some memories, or by numbers. A condition on memories there would lead
    SQLite to read all segments of them."""
    stored = tables.SEGMENTS.c
    which = [stored.is_reviewed, stored[column].in_(sa.bindparam("values", expanding=True))]
    if column == "key":
        which.append(stored.memory.in_(sa.bindparam("memories", expanding=True)))
    return sa.select(stored.memory, stored.key, stored.source, stored.target, stored.changed_at).where(*which)


def _is_allowed(segment: Segment) -> bool:
    return bool(segment.target.strip()) and max(len(segment.source), len(segment.target)) <= MAX_CHARACTERS


def _found_by(text: str, seed: int) -> set[int]:
    return grams_of(text, seed) | {form_of(text, seed)}


def _hexadecimal(grams: Collection[int]) -> str:
    return ("%x " * len(grams)) % (*grams,)


def _signed(gram: int) -> int:
    return gram - 2**31


def _memory(row: Any) -> Memory:
    fields = {**row._mapping}
    for name in ("created_at", "changed_at"):
        fields[name] = datetime.fromtimestamp(fields[name], UTC)
    return Memory(**fields)
