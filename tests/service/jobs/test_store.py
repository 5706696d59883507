"""Jobs as several servers see them, on both databases: each is translated by one, and no file stays unasked for."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from service.base.errors import DocumentFailed, DocumentNotReady, NotStored, QueueFull, UnknownDocument
from service.jobs import tables
from service.jobs.imports import DOWNLOAD, KIND, UPLOAD
from service.jobs.job import Job
from service.jobs.store import MAX_CLAIMS, MAX_SILENT_CHECKS, JobStore
from service.storage.database import Database
from tests.service.fakes import Disk, FakeClock

KEPT_S = 100.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stores(place: Path | str, clock: FakeClock) -> Iterator[tuple[JobStore, JobStore]]:
    """Those of two servers."""
    databases = [Database(place, clock) for _ in range(2)]
    yield JobStore(databases[0], KEPT_S, 3), JobStore(databases[1], KEPT_S, 3)
    for database in databases:
        database.close()


AS_USUAL: tuple[Any, ...] = ("a.txt", "txt", ("en", "fr"), "{}", 10, 1000)


def add(store: JobStore, name: str = "a.txt", timeout_s: float = 1000) -> tuple[Job, str]:
    return store.add(name.encode(), name, "txt", ("en", "fr"), "{}", 10, timeout_s)


def look(store: JobStore, owner: str, n: int = MAX_SILENT_CHECKS + 1, running: Collection[str] = ()) -> None:
    for _ in range(n):
        store.queue_again(owner, running)


def files(stores: tuple[JobStore, JobStore]) -> list[bytes]:
    with stores[1]._database.reading() as connection:
        return sorted(connection.scalars(sa.select(tables.FILES.c.data)))


def test_a_server_takes_from_itself_what_it_does_not_translate_as_often_as_needed(
    stores: tuple[JobStore, JobStore],
) -> None:
    """It could not tell what became of it, as on a full disk."""
    one, _ = stores
    job, key = add(one)
    for _ in range(MAX_CLAIMS + 2):
        assert one.claim("a") is not None
        look(one, "a", running=[job.id])
        assert one.get(job.id, key).status == "translating"
        look(one, "a", 1)
        assert one.get(job.id, key).status == "queued"


def test_no_server_counts_as_dead_because_all_were_paused(stores: tuple[JobStore, JobStore], clock: FakeClock) -> None:
    """The machine slept, or its clock was set."""
    one, other = stores
    job, key = add(one, timeout_s=10_000)
    one.claim("a")
    for _ in range(3 * MAX_SILENT_CHECKS):
        clock.now += 100
        look(other, "b", 2)
        assert one.report_progress(job.id, "a", 1)
    look(other, "b", MAX_SILENT_CHECKS)
    assert one.get(job.id, key).status == "translating"
    look(other, "b", 1)
    assert one.get(job.id, key).status == "queued"


def test_nothing_is_written_before_a_document_comes(stores: tuple[JobStore, JobStore], tmp_path: Path) -> None:
    stores[0].sweep()
    assert stores[0].claim("a") is None
    stores[0].queue_again("a", [])
    with pytest.raises(UnknownDocument):
        stores[0].get("0" * 32, "key")
    assert not (tmp_path / "data").exists()


def test_a_job_goes_its_way_and_every_server_knows(stores: tuple[JobStore, JobStore], tmp_path: Path) -> None:
    one, other = stores
    job, key = add(one)
    assert other.get(job.id, key) == job
    assert (job.status, job.progress) == ("queued", 0)
    with pytest.raises(DocumentNotReady, match="queued"):
        other.result(job.id, key)
    claimed = one.claim("a")
    assert claimed is not None
    assert other.claim("b") is None
    assert one.source(claimed.id) == b"a.txt"
    assert one.report_progress(job.id, "a", 4)
    assert not other.report_progress(job.id, "b", 5)
    now = other.get(job.id, key)
    assert (now.status, now.progress) == ("translating", 0.4)
    one.finish(job.id, "a", b"result")
    done, data = other.result(job.id, key)
    assert (done.status, done.progress, data) == ("done", 1, b"result")
    assert files(stores) == [b"result"]
    for file in tmp_path.glob("data/*"):
        assert oct(file.stat().st_mode & 0o777) == "0o600"
    other.delete(job.id, key)
    assert files(stores) == []
    for call in (one.get, one.result, one.delete):
        with pytest.raises(UnknownDocument):
            call(job.id, key)


def test_a_job_that_fails_says_why_and_keeps_no_file(stores: tuple[JobStore, JobStore], tmp_path: Path) -> None:
    one, other = stores
    job, key = add(one)
    one.claim("a")
    one.fail(job.id, "a", "a reason")
    assert other.get(job.id, key).error == "a reason"
    with pytest.raises(DocumentFailed, match=r"a reason$"):
        other.result(job.id, key)
    assert files(stores) == []


def test_an_error_may_have_any_character(stores: tuple[JobStore, JobStore]) -> None:
    """One that could not be stored would have its document translated again and again."""
    job, key = add(stores[0])
    stores[0].claim("a")
    stores[0].fail(job.id, "a", "a\0 \ud800 é 💚")
    assert stores[1].get(job.id, key).error == "a\N{REPLACEMENT CHARACTER} ? é 💚"


def test_jobs_are_claimed_in_their_order(stores: tuple[JobStore, JobStore], clock: FakeClock) -> None:
    one, other = stores
    names = []
    for name in ("a.txt", "b.txt", "c.txt"):
        add(one, name)
        clock.now += 1
    for store in (one, other, one):
        job = store.claim("a")
        assert job is not None
        names.append(job.file_name)
    assert names == ["a.txt", "b.txt", "c.txt"]


def test_the_job_of_a_server_that_died_is_taken_up_and_no_longer_its_own(
    stores: tuple[JobStore, JobStore], tmp_path: Path
) -> None:
    one, other = stores
    job, key = add(one)
    one.claim("a")
    look(other, "b", MAX_SILENT_CHECKS)
    assert other.claim("b") is None
    look(other, "b", 1)
    claimed = other.claim("b")
    assert claimed is not None
    assert claimed.id == job.id
    assert not one.report_progress(job.id, "a", 9)
    one.finish(job.id, "a", b"of the dead")
    one.fail(job.id, "a", "of the dead")
    one.release(job.id, "a")
    assert one.get(job.id, key).status == "translating"
    assert files(stores) == [b"a.txt"]
    other.finish(job.id, "b", b"result")
    one.finish(job.id, "a", b"of the dead")
    assert one.result(job.id, key)[1] == b"result"


def test_a_job_that_servers_die_of_is_given_up(stores: tuple[JobStore, JobStore], tmp_path: Path) -> None:
    job, key = add(stores[0])
    for owner in range(MAX_CLAIMS):
        assert stores[0].claim(f"{owner}") is not None
        look(stores[0], "another")
    assert stores[0].claim("another") is None
    assert stores[1].get(job.id, key).error == "2 servers ended while they translated it"
    assert files(stores) == []


def test_a_job_that_is_released_is_taken_up_as_often_as_needed(stores: tuple[JobStore, JobStore]) -> None:
    one, other = stores
    job, key = add(one)
    for _ in range(MAX_CLAIMS + 2):
        assert one.claim("a") is not None
        one.report_progress(job.id, "a", 5)
        one.release(job.id, "a")
        assert other.get(job.id, key).progress == 0
    assert other.claim("b") is not None


def test_a_finished_job_is_forgotten_in_time(
    stores: tuple[JobStore, JobStore], clock: FakeClock, tmp_path: Path
) -> None:
    one, other = stores
    job, key = add(one)
    one.claim("a")
    one.finish(job.id, "a", b"result")
    clock.now += KEPT_S - 1
    other.sweep()
    assert one.result(job.id, key)[1] == b"result"
    clock.now += 2
    other.sweep()
    assert files(stores) == []
    with pytest.raises(UnknownDocument):
        one.get(job.id, key)


def test_a_document_that_waited_too_long_is_given_up(stores: tuple[JobStore, JobStore], clock: FakeClock) -> None:
    job, key = add(stores[0], timeout_s=5)
    clock.now += 6
    stores[1].sweep()
    assert stores[0].get(job.id, key).error == "The deadline passed before its translation began"
    assert stores[0].claim("a") is None


def test_a_document_that_a_server_has_left_is_given_up_at_its_deadline(
    stores: tuple[JobStore, JobStore], clock: FakeClock
) -> None:
    job, key = add(stores[0], timeout_s=5)
    assert stores[0].claim("a") is not None
    clock.now += 6
    look(stores[0], "a")
    stores[0].sweep()
    assert stores[0].get(job.id, key).status == "error"


def test_there_is_a_limit_and_what_was_fetched_makes_room(stores: tuple[JobStore, JobStore], tmp_path: Path) -> None:
    one, other = stores
    jobs = [add(one) for _ in range(3)]
    with pytest.raises(QueueFull, match="3"):
        add(other)
    assert len(files(stores)) == 3
    for job, _ in jobs[:2]:
        one.claim("a")
        one.finish(job.id, "a", b"result")
    with pytest.raises(QueueFull):
        add(other)
    one.result(*(jobs[1][0].id, jobs[1][1]))
    add(other)
    one.get(jobs[0][0].id, jobs[0][1])
    with pytest.raises(UnknownDocument):
        one.get(jobs[1][0].id, jobs[1][1])


def test_a_file_is_supplied_once_and_before_its_deadline(stores: tuple[JobStore, JobStore], clock: FakeClock) -> None:
    one, other = stores
    late, _ = one.add(None, "a.tmx", UPLOAD, ("", ""), "{}", 3, 10)
    job, _ = one.add(None, "a.tmx", UPLOAD, ("", ""), "{}", 3, 20)
    one.add(None, "", DOWNLOAD, ("", ""), "{}", 0, 20)
    assert one.claim("a") is None, "no server works on what waits for a client"
    clock.now += 15
    other.supply(job.id, b"file", 100)
    for refused in (job, late):
        with pytest.raises(UnknownDocument, match="sent before, or its address has expired"):
            one.supply(refused.id, b"other", 100)
    claimed = one.claim("a")
    assert claimed is not None
    assert (claimed.id, claimed.kind, claimed.n_characters, claimed.left_s) == (job.id, KIND, 4, 100)
    assert one.source(job.id) == b"file"
    one.finish(job.id, "a", b"0")
    for _ in range(2):  # the import that is over, and after a sweep also the one that never got a file, make room
        add(other)
    with pytest.raises(QueueFull):
        add(other)


def test_an_error_that_was_told_makes_room(stores: tuple[JobStore, JobStore]) -> None:
    one, other = stores
    jobs = [add(one) for _ in range(3)]
    for job, _ in jobs:
        one.claim("a")
        one.fail(job.id, "a", "a reason")
    with pytest.raises(QueueFull):
        add(other)
    assert one.get(*at(jobs[0])).error == "a reason"
    with pytest.raises(DocumentFailed):
        one.result(*at(jobs[1]))
    for _ in range(2):
        add(other)
    with pytest.raises(QueueFull):
        add(other)


def at(added: tuple[Job, str]) -> tuple[str, str]:
    job, key = added
    return job.id, key


def test_a_source_stays_as_long_as_what_became_of_it_is_not_written(
    stores: tuple[JobStore, JobStore], tmp_path: Path, disk: Disk
) -> None:
    one, _ = stores
    done, failed, late = add(one), add(one), add(one, timeout_s=-1)
    for _ in range(2):
        one.claim("a")
    disk.is_full = True
    for call in (
        lambda: one.finish(done[0].id, "a", b"result"),
        lambda: one.fail(failed[0].id, "a", "a reason"),
        one.sweep,
        lambda: one.release(failed[0].id, "a"),
        lambda: add(one),
    ):
        with pytest.raises(NotStored, match=r"cannot be stored now: (attempt to write a readonly|the) database"):
            call()
    assert files(stores) == [b"a.txt"] * 3
    disk.is_full = False
    one.finish(done[0].id, "a", b"result")
    disk.is_full = True
    assert one.result(*at(done))[1] == b"result"
    disk.is_full = False
    one.fail(failed[0].id, "a", "a reason")
    one.sweep()
    assert one.get(*at(late)).status == "error"
    assert files(stores) == [b"result"]


def test_a_file_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    store = JobStore(database := Database(tmp_path), KEPT_S, 3)
    added = add(store)
    store.claim("a")
    with database.reading() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # no more than there are
    large = b"x" * 10_000
    for call in (lambda: store.finish(added[0].id, "a", large), lambda: store.add(large, *AS_USUAL)):
        with pytest.raises(NotStored, match="disk is full"):
            call()
    assert files((store, store)) == [b"a.txt"]
    assert store.get(*at(added)).status == "translating"
    database.close()


def test_a_document_needs_its_own_key(stores: tuple[JobStore, JobStore]) -> None:
    (job, key), (_, of_other) = add(stores[0]), add(stores[0])
    assert len(job.id) == 32
    assert len(key) == 64
    for wrong in ("", of_other, key[:-1], key.upper(), "\udc80", "é"):
        with pytest.raises(UnknownDocument):
            stores[0].get(job.id, wrong)
    for wrong in ("", "\udc80", "../x", job.id.upper()):
        with pytest.raises(UnknownDocument):
            stores[0].get(wrong, key)


def test_the_rest_is_estimated_from_what_is_done() -> None:
    job = Job("i", "a.txt", "txt", "en", "fr", "{}", "translating", 100, 25, 0, 1000, 10, None, None, None, None, 20)
    assert (job.remaining_s, job.left_s) == (30, 980)
    assert replace(job, n_translated=0).remaining_s is None
    assert replace(job, status="queued", begun_at=None).remaining_s is None
