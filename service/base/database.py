"""A small SQLite database in a file that several processes read and write."""

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.base.errors import NotStored

logger = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for other writers."""
LOG_INTERVAL_S = 60.0
"""Time between two log lines about a database that cannot be written, as writers try again and again."""


class Database:
    """A database that is opened at its first use. Any thread may use it; they take turns.

    Args:
        schema: SQL that creates missing tables.
    """

    def __init__(self, file: Path, schema: str) -> None:
        self._file = file
        self._schema = schema
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._may_log_at = -math.inf

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that does not see what others write meanwhile."""
        with self._lock:
            connection = self._opened()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that writes everything, or nothing if an error is raised. Other processes wait to write.

        Raises:
            NotStored: the database or a file beside it cannot be written, for example because the disk is full.
        """
        with self._lock:
            try:
                with self._transaction() as connection:
                    yield connection
            except (sqlite3.OperationalError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                if time.monotonic() >= self._may_log_at:
                    logger.error("%s cannot be written: %s", self._file, reason)
                    self._may_log_at = time.monotonic() + LOG_INTERVAL_S
                raise NotStored(f"This cannot be stored now: {reason}", retry_after_s=5) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it itself after some errors
                connection.execute("ROLLBACK")
            raise

    @property
    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self._file.exists()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.touch(mode=0o600)
            connection = sqlite3.connect(self._file, BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.executescript(self._schema)
            self._connection = connection
        return self._connection
