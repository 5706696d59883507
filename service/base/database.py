"""The database that servers share: SQLite's in a file, or PostgreSQL (`ATTEND_DATABASE`)."""

import asyncio
import contextvars
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

from service.base.data_directory import DEFAULT
from service.base.errors import NotStored, StartRefused
from service.base.settings import Settings
from service.base.sql import sa, tables

logger = logging.getLogger(__name__)

FILE = "attend.sqlite"

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for other writers."""
CONNECT_TIMEOUT_S = 5
TIMEOUT_S = 20.0
"""How long a request waits for an answer."""
RETRY_S = 1.0
"""Seconds for which nothing tries to connect after an attempt failed, so that requests do not wait one by one."""
LOG_INTERVAL_S = 60.0
"""Time between two log lines about a database that cannot be used, as servers try again and again."""
OPTIONS = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "prepare_threshold": None,
}
"""Of connections to PostgreSQL: a network that was cut is noticed within 25 s. Nothing is prepared, as a pooler such as
pgbouncer gives each transaction another connection."""
N_THREADS = 4
"""Most connections of a server, and threads that use them."""
WRITERS_LOCK = 0x617474656E64
"""Number of the advisory lock of those who write alone."""

_THREADS = ThreadPoolExecutor(N_THREADS, "database")

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call what uses a database. Its threads are its own, so that a database that hangs holds up nothing else.

    Raises:
        NotStored: the database does not answer. What was asked for may still happen.
    """
    call = partial(contextvars.copy_context().run, function, *arguments)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
    except TimeoutError:
        raise NotStored("The database does not answer", retry_after_s=5) from None


