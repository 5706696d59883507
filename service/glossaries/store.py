"""Glossaries in a database. Each has a name and any number of dictionaries, one for each language pair.

Every client of the service can see and change all of them.
"""

import asyncio
import json
import re
import sqlite3
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.base.database import Database
from service.base.errors import GlossaryMismatch, InvalidGlossary, LimitExceeded, UnknownGlossary
from service.glossaries.entries import MAX_ENTRIES, Entries
from service.glossaries.terms import TermTable
from service.schemas.requests import GlossaryTerm
from service.text.languages import are_same, canonical, subtag

SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS dictionaries (
    glossary TEXT NOT NULL REFERENCES glossaries (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    entries TEXT NOT NULL,
    n_entries INTEGER NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (glossary, source, target)
);
"""
PUT = """
INSERT INTO dictionaries VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET entries = excluded.entries, n_entries = excluded.n_entries, version = excluded.version
"""
ID = re.compile(r"[0-9a-f-]{36}", re.IGNORECASE)
CODE = re.compile(r"[\w<>-]{1,35}", re.ASCII)

MAX_GLOSSARIES = 1_000
MAX_DICTIONARIES = 100
"""Maximum number of dictionaries in one glossary."""
MAX_NAMED_GLOSSARIES = 5
"""Maximum number of glossaries that one request may name."""
MAX_CACHED_TABLES = 16
"""Number of term tables that stay in memory."""

Pair = tuple[str, str]
"""A source language and a target language."""


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

    Every method may be called from any thread, and waits for the disk; only `table` is for the event loop.

    Args:
        directory: the folder of the database. It is made when the first glossary is stored.
    """

    def __init__(self, directory: Path) -> None:
        self._database = Database(directory / "glossaries.sqlite", SCHEMA)
        self._tables: OrderedDict[tuple[Any, ...], TermTable] = OrderedDict()  # keys: the versions of the dictionaries

    def create(self, name: str, dictionaries: Mapping[Pair, Entries]) -> Glossary:
        """Store a new glossary.

        Raises:
            InvalidGlossary: two dictionaries are of one language pair, or one is too large.
            LimitExceeded: there are too many glossaries.
        """
        glossary_id = str(uuid.uuid4())
        with self._database.writing() as database:
            (n_glossaries,) = database.execute("SELECT COUNT(*) FROM glossaries").fetchone()
            if n_glossaries >= MAX_GLOSSARIES:
                raise LimitExceeded(f"There are {n_glossaries} glossaries, which is the limit; delete one first")
            database.execute("INSERT INTO glossaries VALUES (?, ?, ?)", (glossary_id, name, time.time()))
            for (source, target), entries in dictionaries.items():
                pair = _pair(source, target)
                if self._entries(database, glossary_id, pair) is not None:
                    raise InvalidGlossary(f"Two dictionaries are from {pair[0]} to {pair[1]}")
                _put(database, glossary_id, pair, entries)
            return self._get(database, glossary_id)

    def all(self) -> list[Glossary]:
        """Return all glossaries, the oldest first."""
        with self._database.reading() as database:
            ids = database.execute("SELECT id FROM glossaries ORDER BY created_at, id").fetchall()
            return [self._get(database, glossary_id) for (glossary_id,) in ids]

    def get(self, glossary_id: str) -> Glossary:
        """Return a glossary. Raises UnknownGlossary."""
        with self._database.reading() as database:
            return self._get(database, glossary_id)

    def get_with_entries(self, glossary_id: str) -> tuple[Glossary, list[dict[str, str | GlossaryTerm]]]:
        """Return a glossary and the entries of each of its dictionaries. Raises UnknownGlossary."""
        with self._database.reading() as database:
            glossary = self._get(database, glossary_id)
            pairs = [(one.source, one.target) for one in glossary.dictionaries]
            return glossary, [self._entries(database, glossary_id, pair) or {} for pair in pairs]

    def entries(self, glossary_id: str, source: str, target: str) -> dict[str, str | GlossaryTerm]:
        """Return the entries of one dictionary. Raises UnknownGlossary: it does not exist."""
        with self._database.reading() as database:
            glossary = self._get(database, glossary_id)
            entries = self._entries(database, glossary_id, _pair(source, target))
        if entries is None:
            raise UnknownGlossary(_no_dictionary(glossary, source, target))
        return entries

    def update(
        self, glossary_id: str, name: str | None = None, dictionaries: Mapping[Pair, Entries] | None = None
    ) -> Glossary:
        """Rename a glossary, and add entries to its dictionaries. Missing dictionaries are made. A new entry replaces
        an old one with the same term.

        Raises:
            UnknownGlossary: no glossary has this id.
            InvalidGlossary: there would be too many entries or dictionaries.
        """
        with self._database.writing() as database:
            self._get(database, glossary_id)
            if name is not None:
                database.execute("UPDATE glossaries SET name = ? WHERE id = ?", (name, glossary_id))
            for (source, target), entries in (dictionaries or {}).items():
                pair = _pair(source, target)
                _put(database, glossary_id, pair, {**(self._entries(database, glossary_id, pair) or {}), **entries})
            return self._get(database, glossary_id)

    def put(self, glossary_id: str, source: str, target: str, entries: Entries) -> Dictionary:
        """Store a dictionary. It replaces the dictionary of the same language pair, if there is one.

        Raises:
            UnknownGlossary: no glossary has this id.
            InvalidGlossary: there would be too many entries or dictionaries.
        """
        pair = _pair(source, target)
        with self._database.writing() as database:
            self._get(database, glossary_id)
            _put(database, glossary_id, pair, entries)
        return Dictionary(*pair, len(entries))

    def delete(self, glossary_id: str) -> None:
        """Delete a glossary. Raises UnknownGlossary."""
        with self._database.writing() as database:
            self._get(database, glossary_id)
            database.execute("DELETE FROM glossaries WHERE id = ?", (glossary_id,))

    def delete_dictionary(self, glossary_id: str, source: str, target: str) -> None:
        """Delete one dictionary. Raises UnknownGlossary: it does not exist."""
        with self._database.writing() as database:
            glossary = self._get(database, glossary_id)
            where = (glossary_id, *_pair(source, target))
            deleted = database.execute("DELETE FROM dictionaries WHERE (glossary, source, target) = (?, ?, ?)", where)
            if deleted.rowcount == 0:
                raise UnknownGlossary(_no_dictionary(glossary, source, target))

    async def table(self, glossary_id: str, source: str, target: str) -> TermTable:
        """Return the terms for a language pair. A dictionary for the same region comes before one for another region.

        Args:
            glossary_id: one id, or several separated by commas. If several have a term, the first one counts.

        Raises:
            UnknownGlossary: no glossary has this id.
            GlossaryMismatch: a glossary has no dictionary for these languages.
            LimitExceeded: there are too many ids.
        """
        return await asyncio.to_thread(self._table, glossary_id, source, target)

    def close(self) -> None:
        self._database.close()

    def _table(self, glossary_id: str, source: str, target: str) -> TermTable:
        ids = glossary_id.split(",")
        if len(ids) > MAX_NAMED_GLOSSARIES:
            raise LimitExceeded(f"`glossary_id` names {len(ids)} glossaries; the limit is {MAX_NAMED_GLOSSARIES}")
        with self._database.reading() as database:
            glossaries = [self._get(database, one) for one in ids]
            found = [(one.id, *_closest(one, source, target)) for one in glossaries]
            query = "SELECT {} FROM dictionaries WHERE (glossary, source, target) = (?, ?, ?)"
            versions = tuple(database.execute(query.format("version"), where).fetchone() for where in found)
            table = self._tables.pop(versions, None)
            if table is None:
                stored = [database.execute(query.format("entries"), where).fetchone()[0] for where in reversed(found)]
                entries = {term: translation for one in stored for term, translation in _load(one).items()}
                table = TermTable(entries, subtag(found[0][1]))
            self._tables[versions] = table
            while len(self._tables) > MAX_CACHED_TABLES:
                self._tables.popitem(last=False)
            return table

    def _get(self, database: sqlite3.Connection, glossary_id: str) -> Glossary:
        row = None
        if ID.fullmatch(glossary_id):
            row = database.execute("SELECT name, created_at FROM glossaries WHERE id = ?", (glossary_id,)).fetchone()
        if row is None:
            raise UnknownGlossary(f"No glossary has the id {glossary_id}")
        pairs = database.execute(
            "SELECT source, target, n_entries FROM dictionaries WHERE glossary = ? ORDER BY rowid",
            (glossary_id,),
        )
        dictionaries = tuple(Dictionary(*pair) for pair in pairs)
        return Glossary(glossary_id, row[0], datetime.fromtimestamp(row[1], UTC), dictionaries)

    def _entries(
        self, database: sqlite3.Connection, glossary_id: str, pair: Pair
    ) -> dict[str, str | GlossaryTerm] | None:
        where = (glossary_id, *pair)
        query = "SELECT entries FROM dictionaries WHERE (glossary, source, target) = (?, ?, ?)"
        row = database.execute(query, where).fetchone()
        return None if row is None else _load(row[0])


def _dump(entries: Entries) -> str:
    return json.dumps(entries, ensure_ascii=False, default=GlossaryTerm.model_dump)


def _load(entries: str) -> dict[str, str | GlossaryTerm]:
    loaded = json.loads(entries).items()
    return {term: one if isinstance(one, str) else GlossaryTerm(**one) for term, one in loaded}


def _put(database: sqlite3.Connection, glossary_id: str, pair: Pair, entries: Entries) -> None:
    if len(entries) > MAX_ENTRIES:
        raise InvalidGlossary(f"The dictionary would have {len(entries)} entries; the limit is {MAX_ENTRIES}")
    row = (glossary_id, *pair, _dump(entries), len(entries), uuid.uuid4().hex)
    database.execute(PUT, row)
    query = "SELECT COUNT(*) FROM dictionaries WHERE glossary = ?"
    (n_dictionaries,) = database.execute(query, (glossary_id,)).fetchone()
    if n_dictionaries > MAX_DICTIONARIES:
        raise InvalidGlossary(f"The glossary has {MAX_DICTIONARIES} dictionaries, which is the limit")


def _pair(source: str, target: str) -> Pair:
    """Return both languages in canonical form. Raises InvalidGlossary: one is not a language, or both are the same."""
    for code in (source, target):
        if not CODE.fullmatch(code):
            raise InvalidGlossary(f"{code} is not a language code")
    source, target = canonical(source) or source, canonical(target) or target
    if source == target:
        raise InvalidGlossary(f"A dictionary needs two languages; both are {source}")
    return source, target


def _closest(glossary: Glossary, source: str, target: str) -> Pair:
    """Return the pair of the dictionary for these languages, or close ones: en for en-GB. Raises GlossaryMismatch."""
    wanted = _pair(source, target)
    pairs = [(one.source, one.target) for one in glossary.dictionaries]
    meant = [pair for pair in pairs if all(map(are_same, pair, wanted))]
    if not meant:
        raise GlossaryMismatch(_no_dictionary(glossary, source, target))
    return wanted if wanted in meant else meant[0]


def _no_dictionary(glossary: Glossary, source: str, target: str) -> str:
    there = ", ".join(f"{one.source} to {one.target}" for one in glossary.dictionaries) or "none"
    return f"Glossary {glossary.name!r} has no dictionary from {source} to {target}; available: {there}"
