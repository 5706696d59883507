"""The database that servers share: SQLite's in a file, or PostgreSQL (`ATTEND_DATABASE`)."""

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from service.base.errors import NotStored, StartRefused
from service.base.log import Outage
from service.base.settings import Settings
from service.storage.data_directory import DEFAULT
from service.storage.database_engines import FILE, make_tables, postgresql_engine, sqlite_engine
from service.storage.sql import sa

logger = logging.getLogger(__name__)

RETRY_S = 1.0
"""Seconds without an attempt to connect after one has failed, so that requests do not wait one after the other."""
WRITERS_LOCK = 0x617474656E64
"""Number of the advisory lock of those who write alone."""


class Database:
    """A database that is opened at its first use. Any thread may use it.

    Args:
        place: the folder of SQLite's file, or the address of a database of PostgreSQL.
        clock: seconds since 1970; by default PostgreSQL's clock, as those of machines differ.
        count_failure: called once for each failed read or write.
    """

    def __init__(
        self,
        place: Path | str,
        clock: Callable[[], float] | None = None,
        count_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._file = place / FILE if isinstance(place, Path) else None
        self._url = "" if isinstance(place, Path) else place
        self._clock = clock or (time.time if self._file else None)
        self._lock = threading.Lock()
        self._engine: sa.Engine | None = None
        self._may_connect_at = -math.inf
        self._is_closed = False
        self._count_failure = count_failure
        self._outage = Outage(logger, str(self._file or "the database"))

    @property
    def now(self) -> "sa.ColumnElement[float]":
        """The time of a statement, in seconds since 1970."""
        if self._clock is None:
            return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)
        return sa.literal(self._clock(), sa.Double)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written; True for PostgreSQL, where this is not known."""
        return self._file is None or self._file.exists()

    @contextmanager
    def reading(self) -> Iterator["sa.Connection"]:
        """Open a transaction that does not see concurrent writes. Raises NotStored."""
        with self._transaction({"begin": "BEGIN"} if self._file else {"isolation_level": "REPEATABLE READ"}) as opened:
            yield opened

    @contextmanager
    def writing(self, alone: bool = True) -> Iterator["sa.Connection"]:
        """Open a transaction that writes everything, or nothing if an error is raised. With `alone`, others that write
        alone wait meanwhile, so that what was read stays true until it is written; on SQLite every writer is alone.
        Raises NotStored: the database cannot be written, for example because the disk is full, or cannot be reached."""
        with self._transaction({"begin": "BEGIN IMMEDIATE"} if self._file else {}) as connection:
            if alone:
                self._wait_for_writers(connection)
            yield connection

    def open(self) -> None:
        """Make missing tables. Raises StartRefused: the address is wrong, or the tables are those of a later version of
        attend. Raises NotStored: the database cannot be used now. The log has the reason."""
        with self._failures():
            self._opened()

    def close(self) -> None:
        """Close the database for good, also while a thread waits for it."""
        self._is_closed = True
        self._close_engine()

    @contextmanager
    def _transaction(self, options: dict[str, str]) -> Iterator["sa.Connection"]:
        with self._failures():
            try:
                engine = self._opened()
            except StartRefused as error:
                raise self._failed(str(error)) from error
            with engine.connect().execution_options(**options) as connection:
                try:
                    with connection.begin():
                        yield connection
                finally:
                    if self._engine is not engine:  # it was closed meanwhile
                        connection.invalidate()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raises NotStored where the database fails."""
        if time.monotonic() < self._may_connect_at:
            raise self._not_stored("it could not be reached a moment ago")
        try:
            yield
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        except Exception as error:  # not a signal, which may come while SQLAlchemy is imported and unusable
            if not isinstance(error, _errors()) or isinstance(error, (sa.exc.DataError, sa.exc.IntegrityError)):
                raise  # the latter are mistakes of ours
            if isinstance(error, sa.exc.ProgrammingError):  # a table or a right is missing: look again
                self._close_engine()
            if self._file is None and getattr(error, "statement", None) is None:  # it could not connect
                self._may_connect_at = time.monotonic() + RETRY_S
            raise self._failed(" ".join(str(getattr(error, "orig", None) or error).split())) from error
        self._outage.ended()

    def _failed(self, reason: str) -> NotStored:
        self._outage.failed(reason)
        return self._not_stored(reason)

    def _not_stored(self, reason: str) -> NotStored:
        self._count_failure()
        told = reason if self._file else "the database cannot be used"  # its reasons name machines and users
        return NotStored(f"This cannot be stored now: {told}", retry_after_s=5)

    def _wait_for_writers(self, connection: "sa.Connection") -> None:
        if self._file is None:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS_LOCK)))

    def _opened(self) -> "sa.Engine":
        with self._lock:
            self._refuse_if_closed()
            if self._engine is None:
                engine = sqlite_engine(self._file) if self._file else postgresql_engine(self._url)
                try:
                    with engine.connect().execution_options(begin="BEGIN IMMEDIATE") as connection, connection.begin():
                        self._wait_for_writers(connection)
                        make_tables(connection)
                    self._refuse_if_closed()  # nobody waits for the lock to close it
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise NotStored("The service ends", retry_after_s=5)


def _errors() -> tuple[type[Exception], ...]:
    """A database raises these if it is down, full, read-only or damaged, or if it denies this user a right."""
    return sqlite3.Error, sa.exc.DBAPIError, sa.exc.TimeoutError


def database_of(settings: Settings, count_failure: Callable[[], None] = lambda: None) -> Database:
    """Return the database of a service, which is not opened yet. Raises StartRefused: its address cannot be read."""
    address = settings.secret("database")
    return Database((settings.data or DEFAULT) if address is None else address, count_failure=count_failure)


def check_database(settings: Settings) -> None:
    """Open the database if it exists. If it cannot be used now, the log says so, and the service starts without it.
    Raises StartRefused: its address is wrong, or its tables are those of a later version of attend."""
    database = database_of(settings)
    if database.exists:
        with suppress(NotStored):
            database.open()
        database.close()
