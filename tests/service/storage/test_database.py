"""The database: made by one server among several, refused where it is a later one, and missed without harm."""

import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from service.access.ownership import ANYBODY
from service.base.errors import NotStored, StartRefused
from service.base.settings import Settings
from service.glossaries.store import Glossaries
from service.jobs.store import JobStore
from service.storage import database as databases
from service.storage import database_engines, database_threads, tables
from service.storage.database import Database, check_database, database_of
from tests.postgres import PostgreSQL
from tests.running_service import ROOT
from tests.waiting import PATIENCE_S, until, wait_until

SECRET = "se:cret"
NOWHERE = f"postgresql://u:{SECRET}@localhost:1/d"


@pytest.fixture
def database(place: Path | str) -> Iterator[Database]:
    made = Database(place)
    yield made
    made.close()


def test_servers_that_start_together_make_the_tables_once(place: Path | str) -> None:
    opened = [Database(place) for _ in range(6)]
    failures: list[BaseException] = []
    start = threading.Barrier(len(opened))

    def open_one(one: Database) -> None:
        start.wait()
        try:
            one.open()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_one, args=(one,)) for one in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with opened[0].reading() as connection:
        assert connection.scalars(sa.select(tables.SCHEMA.c.version)).all() == [tables.VERSION]
    for one in opened:
        one.close()


def test_a_file_that_others_make_at_the_same_time_is_waited_for() -> None:
    """SQLite itself does not wait: once in some thirty starts of eight servers one of them failed."""
    connection, busy, full = Mock(), sqlite3.OperationalError("locked"), sqlite3.OperationalError("full")
    busy.sqlite_errorcode, full.sqlite_errorcode = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL
    connection.execute.side_effect = [busy, busy, None]
    database_engines._write_ahead(connection)
    connection.execute.side_effect = [full]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        database_engines._write_ahead(connection)


@pytest.mark.process
def test_lone_writers_wait_for_each_other_and_others_do_not(postgresql: PostgreSQL) -> None:
    first, second = Database(address := postgresql.address()), Database(address)
    second.open()
    came = threading.Event()

    def write() -> None:
        with second.writing():
            came.set()

    with first.writing():
        with second.writing(alone=False):
            pass
        thread = threading.Thread(target=write)
        thread.start()
        with first.reading() as connection:
            locks = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            while connection.scalar(locks) == 0:
                assert not came.is_set()
    thread.join()
    assert came.is_set()
    first.close()
    second.close()


def test_tables_of_a_later_version_are_refused(
    database: Database, place: Path | str, caplog: pytest.LogCaptureFixture
) -> None:
    with database.writing() as connection:
        connection.execute(sa.update(tables.SCHEMA).values(version=tables.VERSION + 1))
    with pytest.raises(StartRefused, match=f"version {tables.VERSION + 1}, of a later attend"):
        check_database(settings_of(place))
    later = Database(place)
    with pytest.raises(NotStored), later.reading():
        pass
    assert "of a later attend" in caplog.text


def test_a_server_of_the_release_before_goes_on_with_what_a_release_adds(database: Database) -> None:
    """What tables.py promises: a new column may be null or has a default."""
    glossaries = Glossaries(database)
    made = glossaries.create(ANYBODY, "Animals", {("en", "fr"): {"dog": "chien"}})
    with database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE attend_glossaries ADD COLUMN colour TEXT")
        connection.exec_driver_sql("ALTER TABLE attend_dictionaries ADD COLUMN n_uses INTEGER NOT NULL DEFAULT 0")
        connection.exec_driver_sql("CREATE TABLE attend_more (id INTEGER)")
    check_database(settings_of(database._file.parent if database._file else database._url))
    assert glossaries.all(ANYBODY) == [made]
    assert glossaries.create(ANYBODY, "Two", {("en", "fr"): {"a": "b"}}).dictionaries == made.dictionaries