class Database:
    """A database that is opened at its first use. Any thread may use it.

    Args:
        place: the folder of SQLite's file, or the address of a database of PostgreSQL.
        clock: seconds since 1970; by default PostgreSQL's clock, as those of machines differ.
    """

    def __init__(self, place: Path | str, clock: Callable[[], float] | None = None) -> None:
        self._file = place / FILE if isinstance(place, Path) else None
        self._url = "" if isinstance(place, Path) else place
        self._clock = clock or (time.time if self._file else None)
        self._lock = threading.Lock()
        self._engine: sa.Engine | None = None
        self._may_connect_at = self._may_log_at = -math.inf
        self._has_failed = self._is_closed = False

    @property
    def now(self) -> "sa.ColumnElement[float]":
        """The time of a statement, in seconds since 1970."""
        if self._clock is None:
            return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)
        return sa.literal(self._clock(), sa.Double)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written. Of PostgreSQL this is not known."""
        return self._file is None or self._file.exists() or self._file.with_name("glossaries.sqlite").exists()

    @contextmanager
    def reading(self) -> Iterator["sa.Connection"]:
        """Open a transaction that does not see what others write meanwhile. Raises NotStored."""
        with self._transaction({"begin": "BEGIN"} if self._file else {"isolation_level": "REPEATABLE READ"}) as opened:
            yield opened

    @contextmanager
    def writing(self, alone: bool = True) -> Iterator["sa.Connection"]:
        """Open a transaction that writes everything, or nothing if an error is raised.

        Args:
            alone: others who write alone wait meanwhile, so that what was read stays true until it is written. On
                SQLite all writers are alone.

        Raises:
            NotStored: the database cannot be written, for example because the disk is full, or cannot be reached.
        """
        with self._transaction({"begin": "BEGIN IMMEDIATE"} if self._file else {}) as connection:
            if alone:
                self._wait_for_writers(connection)
            yield connection

    def open(self) -> None:
        """Make missing tables.

        Raises:
            StartRefused: the address is wrong, or the tables are those of a later version of attend.
            NotStored: the database cannot be used now. The log has the reason.
        """
        with self._failures():
            self._opened()

    def close(self) -> None:
        """Close it for good."""
        with self._lock:
            self._is_closed = True
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    @contextmanager
    def _transaction(self, options: dict[str, str]) -> Iterator["sa.Connection"]:
        with self._failures():
            try:
                engine = self._opened()
            except StartRefused as error:
                raise NotStored(f"This cannot be read or stored now: {error}", retry_after_s=60) from error
            with engine.connect().execution_options(**options) as connection:
                try:
                    with connection.begin():
                        yield connection
                finally:
                    if self._engine is not engine:  # it was closed meanwhile
                        connection.invalidate()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise NotStored where the database fails."""
        if time.monotonic() < self._may_connect_at:
            raise self._not_stored("it could not be reached a moment ago")
        try:
            yield
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError, sa.exc.TimeoutError) as error:
            if self._file is None and getattr(error, "statement", None) is None:  # it could not connect
                self._may_connect_at = time.monotonic() + RETRY_S
            raise self._failed(" ".join(str(getattr(error, "orig", None) or error).split())) from error
        if self._has_failed:
            logger.info("the database can be used again")
            self._has_failed, self._may_log_at = False, -math.inf

    def _failed(self, reason: str) -> NotStored:
        self._has_failed = True
        if time.monotonic() >= self._may_log_at:
            logger.error("%s cannot be used: %s", self._file or "the database", reason)
            self._may_log_at = time.monotonic() + LOG_INTERVAL_S
        return self._not_stored(reason)

    def _not_stored(self, reason: str) -> NotStored:
        told = reason if self._file else "the database cannot be used"  # its reasons name machines and users
        return NotStored(f"This cannot be stored now: {told}", retry_after_s=5)

    def _wait_for_writers(self, connection: "sa.Connection") -> None:
        if self._file is None:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS_LOCK)))

    def _opened(self) -> "sa.Engine":
        with self._lock:
            if self._is_closed:
                raise NotStored("The service ends", retry_after_s=5)
            if self._engine is None:
                engine = self._sqlite(self._file) if self._file else _postgresql(self._url)
                try:
                    with engine.connect().execution_options(begin="BEGIN IMMEDIATE") as connection, connection.begin():
                        self._make_tables(connection)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _make_tables(self, connection: "sa.Connection") -> None:
        self._wait_for_writers(connection)
        tables.SCHEMA.create(connection, checkfirst=True)
        version = connection.scalar(sa.select(tables.SCHEMA.c.version))
        if version is not None and version > tables.VERSION:
            raise StartRefused(
                f"The database has tables of version {version}, of a later attend; this one knows {tables.VERSION}"
            )
        tables.METADATA.create_all(connection)
        if version is None:
            connection.execute(sa.insert(tables.SCHEMA).values(version=tables.VERSION))
            if self._file:
                _take_over(self._file.parent, connection)

    def _sqlite(self, file: Path) -> "sa.Engine":
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(file)),
            pool_size=N_THREADS,
            max_overflow=0,
            pool_timeout=BUSY_TIMEOUT_S,
            connect_args={"timeout": BUSY_TIMEOUT_S},
        )

        @sa.event.listens_for(engine, "connect")
        def configure(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None  # transactions begin as the next function says
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")

        @sa.event.listens_for(engine, "begin")
        def begin(connection: "sa.Connection") -> None:
            connection.exec_driver_sql(connection.get_execution_options()["begin"])

        return engine


def database_of(settings: Settings) -> Database:
    """Return the database of a service, which is not opened yet. Raises StartRefused: its address cannot be read."""
    if settings.database is not None:
        return Database(settings.database.get_secret_value())
    if settings.database_file is None:
        return Database(settings.data or DEFAULT)
    try:
        return Database(settings.database_file.read_text("utf-8-sig").strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise StartRefused(
            f"The file {settings.database_file} (ATTEND_DATABASE_FILE) cannot be read: {reason}"
        ) from None


def check_database(settings: Settings) -> None:
    """Open what exists of the database. If it cannot be used now, the log says so, and the service starts without it.

    Raises:
        StartRefused: its address is wrong, or its tables are those of a later version of attend.
    """
    database = database_of(settings)
    if database.exists:
        with suppress(NotStored):
            database.open()
        database.close()


def _postgresql(address: str) -> "sa.Engine":
    """Raises StartRefused: the address is wrong, or psycopg is missing. The message never has the address."""
    scheme, separator, rest = address.partition("://")
    try:
        if scheme not in ("postgresql", "postgres") or not separator:
            raise ValueError(scheme)
        url = sa.make_url(f"postgresql+psycopg://{rest}")
    except (sa.exc.ArgumentError, ValueError):
        raise StartRefused("The address of the database must be postgresql://USER:PASSWORD@HOST:PORT/NAME") from None
    try:
        return sa.create_engine(
            url,
            pool_size=N_THREADS,
            max_overflow=0,
            pool_timeout=BUSY_TIMEOUT_S,
            pool_pre_ping=True,
            connect_args=OPTIONS,
        )
    except ModuleNotFoundError:
        raise StartRefused("ATTEND_DATABASE needs psycopg: pip install attend[postgres]") from None


def _take_over(directory: Path, connection: "sa.Connection") -> None:
    """Copy the glossaries of attend 0.3 into a new database, and delete its documents, which are kept for an hour."""
    former = directory / "glossaries.sqlite"
    if former.exists():
        with closing(sqlite3.connect(former)) as reading:
            for table in (tables.GLOSSARIES, tables.DICTIONARIES):
                rows = reading.execute(f"SELECT * FROM {table.name.removeprefix('attend_')} ORDER BY rowid")  # noqa: S608
                names = [name for name, *_ in rows.description]
                for row in rows:
                    connection.execute(sa.insert(table).values(dict(zip(names, row, strict=True))))
        logger.info("the glossaries of %s are in %s from now on", former, directory / FILE)
    for left in directory.glob("documents.sqlite*"):
        left.unlink()
    rmtree(directory / "documents", ignore_errors=True)
