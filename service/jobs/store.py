"""Documents on their way, in a database and files that several servers share.

A server claims a job, tells now and then that it is alive, and writes the result. Jobs of a server that has died are
queued again by another one. Whoever deletes a job takes it from the server that works on it.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from service.base.database import Database
from service.base.errors import DocumentFailed, DocumentNotReady, NotStored, QueueFull, UnknownDocument
from service.jobs.files import JobFiles
from service.jobs.job import Job

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    file_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    options TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued',
    n_characters INTEGER NOT NULL,
    n_translated INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    deadline REAL NOT NULL,
    begun_at REAL,
    finished_at REAL,
    error TEXT,
    key_digest BLOB NOT NULL,
    owner TEXT,
    seen_at REAL,
    n_claims INTEGER NOT NULL DEFAULT 0,
    fetched INTEGER NOT NULL DEFAULT 0
);
"""
ID = re.compile(r"[0-9a-f]{32}")
N_SHOWN = len(fields(Job))
"""A row begins with what is known of a job; then comes the digest of its key."""

QUEUE = """
UPDATE jobs SET status = 'queued', owner = NULL, n_translated = 0, n_claims = n_claims - ?
WHERE id = ? AND owner = ? AND status = 'translating'
"""
SILENT_LOOKS = 8
"""After so many looks of another server that find nothing new, a server counts as dead."""
MAX_CLAIMS = 2
"""A job that two servers died with is given up."""