def test_columns_that_the_release_before_did_not_have_are_added(database: Database, place: Path | str) -> None:
    store = JobStore(database, 100, 3)
    job, key = store.add(b"a", "a.txt", "txt", ("en", "fr"), "{}", 1, 100)
    with database.writing() as connection:
        for name in ("n_claims", "error"):
            connection.exec_driver_sql(f"ALTER TABLE attend_jobs DROP COLUMN {name}")
        connection.execute(sa.update(tables.SCHEMA).values(version=tables.VERSION - 1))
    later = Database(place)
    assert JobStore(later, 100, 3).claim("a") is not None
    assert JobStore(later, 100, 3).get(job.id, key).error is None
    with later.reading() as connection:
        assert connection.scalars(sa.select(tables.SCHEMA.c.version)).all() == [tables.VERSION]
    later.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (f"mysql://u:{SECRET}@h/d", "must be postgresql://"),
        (f"postgresql:u:{SECRET}@h/d", "must be postgresql://"),
        (f"postgresql://u:{SECRET}@h:port/d", "must be postgresql://"),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(tmp_path: Path, address: str, message: str) -> None:
    (tmp_path / "attend_database").write_text(f"{address}\n")
    with pytest.raises(StartRefused, match=message) as refused:
        check_database(Settings(secrets=tmp_path))
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(Settings(database=NOWHERE))


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StartRefused, match=r"pip install 'psycopg\[binary\]'"):
        check_database(Settings(database=NOWHERE))


