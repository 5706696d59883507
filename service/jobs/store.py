"""The queue of documents, in a database and files that several servers share.

A server claims a job, reports its progress now and then, and writes the result. When a server dies, another one queues
its jobs again. Deleting a job stops the work on it.
"""

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args

from service.base.database import Database
from service.base.errors import DocumentFailed, DocumentNotReady, NotStored, QueueFull, UnknownDocument
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
N_JOB_COLUMNS = len(fields(Job))
"""Number of columns that are fields of `Job`; the digest of the key follows them."""

QUEUE = """
UPDATE jobs SET status = 'queued', owner = NULL, n_translated = 0, n_claims = n_claims - ?
WHERE id = ? AND owner = ? AND status = 'translating'
"""
MAX_SILENT_CHECKS = 8
"""A server counts as dead when another server has seen no progress in this many checks."""
MAX_CLAIMS = 2
"""A job fails when this many servers have died while they translated it."""

Part = Literal["source", "result"]

MIN_ORPHAN_AGE_S = 15.0
"""A file without a job is deleted at this age. A younger file may be about to get its job."""


class JobFiles:
    """The originals and translations of all jobs, which only the user that runs the service can read. Reading a deleted
    file raises UnknownDocument.

    Args:
        directory: the folder of the files. It is made with the first file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def delete(self, job_id: str, *parts: Part) -> None:
        """Delete the original, the translation, or both if none is named."""
        for part in parts or get_args(Part):
            self._path(job_id, part).unlink(missing_ok=True)

    def delete_others(self, known: Collection[str]) -> None:
        """Delete files that belong to no known job."""
        for file in self._directory.iterdir() if self._directory.is_dir() else ():
            with suppress(FileNotFoundError):
                if file.stem not in known and file.stat().st_mtime < time.time() - MIN_ORPHAN_AGE_S:
                    file.unlink()

    def write(self, job_id: str, part: Part, data: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(job_id, part)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as writing:
                writing.write(data)
        except OSError:
            path.unlink(missing_ok=True)  # a partial file is useless, and the disk may be full
            raise

    def read(self, job_id: str, part: Part) -> bytes:
        try:
            return self._path(job_id, part).read_bytes()
        except FileNotFoundError:
            raise UnknownDocument("The document was deleted") from None

    def _path(self, job_id: str, part: Part) -> Path:
        return self._directory / f"{job_id}.{part}"


class JobStore:
    """All jobs. Every method may be called from any thread, and waits for the disk.

    Args:
        directory: the folder of the database and files. It is made with the first job.
        kept_s: seconds after which a finished document is deleted.
        max_jobs: maximum number of stored documents, including finished ones.
    """

    def __init__(self, directory: Path, kept_s: float, max_jobs: int, clock: Callable[[], float] = time.time) -> None:
        self._files = JobFiles(directory / "documents")
        self._database = Database(directory / "documents.sqlite", SCHEMA)
        self._kept_s = kept_s
        self._max_jobs = max_jobs
        self._clock = clock
        self._silent_checks: dict[tuple[str, str, float], int] = {}
        """The number of checks without progress, by the job's id, owner and last report."""

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
        """Queue a document, and return the job with the key by which its client asks for it.

        Raises:
            QueueFull: there are too many documents, and none has been fetched yet.
            NotStored: the document cannot be written.
        """
        self.sweep()
        job_id, key = secrets.token_hex(16), secrets.token_hex(32)
        now = self._clock()
        row = (job_id, file_name, kind, *languages, options, n_characters, now, now + timeout_s, _digest(key))
        try:
            with self._database.writing() as database:
                self._make_room(database)
                self._files.write(job_id, "source", data)
                database.execute(
                    "INSERT INTO jobs (id, file_name, kind, source, target, options, n_characters, created_at, "
                    "deadline, key_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
        except BaseException:
            self._files.delete(job_id, "source")
            raise
        return self.get(job_id, key), key

    def get(self, job_id: str, key: str) -> Job:
        """Return a job. A reported error counts as fetched. Raises UnknownDocument: id and key do not match a job."""
        row = None
        if ID.fullmatch(job_id) and self._database.exists:
            with self._database.reading() as database:
                row = database.execute("SELECT *, fetched FROM jobs WHERE id = ?", (job_id,)).fetchone()
        if row is None or not hmac.compare_digest(row[N_JOB_COLUMNS], _digest(key)):
            raise UnknownDocument("No document has this id and key; it may have been deleted")
        job, is_fetched = Job(*row[:N_JOB_COLUMNS]), row[-1]
        if job.status == "error" and not is_fetched:
            self._mark_fetched(job_id)
        return job

    def result(self, job_id: str, key: str) -> tuple[Job, bytes]:
        """Return a job and its translated document.

        Raises:
            UnknownDocument: id and key do not match a job.
            DocumentNotReady: the translation is not finished.
            DocumentFailed: the translation failed.
        """
        job = self.get(job_id, key)
        if job.status == "error":
            raise DocumentFailed(f"The document could not be translated: {job.error}")
        if job.status != "done":
            raise DocumentNotReady(f"The document is not translated yet: it is {job.status}")
        data = self._files.read(job_id, "result")
        self._mark_fetched(job_id)
        return job, data

    def delete(self, job_id: str, key: str) -> None:
        """Delete a document, and stop its translation. Raises UnknownDocument."""
        self.get(job_id, key)
        with self._database.writing() as database:
            self._forget(database, job_id)

    def claim(self, owner: str) -> Job | None:
        """Return the next queued job, now owned by this server, if there is one."""
        if not self._database.exists:
            return None
        now = self._clock()
        with self._database.writing() as database:
            oldest = "SELECT * FROM jobs WHERE status = 'queued' ORDER BY created_at LIMIT 1"
            row = database.execute(oldest).fetchone()
            if row is None:
                return None
            job = Job(*row[:N_JOB_COLUMNS])
            database.execute(
                "UPDATE jobs SET status = 'translating', owner = ?, seen_at = ?, begun_at = ?, n_translated = 0, "
                "n_claims = n_claims + 1 WHERE id = ?",
                (owner, now, now, job.id),
            )
            return job

    def queue_again(self, owner: str, running: Collection[str]) -> None:
        """Queue jobs again whose server has died. Jobs with which `MAX_CLAIMS` servers have died fail.

        A server counts as dead when `MAX_SILENT_CHECKS` calls in a row have seen no progress of its job. The clock does
        not count: all servers may have been paused together.

        Args:
            running: jobs that the owner translates now. Its other jobs are queued without counting as a death: it could
                not store their end.
        """
        if not self._database.exists:
            return
        given_up = []
        with self._database.writing() as database:
            query = "SELECT id, owner, seen_at, n_claims FROM jobs WHERE status = 'translating'"
            jobs = database.execute(query).fetchall()
            self._silent_checks = {job[:3]: self._silent_checks.get(job[:3], -1) + 1 for job in jobs}
            for job_id, its_owner, seen_at, n_claims in jobs:
                is_own, n_silent = its_owner == owner, self._silent_checks[job_id, its_owner, seen_at]
                is_translated = job_id in running if is_own else n_silent < MAX_SILENT_CHECKS
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
        """Return the original document. Raises UnknownDocument: it was deleted."""
        return self._files.read(job_id, "source")

    def report_progress(self, job_id: str, owner: str, n_translated: int) -> bool:
        """Report progress, which shows that the owner is alive. Return whether it still owns the job."""
        with self._database.writing() as database:
            updated = database.execute(
                "UPDATE jobs SET seen_at = ?, n_translated = ? WHERE id = ? AND owner = ? AND status = 'translating'",
                (self._clock(), n_translated, job_id, owner),
            )
            return updated.rowcount == 1

    def release(self, job_id: str, owner: str) -> None:
        """Queue the job again, so that any server can start it anew."""
        with self._database.writing() as database:
            database.execute(QUEUE, (1, job_id, owner))

    def finish(self, job_id: str, owner: str, result: bytes) -> None:
        """Store the translation, unless the job was deleted."""
        with self._database.writing() as database:
            if not self._is_own(database, job_id, owner):
                return
            self._files.write(job_id, "result", result)
            self._finish(database, job_id, "done", None)
        self._files.delete(job_id, "source")

    def fail(self, job_id: str, owner: str, error: str) -> None:
        with self._database.writing() as database:
            if not self._is_own(database, job_id, owner):
                return
            self._finish(database, job_id, "error", error)
        self._files.delete(job_id)

    def sweep(self) -> None:
        """Delete documents that finished long ago and files without a job, and give up jobs past their deadline."""
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
        if n_jobs < self._max_jobs:
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
        """Store the end of a job. Callers delete the original document afterwards, not before."""
        database.execute(
            "UPDATE jobs SET status = ?, error = ?, finished_at = ?, owner = NULL WHERE id = ?",
            (status, error, self._clock(), job_id),
        )

    def _forget(self, database: sqlite3.Connection, job_id: str) -> None:
        """Delete a job, its files first: on a full disk the database cannot be written until there is room."""
        self._files.delete(job_id)
        database.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def _mark_fetched(self, job_id: str) -> None:
        """Note that the document may be deleted to make room. A failure to note it does not fail the request."""
        with suppress(NotStored), self._database.writing() as database:
            database.execute("UPDATE jobs SET fetched = 1 WHERE id = ?", (job_id,))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
