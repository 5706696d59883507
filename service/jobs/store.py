"""The queue of documents, in a database that several servers share.

A server claims a job, reports its progress now and then, and writes the result. When a server dies, another one queues
its jobs again. Deleting a job stops the work on it. Most writers need no lock of their own: a statement names the
state that it changes, so of two servers that try, one changes nothing.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from service.base.errors import (
    Broken,
    DeadlinePassed,
    DocumentFailed,
    DocumentNotReady,
    InferenceFailed,
    KeyReused,
    NotStored,
    QueueFull,
    UnknownDocument,
)
from service.jobs.imports import DOWNLOAD, KIND, UPLOAD
from service.jobs.job import Job
from service.storage.database import Database
from service.storage.sql import sa, tables_of

if TYPE_CHECKING:
    from service.jobs import tables
else:
    tables = tables_of("service.jobs")

ID = re.compile(r"[0-9a-f]{32}")

MAX_SILENT_CHECKS = 8
"""A server counts as dead when another server has seen no progress in this many checks."""
MAX_CLAIMS = 2
"""A job fails when this many servers have died while they translated it."""
MAX_CALLS = 8
"""Most calls to a client's address. Each of them is made if the one before was not answered with success."""
FIRST_PAUSE_S = 10.0
"""Seconds between the first two calls; each further pause is twice as long."""


@dataclass(frozen=True)
class Repeatable:
    """A request that may be sent again, with the same answer."""

    digest: bytes
    """Of its Idempotency-Key and its client."""
    content: bytes
    """A digest of what was sent."""

    @classmethod
    def of(cls, key: str, caller: str | None, options: str, data: bytes) -> "Repeatable":
        content = hashlib.sha256(options.encode())
        content.update(data)
        return cls(hashlib.sha256(json.dumps([caller, key]).encode()).digest(), content.digest())