class JobStore:
    """Every method may be called from any thread, and waits for the disk.

    Args:
        directory: where all of it is, or will be.
        kept_s: after which a finished document is forgotten.
        most: documents at once, finished ones too.
    """

    def __init__(self, directory: Path, kept_s: float, most: int, clock: Callable[[], float] = time.time) -> None:
        self._files = JobFiles(directory / "documents")
        self._database = Database(directory / "documents.sqlite", SCHEMA)
        self._kept_s = kept_s
        self._most = most
        self._clock = clock
        self._looks: dict[tuple[str, str, float], int] = {}
        """How many found a job as its owner had told of it last."""

    def add(
        self,
        data: bytes,
        file_name: str,
        kind: str,
        languages: tuple[str, str],
        options: str,
        n_characters: int,
        timeout_s: float,
    ) -> tuple[Job, str]:
        """Queue a document; its key lets its client ask for it.

        Raises:
            QueueFull: there are too many, and none that was fetched already.
            NotStored: it cannot be stored, as on a full disk.
        """
        self.sweep()
        job_id, key = secrets.token_hex(16), secrets.token_hex(32)
        now = self._clock()
        row = (job_id, file_name, kind, *languages, options, n_characters, now, now + timeout_s, _digest(key))
        try:
            with self._database.writing() as database:
                self._make_room(database)
                self._files.write_source(job_id, data)
                database.execute(
                    "INSERT INTO jobs (id, file_name, kind, source, target, options, n_characters, created_at, "
                    "deadline, key_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
        except BaseException:
            self._files.delete_source(job_id)
            raise
        return self.get(job_id, key), key

    def get(self, job_id: str, key: str) -> Job:
        """An error that is told counts as fetched. Raises UnknownDocument: there is none, or the key is of another."""
        row = None
        if ID.fullmatch(job_id) and self._database.exists:
            with self._database.reading() as database:
                row = database.execute("SELECT *, fetched FROM jobs WHERE id = ?", (job_id,)).fetchone()
        if row is None or not hmac.compare_digest(row[N_SHOWN], _digest(key)):
            raise UnknownDocument("No document has this id and key; it may have been deleted")
        job, is_fetched = Job(*row[:N_SHOWN]), row[-1]
        if job.status == "error" and not is_fetched:
            self._note_fetched(job_id)
        return job

    def result(self, job_id: str, key: str) -> tuple[Job, bytes]:
        """The translated document.

        Raises:
            UnknownDocument: there is none.
            DocumentNotReady: it is not translated.
            DocumentFailed: it cannot be.
        """
        job = self.get(job_id, key)
        if job.status == "error":
            raise DocumentFailed(f"The document could not be translated: {job.error}")
        if job.status != "done":
            raise DocumentNotReady(f"The document is not translated yet: it is {job.status}")
        data = self._files.result(job_id)
        self._note_fetched(job_id)
        return job, data

    def delete(self, job_id: str, key: str) -> None:
        """Forget it, and give it up if it is being translated. Raises UnknownDocument."""
        self.get(job_id, key)
        with self._database.writing() as database:
            self._forget(database, job_id)

    def claim(self, owner: str) -> Job | None:
        """The next job for a server, if one waits."""
        if not self._database.exists:
            return None
        now = self._clock()
        with self._database.writing() as database:
            oldest = "SELECT * FROM jobs WHERE status = 'queued' ORDER BY created_at LIMIT 1"
            row = database.execute(oldest).fetchone()
            if row is None:
                return None
            job = Job(*row[:N_SHOWN])
            database.execute(
                "UPDATE jobs SET status = 'translating', owner = ?, seen_at = ?, begun_at = ?, n_translated = 0, "
                "n_claims = n_claims + 1 WHERE id = ?",
                (owner, now, now, job.id),
            )
            return job

    def queue_again(self, owner: str, running: Collection[str]) -> None:
        """Queue what no server translates any more; a job that servers died with is given up.

        Jobs of other servers count as such when `SILENT_LOOKS` calls in a row have found nothing new of them. Silence
        is not counted by the clock: no server is to blame when all of them were paused.

        Args:
            running: jobs that the owner translates. It could not tell what became of others that are its own; that is
                no claim against them.
        """
        if not self._database.exists:
            return
        given_up = []
        with self._database.writing() as database:
            query = "SELECT id, owner, seen_at, n_claims FROM jobs WHERE status = 'translating'"
            jobs = database.execute(query).fetchall()
            self._looks = {job[:3]: self._looks.get(job[:3], -1) + 1 for job in jobs}
            for job_id, its_owner, seen_at, n_claims in jobs:
                is_own, looks = its_owner == owner, self._looks[job_id, its_owner, seen_at]
                is_translated = job_id in running if is_own else looks < SILENT_LOOKS
                if is_translated:
                    continue
                if is_own or n_claims < MAX_CLAIMS:
                    database.execute(QUEUE, (is_own, job_id, its_owner))
                else:
                    self._finish(database, job_id, "error", f"{n_claims} servers ended while they translated it")
                    given_up.append(job_id)
        for job_id in given_up:
            self._files.delete(job_id)

    def source(self, job_id: str) -> bytes:
        """The document as it came. Raises UnknownDocument: it was deleted."""
        return self._files.source(job_id)

    def tell(self, job_id: str, owner: str, n_translated: int) -> bool:
        """The owner is alive, and so far; whether the job is still its own."""
        with self._database.writing() as database:
            told = database.execute(
                "UPDATE jobs SET seen_at = ?, n_translated = ? WHERE id = ? AND owner = ? AND status = 'translating'",
                (self._clock(), n_translated, job_id, owner),
            )
            return told.rowcount == 1

    def release(self, job_id: str, owner: str) -> None:
        """Let another server take the job up, from its beginning."""
        with self._database.writing() as database:
            database.execute(QUEUE, (1, job_id, owner))

    def finish(self, job_id: str, owner: str, result: bytes) -> None:
        """The document is translated, if anybody still wants it."""
        with self._database.writing() as database:
            if not self._is_own(database, job_id, owner):
                return
            self._files.write_result(job_id, result)
            self._finish(database, job_id, "done", None)
        self._files.delete_source(job_id)

    def fail(self, job_id: str, owner: str, error: str) -> None:
        with self._database.writing() as database:
            if not self._is_own(database, job_id, owner):
                return
            self._finish(database, job_id, "error", error)
        self._files.delete(job_id)

    def sweep(self) -> None:
        """Forget what was finished long ago, give up what has waited too long, and delete files of neither."""
        if not self._database.exists:
            return
        now = self._clock()
        with self._database.writing() as database:
            old = database.execute("SELECT id FROM jobs WHERE finished_at < ?", (now - self._kept_s,)).fetchall()
            for (job_id,) in old:
                self._forget(database, job_id)
            late = database.execute("SELECT id FROM jobs WHERE status = 'queued' AND deadline < ?", (now,)).fetchall()
            for (job_id,) in late:
                self._finish(database, job_id, "error", "The deadline passed before its translation began")
            known = {job_id for (job_id,) in database.execute("SELECT id FROM jobs")}
        for (job_id,) in late:
            self._files.delete(job_id)
        self._files.delete_others(known)

    def close(self) -> None:
        self._database.close()

    def _make_room(self, database: sqlite3.Connection) -> None:
        (n_jobs,) = database.execute("SELECT COUNT(*) FROM jobs").fetchone()
        if n_jobs < self._most:
            return
        oldest = "SELECT id FROM jobs WHERE fetched ORDER BY finished_at LIMIT 1"
        fetched = database.execute(oldest).fetchone()
        if fetched is None:
            raise QueueFull(
                f"There are {n_jobs} documents, which is the limit; delete one, or try again later", retry_after_s=30
            )
        self._forget(database, fetched[0])

    def _is_own(self, database: sqlite3.Connection, job_id: str, owner: str) -> bool:
        query = "SELECT 1 FROM jobs WHERE id = ? AND owner = ? AND status = 'translating'"
        return database.execute(query, (job_id, owner)).fetchone() is not None

    def _finish(self, database: sqlite3.Connection, job_id: str, status: str, error: str | None) -> None:
        """Its source is deleted once this is written, and not before."""
        database.execute(
            "UPDATE jobs SET status = ?, error = ?, finished_at = ?, owner = NULL WHERE id = ?",
            (status, error, self._clock(), job_id),
        )

    def _forget(self, database: sqlite3.Connection, job_id: str) -> None:
        """Its files go first: on a full disk nothing is written before there is room."""
        self._files.delete(job_id)
        database.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def _note_fetched(self, job_id: str) -> None:
        """So that it may make room for others; who fetches it gets it in any case."""
        with suppress(NotStored), self._database.writing() as database:
            database.execute("UPDATE jobs SET fetched = 1 WHERE id = ?", (job_id,))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
