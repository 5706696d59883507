"""A small database in a file, which several processes may read and write: SQLite."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY_S = 10.0
"""For so long a writer waits for others."""


class Database:
    """Opened when it is first used, and then for any thread, one after the other.

    Args:
        schema: what makes its tables, where they are not there yet.
    """

    def __init__(self, file: Path, schema: str) -> None:
        self._file = file
        self._schema = schema
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """What others write meanwhile is not seen."""
        with self._lock:
            connection = self._opened()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of it is written, or nothing if an error is raised. No other process writes meanwhile."""
        with self._lock:
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept in it."""
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
            connection = sqlite3.connect(self._file, BUSY_S, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.executescript(self._schema)
            self._connection = connection
        return self._connection