@pytest.mark.process
def test_a_database_that_cannot_be_reached_is_told_in_the_log_and_tried_again(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    check_database(Settings(database=NOWHERE))
    (told,) = [record.getMessage() for record in caplog.records]
    assert "the database cannot be used: connection" in told
    assert SECRET not in caplog.text
    caplog.clear()
    monkeypatch.setattr(databases, "RETRY_S", 0.0)
    database = Database(NOWHERE)
    for _ in range(3):
        with pytest.raises(NotStored, match=r"the database cannot be used$") as error, database.reading():
            pass
        assert error.value.retry_after_s > 0
    database._url = postgresql.address()
    with database.writing():
        pass
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    database.close()


def test_a_database_that_fails_now_and_then_is_told_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk can still be read."""
    caplog.set_level(logging.INFO)
    failures: list[None] = []
    database = Database(tmp_path, count_failure=lambda: failures.append(None))
    for _ in range(3):
        with pytest.raises(NotStored), database.writing():
            raise sqlite3.OperationalError("database or disk is full")
        with database.reading():
            pass
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert len(failures) == 3
    database.close()


def test_a_damaged_file_is_told_in_the_log_and_in_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = Database(tmp_path)
    database.open()
    database.close()
    file = tmp_path / "attend.sqlite"
    file.write_bytes(file.read_bytes()[:4096] + b"garbage." * 4096)
    check_database(Settings(data=tmp_path))
    assert "malformed" in caplog.text
    damaged = Database(tmp_path)
    with pytest.raises(NotStored, match="malformed"):
        Glossaries(damaged).all(ANYBODY)
    damaged.close()


@pytest.mark.process
def test_a_user_who_may_make_no_tables_is_told_in_the_log(
    postgresql: PostgreSQL, caplog: pytest.LogCaptureFixture
) -> None:
    address = postgresql.address()
    owner = Database(address)
    with owner.writing() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS poor")
        connection.exec_driver_sql("CREATE ROLE poor LOGIN")
    owner.close()
    check_database(Settings(database=address.replace("//postgres:", "//poor:")))
    assert "no schema has been selected to create in" in caplog.text


@pytest.mark.process
def test_tables_that_are_deleted_meanwhile_are_made_anew(postgresql: PostgreSQL) -> None:
    database = Database(postgresql.address())
    glossaries = Glossaries(database)
    with database.writing() as connection:
        tables.METADATA.drop_all(connection)
    with pytest.raises(NotStored):
        glossaries.all(ANYBODY)
    assert glossaries.all(ANYBODY) == []
    database.close()


@pytest.mark.process
@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
@pytest.mark.parametrize("password", ["secret", "p@:/%w#?", "p%40%3A%2F%25w%23%3F"])
def test_any_password_of_an_address_is_understood(postgresql: PostgreSQL, scheme: str, password: str) -> None:
    address = postgresql.address().removeprefix("postgresql://postgres:secret")
    own = Settings(database=f"{scheme}://postgres:{password}{address}\n")
    database = database_of(own)
    with database.reading() as connection:
        dsn = connection.connection.dbapi_connection.info  # type: ignore[union-attr]
        assert dsn.password == ("secret" if password == "secret" else "p@:/%w#?")
    database.close()


@pytest.mark.process
def test_a_socket_and_several_hosts_are_read_as_libpq_reads_them(postgresql: PostgreSQL) -> None:
    folder = str(postgresql.directory).replace("/", "%2F")
    for hosts in (folder, f"%2Fnowhere,{folder}"):
        database = Database(f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write")
        with database.reading() as connection:
            assert connection.scalar(sa.select(1)) == 1
        database.close()


@pytest.mark.process
def test_a_writer_waits_only_briefly_for_a_lock_of_another(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a replica holds it that was paused."""
    paused, other = Database(address := postgresql.address()), Database(address)
    other.open()
    monkeypatch.setattr(database_engines, "TIME_LIMITS", database_engines.TIME_LIMITS.replace("'10.0s'", "'10ms'"))
    with paused.writing(), pytest.raises(NotStored), other.writing():
        pass
    with other.writing():
        pass
    monkeypatch.setattr(database_engines, "TIME_LIMITS", "SET LOCAL idle_in_transaction_session_timeout = '10ms'")

    def pause_within_a_transaction() -> None:
        with paused.writing() as connection:
            wait_until(lambda: _n_lockers(other) == 0)
            connection.scalar(sa.select(1))

    with pytest.raises(NotStored):
        pause_within_a_transaction()
    paused.close()
    other.close()


def test_a_database_is_closed_although_it_hangs_while_it_is_opened(tmp_path: Path) -> None:
    database, holder = Database(tmp_path), Database(tmp_path)
    ended = threading.Event()

    def open_it() -> None:
        with pytest.raises(NotStored):
            database.open()
        ended.set()

    with holder.writing():
        thread = threading.Thread(target=open_it)
        thread.start()
        wait_until(database._lock.locked)
        database.close()
        assert not ended.is_set()
    thread.join()
    assert ended.is_set()
    holder.close()


@pytest.mark.process
def test_connections_that_the_database_has_ended_are_made_anew(postgresql: PostgreSQL) -> None:
    ended, other = Database(postgresql.address()), Database(postgresql.address())
    ended.open()
    with other.writing() as connection:
        process, kind = sa.column("pid"), sa.column("backend_type")
        is_other = sa.and_(kind == "client backend", process != sa.func.pg_backend_pid())
        ending = sa.select(sa.func.pg_terminate_backend(process)).where(is_other)
        assert connection.scalars(ending.select_from(sa.table("pg_stat_activity"))).all()
    with ended.reading() as connection:
        assert connection.scalar(sa.select(1)) == 1
    ended.close()
    other.close()


@pytest.mark.process
def test_the_clock_is_that_of_postgresql_whatever_the_time_here(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgresql.address())
    monkeypatch.setattr(databases.time, "time", lambda: 0.0)
    with database.reading() as connection:
        first, second = connection.scalar(sa.select(database.now)), connection.scalar(sa.select(database.now))
    assert first is not None
    assert second is not None
    assert 1e9 < first < second
    database.close()


@pytest.mark.process
def test_a_process_ends_while_the_database_hangs() -> None:
    code = """
import asyncio, threading
from service.base import errors
from service.storage import database_threads
database_threads.TIMEOUT_S = 0.01
try:
    asyncio.run(database_threads.in_thread(threading.Event().wait))
except errors.NotStored:
    print("ended")
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stdout) == (0, b"ended\n")


@pytest.mark.anyio
async def test_requests_are_refused_at_once_while_every_thread_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, hangs = database_threads._Threads(), threading.Event()
    monkeypatch.setattr(database_threads, "_THREADS", threads)
    monkeypatch.setattr(database_threads, "TIMEOUT_S", 0.01)
    for _ in range(database_threads.N_THREADS):
        threads.submit(hangs.wait)
    await until(lambda: threads.hang)
    document = Mock()
    threads.submit(document).cancel()
    assert threads._calls == {}  # what nobody waits for takes no memory
    with pytest.raises(NotStored, match="does not answer"):
        await database_threads.in_thread(document)
    hangs.set()
    await until(lambda: not threads.hang)
    monkeypatch.setattr(database_threads, "TIMEOUT_S", PATIENCE_S)
    assert await database_threads.in_thread(lambda: 1) == 1
    document.assert_not_called()


@pytest.mark.process
def test_a_service_that_stores_nothing_does_not_import_sqlalchemy() -> None:
    """The import takes a tenth of the time in which the service starts."""
    code = "import sys, service.server.app; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


def settings_of(place: Path | str) -> Settings:
    return Settings(data=place) if isinstance(place, Path) else Settings(database=place)


def _n_lockers(database: Database) -> int:
    with database.reading() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) or 0
