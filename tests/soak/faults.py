"""What goes wrong while requests are on their way, and which errors each fault may cause."""

import asyncio
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from service.base.errors import Broken, DeadlinePassed, InferenceFailed, NotStored, Starting, UnknownDocument
from tests.postgres import PostgreSQL
from tests.soak.clock import Clock
from tests.soak.models import VERSION_SEEDS, save_version
from tests.soak.requests import Needs
from tests.soak.service import Soaked, n_descriptors, status_value

NOTHING, EVERYTHING = Needs(0), Needs.SERVER | Needs.MODELS | Needs.DATABASE
BROKEN = frozenset({Broken.code, Starting.code})
LOOK_S = 0.05
FORWARD_S = 7200
RELOAD_S = 30.0
"""Time in which a reload must be possible, though others may go on."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong, and what it may cost.

    Attributes:
        strike: lets it happen, and returns when it is over.
        touches: requests that need nothing of this must not feel it.
        codes: the errors that it may cause.
        loses_connections: whether requests may get no answer at all.
        fails_documents: whether documents that are being translated may fail.
    """

    name: str
    strike: Callable[[Soaked], Awaitable[None]]
    touches: Needs = NOTHING
    codes: frozenset[str] = frozenset()
    loses_connections: bool = False
    fails_documents: bool = False


def killed(role: str, random: Random) -> Fault:
    """A process is killed. A dead worker may have died of its document, which is not tried again."""

    async def strike(soaked: Soaked) -> None:
        process_id = await _one_of(soaked, role, random)
        os.kill(process_id, signal.SIGKILL)
        while Path(f"/proc/{process_id}").exists():
            await asyncio.sleep(0.001)

    is_server = role == "server"
    touches = EVERYTHING if is_server else Needs.MODELS
    return Fault(f"a {role} killed", strike, touches, BROKEN, loses_connections=is_server, fails_documents=True)


async def _nothing(_: Soaked) -> None:
    pass


STANDSTILL = Fault(
    "the machine stood still",
    _nothing,
    EVERYTHING,
    BROKEN | {DeadlinePassed.code, UnknownDocument.code},
    loses_connections=True,
    fails_documents=True,
)
"""Not made here, but noticed: clients and service were stopped together, while clocks went on."""


async def _one_of(soaked: Soaked, role: str, random: Random) -> int:
    """Return one of the processes with a role, as soon as there is one."""
    while not (process_ids := soaked.processes()[role]):
        await asyncio.sleep(LOOK_S)
    return random.choice(process_ids)


def stopped(seconds: float, random: Random) -> Fault:
    """A worker hangs, and goes on."""

    async def strike(soaked: Soaked) -> None:
        process_id = await _one_of(soaked, "worker", random)
        os.kill(process_id, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process_id, signal.SIGCONT)

    return Fault("a worker stopped", strike, Needs.MODELS, BROKEN | {DeadlinePassed.code})


def without_memory(seconds: float, random: Random) -> Fault:
    """A worker gets no more memory for some seconds."""

    async def strike(soaked: Soaked) -> None:
        process_id = await _one_of(soaked, "worker", random)
        in_use = 1024 * status_value(process_id, "VmSize")
        former = resource.prlimit(process_id, resource.RLIMIT_AS, (in_use, resource.RLIM_INFINITY))
        await asyncio.sleep(seconds)
        with suppress(ProcessLookupError):  # it may have died of it
            resource.prlimit(process_id, resource.RLIMIT_AS, former)

    codes = BROKEN | {InferenceFailed.code}
    return Fault("allocations fail in a worker", strike, Needs.MODELS, codes, fails_documents=True)


def without_descriptors(seconds: float, random: Random) -> Fault:
    """A server gets no more descriptors for some seconds: none for a connection, a file or a process."""

    async def strike(soaked: Soaked) -> None:
        process_id = await _one_of(soaked, "server", random)
        former = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
        try:
            resource.prlimit(process_id, resource.RLIMIT_NOFILE, (n_descriptors(process_id), former[1]))
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                resource.prlimit(process_id, resource.RLIMIT_NOFILE, former)

    codes = frozenset({NotStored.code})
    return Fault("descriptors run out in a server", strike, EVERYTHING, codes, True, True)


def full_disk(what: str, folder: Path, seconds: float, touches: Needs) -> Fault:
    """A disk has no room for a byte."""

    async def strike(_: Soaked) -> None:
        filling = folder / "filling"
        try:
            ends_at = time.monotonic() + seconds
            with filling.open("ab", buffering=0) as file:
                while time.monotonic() < ends_at:
                    _fill(file.write)
                    await asyncio.sleep(LOOK_S)
        finally:
            filling.unlink()

    return Fault(f"the disk of the {what} full", strike, touches, frozenset({NotStored.code}))


def _fill(write: Callable[[bytes], object]) -> None:
    """Write until there is no room."""
    for size in (1 << 20, 1 << 12, 1):
        with suppress(OSError):
            while True:
                write(bytes(size))


def locked(seconds: float) -> Fault:
    """Another program holds SQLite's lock."""

    async def strike(soaked: Soaked) -> None:
        file = soaked.folders.data / "attend.sqlite"
        with closing(sqlite3.connect(file, timeout=10, isolation_level=None, check_same_thread=False)) as connection:
            await asyncio.to_thread(connection.execute, "BEGIN EXCLUSIVE")
            await asyncio.sleep(seconds)
            connection.execute("ROLLBACK")

    return Fault("the database locked", strike, Needs.DATABASE, frozenset({NotStored.code}))


def restarted(postgresql: PostgreSQL, seconds: float) -> Fault:
    """PostgreSQL is stopped at once, and started again."""

    async def strike(_: Soaked) -> None:
        await asyncio.to_thread(postgresql.stop)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(postgresql.start)

    return Fault("PostgreSQL restarted", strike, Needs.DATABASE, frozenset({NotStored.code}))


def replaced(versions: list[tuple[float, set[int]]]) -> Fault:
    """A model is replaced by another version. No request may feel it, but for the answers of this model.

    Args:
        versions: since when which versions may answer; grows.
    """

    async def strike(soaked: Soaked) -> None:
        ((former,), new) = versions[-1][1], 1 - max(versions[-1][1])
        await asyncio.to_thread(save_version, soaked.folders.artifacts, VERSION_SEEDS[new])
        versions.append((time.monotonic(), {former, new}))
        ends_at = time.monotonic() + RELOAD_S
        while (status := await soaked.reload()) != 200:
            assert time.monotonic() < ends_at, f"reload was answered with {status}"
            await asyncio.sleep(LOOK_S)
        versions.append((time.monotonic(), {new}))

    return Fault("a model replaced and reloaded", strike)


def clock_forward(clock: Clock) -> Fault:
    """The clock of the service jumps: documents are deleted by time."""

    async def strike(_: Soaked) -> None:
        clock.set_forward(FORWARD_S)

    codes = frozenset({UnknownDocument.code})
    return Fault("the clock set forward", strike, Needs.DATABASE, codes, fails_documents=True)
