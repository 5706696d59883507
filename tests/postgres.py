"""A PostgreSQL of the tests' own."""

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
"""The folder of PostgreSQL's programs on Debian."""
OPTIONS = {"listen_addresses": "", "fsync": "off", "max_connections": "200"}


@dataclass(frozen=True)
class PostgreSQL:
    """One that runs, and is reached by a socket in its folder."""

    directory: Path

    def start(self) -> None:
        options = " ".join(f"-c {name}='{value}'" for name, value in OPTIONS.items())
        log = self.directory / "log"
        run_program(self.directory, "pg_ctl", "-w", "-l", log, "-o", f"{options} -k {self.directory}", "start")

    def stop(self) -> None:
        run_program(self.directory, "pg_ctl", "-w", "-m", "immediate", "stop")

    @property
    def runs(self) -> bool:
        return (self.directory / "data" / "postmaster.pid").exists()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let all of its processes hang."""
        first = int((self.directory / "data" / "postmaster.pid").read_text().splitlines()[0])
        processes = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def address(self) -> str:
        """The address of tables in a new schema of their own."""
        url, schema = f"postgresql://postgres:secret@/postgres?host={self.directory}", f"s{uuid.uuid4().hex}"
        engine = sa.create_engine(url.replace("://", "+psycopg://", 1), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA {schema}"))
        return f"{url}&options=-csearch_path%3D{schema}"


def run_program(directory: Path, program: str, *arguments: object) -> None:
    """Run one of PostgreSQL's programs, for the database in a folder."""
    assert PROGRAMS is not None
    under = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    command = [*under, PROGRAMS / program, "-D", directory / "data", *arguments]
    subprocess.run([*map(str, command)], cwd=directory, stdout=subprocess.DEVNULL, timeout=60, check=True)


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL, as the user postgres where the tests run as root, who may not."""
    with TemporaryDirectory(prefix="attend-postgresql-") as name:
        if os.geteuid() == 0:
            shutil.chown(name, "postgres")
        own = PostgreSQL(Path(name))
        settings = "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"
        run_program(own.directory, "initdb", "--no-sync", *settings)
        own.start()
        try:
            yield own
        finally:
            own.stop()


def why_missing() -> str | None:
    """Why there can be no PostgreSQL here; None if there can."""
    if PROGRAMS is None:
        return "PostgreSQL is not installed"
    if os.geteuid() == 0 and "\npostgres:" not in Path("/etc/passwd").read_text():
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None