class AlreadyQueuedError(Exception):
    """The same request was queued before, as this job."""

    def __init__(self, job_id: str, key: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id
        self.key = key


@dataclass(frozen=True)
class DueCall:
    """A call to a client's address that is to be made now."""

    job: Job
    url: str
    pause_s: float | None
    """Seconds after which it is made again unless it succeeds; None: never."""


class JobStore:
    """All jobs. Every method may be called from any thread, waits for the database, and raises NotStored if that cannot
    be used now.

    Args:
        kept_s: seconds after which a finished document is deleted.
        max_jobs: maximum number of stored documents, including finished ones.
    """

    def __init__(self, database: Database, kept_s: float, max_jobs: int) -> None:
        self._database = database
        self._kept_s = kept_s
        self._max_jobs = max_jobs
        self._silent_checks: dict[tuple[str, str, float], int] = {}
        """The number of checks without progress, by the job's id, owner and last report."""

    def add(
        self,
        data: bytes | None,
        file_name: str,
        kind: str,
        languages: tuple[str, str],
        options: str,
        n_characters: int,
        timeout_s: float,
        callback_url: str | None = None,
        repeatable: Repeatable | None = None,
    ) -> tuple[Job, str]:
        """Queue a document, and return the job with the key by which its client asks for it.

        Raises:
            QueueFull: there are too many documents, and none has been fetched yet.
            AlreadyQueuedError, KeyReused: the request was sent before, with the same or with something else.
        """
        self.sweep()
        job_id, key = secrets.token_hex(16), secrets.token_hex(32)
        source, target = languages
        now = self._database.now
        job = sa.insert(tables.JOBS).values(
            id=job_id,
            file_name=file_name,
            kind=kind,
            source=source,
            target=target,
            options=options,
            n_characters=n_characters,
            created_at=now,
            deadline=now + timeout_s,
            key_digest=_digest(key),
            callback_url=callback_url,
        )
        with self._database.writing() as connection:
            if known := repeatable and self._known(connection, repeatable):
                raise AlreadyQueuedError(*known)
            self._make_room(connection)
            connection.execute(job)
            if data is not None:
                connection.execute(sa.insert(tables.FILES).values(job=job_id, data=data))
            if repeatable:
                repeat = {"digest": repeatable.digest, "content": repeatable.content, "job": job_id, "key": key}
                connection.execute(sa.insert(tables.REPEATS).values(repeat))
        return self.get(job_id, key), key

    def repeated(self, repeatable: Repeatable) -> tuple[Job, str] | None:
        """Return the job and its key of a request that was sent before; None if it was not, or the job was deleted.
        Raises KeyReused: something else was sent then."""
        if not self._database.exists:
            return None
        with self._database.reading() as connection:
            known = self._known(connection, repeatable)
        return known and (self.get(*known), known[1])

    def get(self, job_id: str, key: str) -> Job:
        """Return a job. A reported error counts as fetched. Raises UnknownDocument: id and key do not match a job."""
        row = None
        if ID.fullmatch(job_id) and self._database.exists:
            jobs = tables.JOBS.c
            with self._database.reading() as connection:
                query = sa.select(*self._job(), jobs.key_digest, jobs.fetched).where(jobs.id == job_id)
                row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(row.key_digest, _digest(key)):
            raise UnknownDocument("No document has this id and key; it may have been deleted")
        *values, _, is_fetched = row
        job = Job(*values)
        if job.status == "error" and not is_fetched:
            self._mark_fetched(job_id)
        return job

    def supply(self, job_id: str, data: bytes, timeout_s: float) -> None:
        """Queue an import with the file for which it waits. Raises UnknownDocument: it does not wait for one."""
        jobs, now = tables.JOBS.c, self._database.now
        waits = sa.and_(jobs.id == job_id, jobs.kind == UPLOAD, jobs.status == "queued", jobs.deadline > now)
        with self._database.writing(alone=False) as connection:
            if not _changed(connection, waits, kind=KIND, n_characters=len(data), deadline=now + timeout_s):
                raise UnknownDocument("The file was sent before, or its address has expired")
            connection.execute(sa.insert(tables.FILES).values(job=job_id, data=data))

    def state(self, job_id: str) -> Job | None:
        """Return a job, whoever asks; None if there is none."""
        if not (ID.fullmatch(job_id) and self._database.exists):
            return None
        with self._database.reading() as connection:
            row = connection.execute(sa.select(*self._job()).where(tables.JOBS.c.id == job_id)).one_or_none()
        return None if row is None else Job(*tuple(row))

    def result(self, job_id: str, key: str) -> tuple[Job, bytes]:
        """Return a job and its translated document. Raises UnknownDocument: id and key do not match a job. Raises
        DocumentNotReady: the translation is not finished. Raises DocumentFailed: the translation failed."""
        job = self.get(job_id, key)
        if job.status == "error":
            raise DocumentFailed(f"The document could not be translated: {job.error}")
        if job.status != "done":
            raise DocumentNotReady(f"The document is not translated yet: it is {job.status}")
        data = self._file(job_id)
        self._mark_fetched(job_id)
        return job, data

    def delete(self, job_id: str, key: str) -> None:
        """Delete a document, and stop its translation. Raises UnknownDocument."""
        self.get(job_id, key)
        with self._database.writing(alone=False) as connection:
            connection.execute(sa.delete(tables.JOBS).where(tables.JOBS.c.id == job_id))

    def claim(self, owner: str) -> Job | None:
        """Return the next queued job, now owned by this server, if there is one."""
        if not self._database.exists:
            return None
        jobs, now = tables.JOBS.c, self._database.now
        is_work = sa.and_(jobs.status == "queued", jobs.kind.not_in((UPLOAD, DOWNLOAD)))
        queued = sa.select(jobs.id).where(is_work).order_by(jobs.created_at).limit(1)
        oldest = queued.with_for_update(skip_locked=True).scalar_subquery()
        with self._database.writing(alone=False) as connection:
            row = connection.execute(
                sa.update(tables.JOBS)
                .where(jobs.id == oldest)
                .values(
                    status="translating",
                    owner=owner,
                    seen_at=now,
                    begun_at=now,
                    n_translated=0,
                    n_claims=jobs.n_claims + 1,
                )
                .returning(*self._job())
            ).one_or_none()
        return None if row is None else Job(*tuple(row))

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
        jobs = tables.JOBS.c
        with self._database.writing(alone=False) as connection:
            query = sa.select(jobs.id, jobs.owner, jobs.seen_at, jobs.n_claims).where(jobs.status == "translating")
            translating = connection.execute(query).all()
            self._silent_checks = {job[:3]: self._silent_checks.get(job[:3], -1) + 1 for job in map(tuple, translating)}
            for job_id, its_owner, seen_at, n_claims in translating:
                is_own, n_silent = its_owner == owner, self._silent_checks[job_id, its_owner, seen_at]
                is_translated = job_id in running if is_own else n_silent < MAX_SILENT_CHECKS
                if is_translated:
                    continue
                is_silent = sa.and_(_is_own(job_id, its_owner), jobs.seen_at == seen_at)
                if is_own or n_claims < MAX_CLAIMS:
                    _queue(connection, is_silent, n_claims - is_own)
                else:
                    error = f"{n_claims} servers ended while they translated it"
                    self._give_up(connection, is_silent, error, Broken.code)

    def source(self, job_id: str) -> bytes:
        """Return the original document, or the result of a finished job. Raises UnknownDocument: it was deleted."""
        return self._file(job_id)

    def report_progress(self, job_id: str, owner: str, n_translated: int) -> bool:
        """Report progress, which shows that the owner is alive. Return whether it still owns the job."""
        seen = {"seen_at": self._database.now, "n_translated": n_translated}
        with self._database.writing(alone=False) as connection:
            return _changed(connection, _is_own(job_id, owner), **seen)

    def release(self, job_id: str, owner: str) -> None:
        """Queue the job again, so that any server can start it anew."""
        with self._database.writing(alone=False) as connection:
            _queue(connection, _is_own(job_id, owner), tables.JOBS.c.n_claims - 1)

    def finish(self, job_id: str, owner: str, result: bytes, least_sure: str | None = None) -> None:
        """Store the translation in place of the original, unless the job was deleted."""
        done = {"status": "done", "finished_at": self._database.now, "owner": None, "least_sure": least_sure}
        with self._database.writing(alone=False) as connection:
            if _changed(connection, _is_own(job_id, owner), **done):
                connection.execute(sa.update(tables.FILES).where(tables.FILES.c.job == job_id).values(data=result))

    def fail(self, job_id: str, owner: str, error: str, code: str | None = InferenceFailed.code) -> None:
        with self._database.writing(alone=False) as connection:
            self._give_up(connection, _is_own(job_id, owner), error, code)

    def claim_call(self) -> DueCall | None:
        """Return a call that is due, if there is one. It is due again after a pause, unless it is ended before."""
        if not self._database.exists:
            return None
        jobs, now = tables.JOBS.c, self._database.now
        is_due = sa.and_(jobs.status.in_(("done", "error")), jobs.callback_url.is_not(None), jobs.n_calls < MAX_CALLS)
        may_begin = sa.or_(jobs.next_call_at.is_(None), jobs.next_call_at < now)
        query = sa.select(*self._job(), jobs.callback_url, jobs.n_calls).where(is_due, may_begin).limit(1)
        with self._database.writing(alone=False) as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            *values, url, n_calls = row
            job = Job(*values)
            is_same = sa.and_(jobs.id == job.id, jobs.n_calls == n_calls)
            pause_s = FIRST_PAUSE_S * 2**n_calls
            if not _changed(connection, is_same, n_calls=n_calls + 1, next_call_at=now + pause_s):
                return None  # another server makes it
        return DueCall(job, url, pause_s if n_calls + 1 < MAX_CALLS else None)

    def end_call(self, job_id: str) -> None:
        """Note that a call succeeded. Raises NotStored: it will be made again."""
        with self._database.writing(alone=False) as connection:
            _changed(connection, tables.JOBS.c.id == job_id, callback_url=None)

    def sweep(self) -> None:
        """Delete documents that finished long ago, and give up jobs past their deadline."""
        if not self._database.exists:
            return
        jobs, now = tables.JOBS.c, self._database.now
        with self._database.writing(alone=False) as connection:
            connection.execute(sa.delete(tables.JOBS).where(jobs.finished_at < now - self._kept_s))
            is_late = sa.and_(jobs.status == "queued", jobs.deadline < now)
            self._give_up(connection, is_late, "The deadline passed before its translation began", DeadlinePassed.code)

    def _job(self) -> "list[sa.ColumnElement[Any]]":
        *stored, read_at = [field.name for field in fields(Job)]
        return [*(tables.JOBS.c[name] for name in stored), self._database.now.label(read_at)]

    def _known(self, connection: "sa.Connection", repeatable: Repeatable) -> tuple[str, str] | None:
        repeats = tables.REPEATS.c
        query = sa.select(repeats.job, repeats.key, repeats.content).where(repeats.digest == repeatable.digest)
        row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if row.content != repeatable.content:
            raise KeyReused("The Idempotency-Key was sent before, with another document or other options")
        return row.job, row.key

    def _file(self, job_id: str) -> bytes:
        with self._database.reading() as connection:
            data = connection.scalar(sa.select(tables.FILES.c.data).where(tables.FILES.c.job == job_id))
        if data is None:
            raise UnknownDocument("The document was deleted")
        return bytes(data)

    def _make_room(self, connection: "sa.Connection") -> None:
        jobs = tables.JOBS.c
        n_jobs = connection.scalar(sa.select(sa.func.count()).select_from(tables.JOBS)) or 0
        if n_jobs < self._max_jobs:
            return
        is_of_memory = jobs.kind.in_((KIND, UPLOAD, DOWNLOAD))  # nobody fetches its result
        is_over = sa.or_(jobs.fetched == 1, sa.and_(is_of_memory, jobs.finished_at.is_not(None)))
        oldest = sa.select(jobs.id).where(is_over).order_by(jobs.finished_at).limit(1)
        fetched = connection.scalar(oldest)
        if fetched is None:
            raise QueueFull(
                f"There are {n_jobs} documents, which is the limit; delete one, or try again later", retry_after_s=30
            )
        connection.execute(sa.delete(tables.JOBS).where(jobs.id == fetched))

    def _give_up(
        self, connection: "sa.Connection", which: "sa.ColumnElement[bool]", error: str, code: str | None
    ) -> None:
        failed = {"status": "error", "error": error, "code": code, "finished_at": self._database.now, "owner": None}
        if _changed(connection, which, **failed):
            without_file = sa.select(tables.JOBS.c.id).where(tables.JOBS.c.status == "error")
            connection.execute(sa.delete(tables.FILES).where(tables.FILES.c.job.in_(without_file)))

    def _mark_fetched(self, job_id: str) -> None:
        """The document may then be deleted to make room. A failure to note this does not fail the request."""
        with suppress(NotStored), self._database.writing(alone=False) as connection:
            _changed(connection, tables.JOBS.c.id == job_id, fetched=1)


def _is_own(job_id: str, owner: str) -> "sa.ColumnElement[bool]":
    jobs = tables.JOBS.c
    return sa.and_(jobs.id == job_id, jobs.owner == owner, jobs.status == "translating")


def _queue(
    connection: "sa.Connection", which: "sa.ColumnElement[bool]", n_claims: "int | sa.ColumnElement[int]"
) -> None:
    _changed(connection, which, status="queued", owner=None, n_translated=0, n_claims=n_claims)


def _changed(connection: "sa.Connection", which: "sa.ColumnElement[bool]", **values: object) -> bool:
    """Return whether a job was changed."""
    return connection.execute(sa.update(tables.JOBS).where(which).values(values)).rowcount > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
