"""Glossaries in a database. Each has a name and any number of dictionaries, one for each language pair.

A glossary belongs to the key that made it (access/ownership.py).
"""

import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from service.access.ownership import Requester
from service.base.errors import GlossaryMismatch, InvalidGlossary, LimitExceeded, UnknownGlossary
from service.glossaries.entries import MAX_ENTRIES, Entries
from service.glossaries.terms import TermTable
from service.schemas.requests import GlossaryTerm
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.storage.sql import sa, tables_of
from service.text.languages import are_same, canonical, subtag

if TYPE_CHECKING:
    from service.glossaries import tables
else:
    tables = tables_of("service.glossaries")

ID = re.compile(r"[0-9a-f-]{36}", re.IGNORECASE)
CODE = re.compile(r"[\w<>-]{1,35}", re.ASCII)
MAX_GLOSSARIES = 1_000
MAX_DICTIONARIES = 100
MAX_NAMED_GLOSSARIES = 5
"""Maximum number of glossaries that one request may name."""
MAX_CACHED_TABLES = 16
Pair = tuple[str, str]


@dataclass(frozen=True)
class Dictionary:
    source: str
    target: str
    n_entries: int


@dataclass(frozen=True)
class Glossary:
    id: str
    name: str
    created_at: datetime
    dictionaries: tuple[Dictionary, ...]


