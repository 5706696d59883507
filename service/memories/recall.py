"""Find texts in translation memories: the same ones, those that differ in kept spans only, and similar ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz, process

from service.access.ownership import Requester
from service.memories.likeness import alike, form_of, fts5_words, grams_of, key_of, signed
from service.memories.spans import adapted
from service.memories.store import PAGE, Memories, Memory
from service.schemas.answers import MemoryMatch
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.storage.sql import sa, tables_of
from service.text.languages import subtag

if TYPE_CHECKING:
    from service.memories import tables
else:
    tables = tables_of("service.memories")

MAX_MATCHES = 5
"""Maximum number of matches of one text."""
MAX_SEARCHED = 64
"""Maximum number of texts of one request for which similar ones are searched."""
N_OF_FORM, N_OF_GRAM, N_COMPARED = 20, 100, 100
"""Numbers of candidates: with the same form, with one gram, and with most grams."""
_OF_GRAM = {
    "sqlite": "SELECT rowid AS segment FROM attend_grams_{0} WHERE attend_grams_{0} MATCH :{1}",
    "postgresql": "SELECT number AS segment FROM attend_segments WHERE grams @> ARRAY[CAST(:{1} AS INTEGER)]",
}


@dataclass(frozen=True)
class Recalled:
    """What memories have for one text.

    Attributes:
        used: the segment whose translation is the answer, if there is one; its target is the whole translation.
        matches: similar segments, the best first; none beside an answer.
    """

    used: MemoryMatch | None
    matches: list[MemoryMatch]


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

    @classmethod
    async def of(
        cls,
        memories: Memories,
        requester: Requester,
        memory_id: str,
        languages: tuple[str, str],
        threshold: float,
        exact_only: bool,
    ) -> "Recall":
        """Return the recall of memories. `memory_id` is one id, or several separated by commas. Of equal matches that
        of the first memory counts. `languages` are the source's and the target's. Raises UnknownMemory, MemoryMismatch,
        LimitExceeded."""
        by_number = await memories.named(requester, memory_id, *languages)
        without_regions = subtag(languages[0]), subtag(languages[1])
        return cls(memories.database, by_number, without_regions, threshold, exact_only)

    async def find(self, texts: Iterable[str]) -> dict[str, Recalled]:
        """Return what the memories have for each text. Raises NotStored."""
        recalled: dict[str, Recalled] = {}
        new = iter(dict.fromkeys(texts))
        while some := [*islice(new, PAGE)]:
            recalled |= await in_thread(self.look_up, some)
        return recalled

    def look_up(self, texts: list[str]) -> dict[str, Recalled]:
        """Return what the memories have for each of some texts. Waits for the database. Raises NotStored."""
        with self.database.reading() as connection:
            exact = self._exact(connection, texts)
            recalled = {text: Recalled(used, []) for text, used in exact.items()}
            rest = [text for text in texts if text not in exact]
            if not self.exact_only:
                searched = rest[: MAX_SEARCHED - self.n_searched]
                self.n_searched += len(searched)
                recalled |= {text: Recalled(None, self._similar(connection, text)) for text in searched}
        return recalled

    def _exact(self, connection: "sa.Connection", texts: Sequence[str]) -> dict[str, MemoryMatch]:
        """Return the segments of the same texts, and of those that differ only in kept spans."""
        exact = dict[str, MemoryMatch]()
        shown = {text: alike(text) for text in texts}
        keys = {text: key_of(compared) for text, compared in shown.items()}
        rows = self._rows(connection, "key", [*{*keys.values()}])
        of_key = {row.key: row for row in reversed(rows)}
        for text, key in keys.items():
            if key in of_key and alike(of_key[key].source) == shown[text]:
                exact[text] = self._match(of_key[key], 100)
                continue
            grams = [(memory, form_of(shown[text], memory)) for memory in self.memories]
            for row in self._with_grams(connection, grams, N_OF_FORM):
                if (target := adapted(text, row.source, row.target, self.languages)) is not None:
                    exact[text] = self._match(row, 100, target)
                    break
        return exact

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
        values = {
            f"gram{i}": fts5_words([gram]) if dialect == "sqlite" else signed(gram) for i, (_, gram) in enumerate(grams)
        }
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
