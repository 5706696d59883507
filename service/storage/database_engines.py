"""The engines of SQLAlchemy for both databases, and the tables in them."""

import re
import sqlite3
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from service.base.errors import StartRefused
from service.storage.database_threads import N_THREADS, TIMEOUT_S
from service.storage.sql import MODULES_OF_TABLES, sa, tables

FILE = "attend.sqlite"

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for other writers."""
ADDRESS = re.compile(
    r"(postgresql|postgres|postgresql\+psycopg)://((?P<user>[^:/?@]*):(?P<password>.*)@)?(?P<rest>.*)", re.DOTALL
)
"""Any password is understood, percent-encoded or not: libpq would take a part of some for a host, and name it."""
LOOK_S = 0.01
CONNECT_TIMEOUT_S = 5
OPTIONS: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "prepare_threshold": None,
}
"""Options of connections to PostgreSQL. A network that was cut is noticed within 25 s. Nothing is prepared, as a pooler
such as pgbouncer gives each transaction another connection."""
TIME_LIMITS = (
    f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT_S}s'; SET LOCAL statement_timeout = '{TIMEOUT_S}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{TIMEOUT_S}s'"
)
"""Limits of each transaction, as a pooler keeps no settings of a session. A server that is paused within a transaction,
or somebody who locks a table, holds up others no longer than this."""


def sqlite_engine(file: Path) -> "sa.Engine":
    """Return SQLite's engine. The file is made, for this user alone. Raises OSError."""
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
        _write_ahead(connection)
        for pragma in ("synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: "sa.Connection") -> None:
        connection.exec_driver_sql(connection.get_execution_options()["begin"])

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn SQLite's log on. Where several processes do so at once, SQLite refuses some without waiting."""
    ends_at = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
        time.sleep(LOOK_S)


def postgresql_engine(address: str) -> "sa.Engine":
    """Return the engine of an address that libpq can read. Raises StartRefused: the address is wrong, or psycopg is
    missing. The message never has the address."""
    parameters = dict(OPTIONS)
    try:
        engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(**parameters),
            pool_size=N_THREADS,
            max_overflow=0,
            pool_timeout=BUSY_TIMEOUT_S,
            pool_pre_ping=True,
        )
    except ImportError:  # psycopg, or libpq
        raise StartRefused("ATTEND_DATABASE needs psycopg: pip install 'psycopg[binary]'") from None
    psycopg: Any = engine.dialect.dbapi
    match = ADDRESS.fullmatch(address)
    try:
        if match is None:
            raise ValueError
        user = f"{match['user']}:{quote(unquote(match['password']), safe='')}@" if match["password"] else ""
        parameters |= psycopg.conninfo.conninfo_to_dict(f"postgresql://{user}{match['rest']}")
        for port in filter(None, str(parameters.get("port", "")).split(",")):
            int(port)
    except (psycopg.Error, ValueError):  # its message may have the password
        raise StartRefused(
            "The address of the database must be postgresql://USER:PASSWORD@HOST:PORT/NAME, with libpq's parameters"
        ) from None

    @sa.event.listens_for(engine, "begin")
    def limit_time(connection: "sa.Connection") -> None:
        connection.exec_driver_sql(TIME_LIMITS)

    return engine


def make_tables(connection: "sa.Connection") -> None:
    """Make what is missing, while nobody else does. Raises StartRefused: the tables are those of a later version."""
    tables.SCHEMA.create(connection, checkfirst=True)
    version = connection.scalar(sa.select(tables.SCHEMA.c.version))
    if version is not None and version > tables.VERSION:
        raise StartRefused(
            f"The database has tables of version {version}, of a later attend; this one knows {tables.VERSION}"
        )
    for module in MODULES_OF_TABLES:
        import_module(module)
    tables.METADATA.create_all(connection)
    _add_missing_columns(connection)
    if version != tables.VERSION:
        connection.execute(sa.delete(tables.SCHEMA))
        connection.execute(sa.insert(tables.SCHEMA).values(version=tables.VERSION))


def _add_missing_columns(connection: "sa.Connection") -> None:
    """Tables of the release before may lack columns."""
    known = sa.inspect(connection)
    for table in tables.METADATA.sorted_tables:
        existing = {column["name"] for column in known.get_columns(table.name)}
        for column in table.columns:
            if column.name not in existing:
                definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