class Glossaries:
    """All stored glossaries.

    Every method may be called from any thread, waits for the database, and raises NotStored if the database cannot be
    used now; only `table` is for the event loop.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[Any, ...], TermTable] = OrderedDict()  # keys: the versions of the dictionaries

    def create(self, requester: Requester, name: str, dictionaries: Mapping[Pair, Entries]) -> Glossary:
        """Store a new glossary. Raises InvalidGlossary: two dictionaries are of the same language pair, or a dictionary
        is too large. LimitExceeded: there are too many glossaries."""
        glossary_id = str(uuid.uuid4())
        with self._database.writing() as connection:
            n_glossaries = connection.scalar(sa.select(sa.func.count()).select_from(tables.GLOSSARIES)) or 0
            if n_glossaries >= MAX_GLOSSARIES:
                raise LimitExceeded(f"There are {n_glossaries} glossaries, which is the limit; delete one first")
            glossary = {"id": glossary_id, "name": name, "created_at": self._database.now, "owner": requester.client}
            connection.execute(sa.insert(tables.GLOSSARIES).values(glossary))
            for (source, target), entries in dictionaries.items():
                pair = _pair(source, target)
                if self._entries(connection, glossary_id, pair) is not None:
                    raise InvalidGlossary(f"Two dictionaries are from {pair[0]} to {pair[1]}")
                _put(connection, glossary_id, pair, entries)
            return self._get(connection, requester, glossary_id)

    def all(self, requester: Requester) -> list[Glossary]:
        """Return all glossaries that the requester may read, the oldest first."""
        with self._database.reading() as connection:
            stored = tables.GLOSSARIES.c
            rows = connection.execute(sa.select(stored.id, stored.owner).order_by(stored.created_at, stored.id)).all()
            return [self._get(connection, requester, row.id) for row in rows if requester.may_read(row.owner)]

    def get(self, requester: Requester, glossary_id: str) -> Glossary:
        """Return a glossary. Raises UnknownGlossary."""
        with self._database.reading() as connection:
            return self._get(connection, requester, glossary_id)

    def get_with_entries(
        self, requester: Requester, glossary_id: str
    ) -> tuple[Glossary, list[dict[str, str | GlossaryTerm]]]:
        """Return a glossary and the entries of each of its dictionaries. Raises UnknownGlossary."""
        with self._database.reading() as connection:
            glossary = self._get(connection, requester, glossary_id)
            pairs = [(dictionary.source, dictionary.target) for dictionary in glossary.dictionaries]
            return glossary, [self._entries(connection, glossary_id, pair) or {} for pair in pairs]

    def entries(
        self, requester: Requester, glossary_id: str, source: str, target: str
    ) -> dict[str, str | GlossaryTerm]:
        """Return the entries of one dictionary. Raises UnknownGlossary: it does not exist."""
        with self._database.reading() as connection:
            glossary = self._get(connection, requester, glossary_id)
            entries = self._entries(connection, glossary_id, _pair(source, target))
        if entries is None:
            raise UnknownGlossary(_no_dictionary(glossary, source, target))
        return entries

    def update(
        self,
        requester: Requester,
        glossary_id: str,
        name: str | None = None,
        dictionaries: Mapping[Pair, Entries] | None = None,
    ) -> Glossary:
        """Rename a glossary, and add entries to old or new dictionaries. A new entry replaces an entry with the same
        term. Raises UnknownGlossary, NotOwner. InvalidGlossary: there would be too many entries or dictionaries."""
        with self._database.writing() as connection:
            self._get(connection, requester, glossary_id, to_write=True)
            if name is not None:
                renamed = sa.update(tables.GLOSSARIES).where(tables.GLOSSARIES.c.id == glossary_id)
                connection.execute(renamed.values(name=name))
            for (source, target), entries in (dictionaries or {}).items():
                pair = _pair(source, target)
                _put(connection, glossary_id, pair, {**(self._entries(connection, glossary_id, pair) or {}), **entries})
            return self._get(connection, requester, glossary_id)

    def put(self, requester: Requester, glossary_id: str, source: str, target: str, entries: Entries) -> Dictionary:
        """Store a dictionary. It replaces the dictionary of the same language pair, if there is one. Raises
        UnknownGlossary, NotOwner. InvalidGlossary: there would be too many entries or dictionaries."""
        pair = _pair(source, target)
        with self._database.writing() as connection:
            self._get(connection, requester, glossary_id, to_write=True)
            _put(connection, glossary_id, pair, entries)
        return Dictionary(*pair, len(entries))

    def delete(self, requester: Requester, glossary_id: str) -> None:
        """Delete a glossary. Raises UnknownGlossary, NotOwner."""
        with self._database.writing() as connection:
            self._get(connection, requester, glossary_id, to_write=True)
            connection.execute(sa.delete(tables.GLOSSARIES).where(tables.GLOSSARIES.c.id == glossary_id))

    def delete_dictionary(self, requester: Requester, glossary_id: str, source: str, target: str) -> None:
        """Delete one dictionary. Raises UnknownGlossary: it does not exist. Raises NotOwner."""
        with self._database.writing() as connection:
            glossary = self._get(connection, requester, glossary_id, to_write=True)
            which = _is_of(glossary_id, *_pair(source, target))
            if connection.execute(sa.delete(tables.DICTIONARIES).where(which)).rowcount == 0:
                raise UnknownGlossary(_no_dictionary(glossary, source, target))

    async def table(self, requester: Requester, glossary_id: str, source: str, target: str) -> TermTable:
        """Return the terms for a language pair. Dictionaries for the same region come before those for other regions.

        Args:
            glossary_id: an id, or several separated by commas. If several glossaries have a term, the first counts.

        Raises:
            UnknownGlossary: no glossary has this id.
            GlossaryMismatch: a glossary has no dictionary for these languages.
            LimitExceeded: there are too many ids.
        """
        return await in_thread(self._table, requester, glossary_id, source, target)

    def _table(self, requester: Requester, glossary_id: str, source: str, target: str) -> TermTable:
        ids = glossary_id.split(",")
        if len(ids) > MAX_NAMED_GLOSSARIES:
            raise LimitExceeded(f"`glossary_id` names {len(ids)} glossaries; the limit is {MAX_NAMED_GLOSSARIES}")
        stored = tables.DICTIONARIES.c
        with self._database.reading() as connection:
            glossaries = [self._get(connection, requester, id_) for id_ in ids]
            keys = [(glossary.id, *_closest(glossary, source, target)) for glossary in glossaries]
            versions = tuple(connection.scalar(sa.select(stored.version).where(_is_of(*key))) for key in keys)
            with self._lock:
                table = self._tables.get(versions)
            if table is None:
                queries = (sa.select(stored.entries).where(_is_of(*key)) for key in reversed(keys))
                texts = [connection.scalar(query) or "{}" for query in queries]
                entries = {term: translation for text in texts for term, translation in _load(text).items()}
        if table is None:  # this may take a second, so the transaction has ended
            table = TermTable(entries, subtag(keys[0][1]))
        with self._lock:
            self._tables[versions] = table
            self._tables.move_to_end(versions)
            while len(self._tables) > MAX_CACHED_TABLES:
                self._tables.popitem(last=False)
        return table

    def _get(
        self, connection: "sa.Connection", requester: Requester, glossary_id: str, to_write: bool = False
    ) -> Glossary:
        stored, dictionary = tables.GLOSSARIES.c, tables.DICTIONARIES.c
        row = None
        if ID.fullmatch(glossary_id):
            query = sa.select(stored.name, stored.created_at, stored.owner).where(stored.id == glossary_id)
            row = connection.execute(query).one_or_none()
        if row is None or not requester.may_read(row.owner):
            raise UnknownGlossary(f"No glossary has the id {glossary_id}")
        if to_write:
            requester.refuse_writing(row.owner, f"Glossary {row.name!r}")
        query = sa.select(dictionary.source, dictionary.target, dictionary.n_entries)
        rows = connection.execute(query.where(dictionary.glossary == glossary_id).order_by(dictionary.number))
        dictionaries = tuple(Dictionary(*columns) for columns in rows)
        return Glossary(glossary_id, row.name, datetime.fromtimestamp(row.created_at, UTC), dictionaries)

    def _entries(
        self, connection: "sa.Connection", glossary_id: str, pair: Pair
    ) -> dict[str, str | GlossaryTerm] | None:
        entries = connection.scalar(sa.select(tables.DICTIONARIES.c.entries).where(_is_of(glossary_id, *pair)))
        return None if entries is None else _load(entries)


def _is_of(glossary_id: str, source: str, target: str) -> "sa.ColumnElement[bool]":
    stored = tables.DICTIONARIES.c
    return sa.and_(stored.glossary == glossary_id, stored.source == source, stored.target == target)


def _load(entries: str) -> dict[str, str | GlossaryTerm]:
    loaded = json.loads(entries).items()
    return {term: entry if isinstance(entry, str) else GlossaryTerm(**entry) for term, entry in loaded}


def _put(connection: "sa.Connection", glossary_id: str, pair: Pair, entries: Entries) -> None:
    if len(entries) > MAX_ENTRIES:
        raise InvalidGlossary(f"The dictionary would have {len(entries)} entries; the limit is {MAX_ENTRIES}")
    stored = tables.DICTIONARIES
    dumped = json.dumps(entries, ensure_ascii=False, default=GlossaryTerm.model_dump)
    row = {"entries": dumped, "n_entries": len(entries), "version": uuid.uuid4().hex}
    if connection.execute(sa.update(stored).where(_is_of(glossary_id, *pair)).values(row)).rowcount == 0:
        row |= {"glossary": glossary_id, "source": pair[0], "target": pair[1]}
        connection.execute(sa.insert(stored).values(row))
    dictionaries = sa.select(sa.func.count()).select_from(stored).where(stored.c.glossary == glossary_id)
    if (connection.scalar(dictionaries) or 0) > MAX_DICTIONARIES:
        raise InvalidGlossary(f"The glossary has {MAX_DICTIONARIES} dictionaries, which is the limit")


def _pair(source: str, target: str) -> Pair:
    """Return both languages in canonical form. Raises InvalidGlossary: a code is no language, or both are the same."""
    for code in (source, target):
        if not CODE.fullmatch(code):
            raise InvalidGlossary(f"{code} is not a language code")
    source, target = canonical(source) or source, canonical(target) or target
    if source == target:
        raise InvalidGlossary(f"A dictionary needs two languages; both are {source}")
    return source, target


def _closest(glossary: Glossary, source: str, target: str) -> Pair:
    """Return the pair of the dictionary for these or close languages: en for en-GB. Raises GlossaryMismatch."""
    wanted = _pair(source, target)
    pairs = [(dictionary.source, dictionary.target) for dictionary in glossary.dictionaries]
    meant = [pair for pair in pairs if all(map(are_same, pair, wanted))]
    if not meant:
        raise GlossaryMismatch(_no_dictionary(glossary, source, target))
    return wanted if wanted in meant else meant[0]


def _no_dictionary(glossary: Glossary, source: str, target: str) -> str:
    pairs = ", ".join(f"{dictionary.source} to {dictionary.target}" for dictionary in glossary.dictionaries) or "none"
    return f"Glossary {glossary.name!r} has no dictionary from {source} to {target}; available: {pairs}"
