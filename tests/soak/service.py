"""The service of a storm: its processes by what they do, its folders, and whether it is ready."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.running_service import running_service
from tests.soak import calls
from tests.soak.http import Lost, Message, ask
from tests.soak.wrong_requests import MAX_BODY_BYTES, MAX_DOCUMENT_BYTES, MAX_TEXTS

logger = logging.getLogger(__name__)

SERVERS = WORKERS = 2
READY_IN_A_ROW = 6
"""Ready answers on as many new connections, which the system distributes over the servers."""
READY_TIMEOUT_S = 60.0
LOOK_S = 0.05
BODY_TIMEOUT_S = 5.0
READER_IDLE_S = 60.0
"""Time after which the process that reads documents ends."""
ROLES = ("supervisor", "server", "loader", "worker", "reader")


@dataclass(frozen=True)
class Folders:
    """What the service reads and writes; `data` and `log` may be small disks."""

    root: Path

    def __getattr__(self, name: str) -> Path:
        return self.root / name

    def make(self) -> None:
        for name in ("artifacts", "data", "logs", "run", "temporary"):
            (self.root / name).mkdir(exist_ok=True)

    @property
    def log(self) -> Path:
        return self.root / "logs" / "log"


@dataclass(frozen=True)
class Soaked:
    """The service under test."""

    folders: Folders
    host: str
    port: int
    supervisor: int
    database: str
    """Its address, as SQLAlchemy reads it."""

    def processes(self) -> dict[str, list[int]]:
        """Return the process ids by role."""
        servers = _children(self.supervisor, "supervised")
        loaders = _children(self.supervisor, "loader_process")
        workers = [worker for loader in loaders for worker in _children(loader)]
        readers = [reader for server in servers for reader in _children(server, "service.documents")]
        return dict(zip(ROLES, ([self.supervisor], servers, loaders, workers, readers), strict=True))

    def is_complete(self) -> bool:
        """Whether every process is there that should be. A slow model has one more worker."""
        found = self.processes()
        return [len(found[role]) for role in ("server", "loader")] == [SERVERS, 1] and len(found["worker"]) >= WORKERS

    async def unready_reason(self) -> str | None:
        """Return why one of the servers is not ready; None if all are, as far as new connections tell."""
        for _ in range(READY_IN_A_ROW):
            try:
                answer = await ask(self.host, self.port, Message("GET", "/health/ready"))
            except Lost:
                return "no answer"
            if answer.status != 200:
                return answer.body.decode(errors="replace")
        return None

    async def seconds_until_ready(self, since: float) -> float:
        """Wait until all servers are ready. A model that was disabled, as two workers died of it, is loaded anew.
        Raises AssertionError: the service did not become ready."""
        ends_at = time.monotonic() + READY_TIMEOUT_S
        told = None
        while (reason := await self.unready_reason()) is not None:
            if reason != told:
                logger.info("not ready: %s", reason)
                told = reason
            assert time.monotonic() < ends_at, f"not ready: {reason}"
            if "disabled" in reason:
                await self.reload()
            await asyncio.sleep(LOOK_S)
        return time.monotonic() - since

    async def wait_until_complete(self) -> None:
        ends_at = time.monotonic() + READY_TIMEOUT_S
        while not self.is_complete():
            assert time.monotonic() < ends_at, f"processes are missing: {self.processes()}"
            await asyncio.sleep(LOOK_S)

    async def reload(self) -> int:
        """Let the service load its models anew. Return the status."""
        try:
            return (await ask(self.host, self.port, Message("POST", "/models/reload"))).status
        except Lost:
            return 0

    async def metrics(self) -> dict[str, float]:
        """Return every series. Raises Lost."""
        answer = await ask(self.host, self.port, Message("GET", "/metrics"))
        lines = answer.body.decode().splitlines()
        series = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in series}


@contextmanager
def soaked_service(folders: Folders, settings: Mapping[str, object], variables: Mapping[str, str]) -> Iterator[Soaked]:
    """Start the service, and end it.

    Args:
        settings: settings of the service, without their prefix.
        variables: more of its environment.
    """
    defaults: dict[str, object] = {
        "artifacts": folders.artifacts,
        "provider": "cpu",
        "servers": SERVERS,
        "workers": WORKERS,
        "data": folders.data,
        "run_directory": folders.run,
        "cache": "100kB",
        "probe_interval_s": 5,
        "max_body_bytes": MAX_BODY_BYTES,
        "max_document_bytes": MAX_DOCUMENT_BYTES,
        "max_texts": MAX_TEXTS,
        "client_timeout_s": BODY_TIMEOUT_S,
        "callback_hosts": calls.HOST,
        "callback_secret": calls.SECRET,
        "default_timeout_s": 60,
        "max_timeout_s": 120,
        "log_level": "warning",
    }
    environment = {f"ATTEND_{name.upper()}": str(value) for name, value in (defaults | dict(settings)).items()}
    more = {"TMPDIR": str(folders.temporary), "ATTEND_LOG_LEVEL": "info"}
    with running_service(folders.log, environment | more | dict(variables)) as client:
        given = str(settings.get("database", f"sqlite:///{folders.data}/attend.sqlite"))
        database = given.replace("postgresql://", "postgresql+psycopg://", 1)
        yield Soaked(folders, client.base_url.host, client.base_url.port or 80, client.process_id, database)


def _children(process_id: int, of_command: str = "") -> list[int]:
    """Return the children, of every thread, whose command contains these words."""
    found = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process_id}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return sorted(child for child in found if of_command in _command_of(child))


def _command_of(process_id: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/cmdline").read_text()
    return ""


def status_value(process_id: int, name: str) -> int:
    """Return a number of /proc/ID/status, such as Threads. Raises OSError: the process has ended."""
    text = Path(f"/proc/{process_id}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def n_descriptors(process_id: int) -> int:
    """Raises OSError: the process has ended."""
    return len(os.listdir(f"/proc/{process_id}/fd"))
