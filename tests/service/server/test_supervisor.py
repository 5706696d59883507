"""What the supervisor of several servers does when one of them ends at a bad moment."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.base.settings import Settings
from service.server import supervisor as module
from service.server.supervisor import SHORT_LIFE_S, Supervisor, _Server
from tests.service.fakes import PATIENCE_S

pytestmark = pytest.mark.anyio

NOTHING: Any = None


async def test_a_server_that_ended_with_something_unread_uses_no_models() -> None:
    """Its end comes as an error, and not as the end of what it says."""
    ours, theirs = socket.socketpair()
    server = _Server(NOTHING, *await asyncio.open_connection(sock=ours))
    server.tell("all are ready")
    theirs.close()
    assert [message async for message in server.messages()] == []
    assert server.take(1, NOTHING).is_set()


async def test_a_server_that_cannot_be_begun_now_is_begun_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    supervisor = Supervisor(Settings(), tmp_path, 0, NOTHING, 1)
    dead: Any = SimpleNamespace(
        process=SimpleNamespace(poll=lambda: -9, returncode=-9, pid=1), begun_at=time.monotonic() - SHORT_LIFE_S
    )
    supervisor._servers = [dead]
    answers: list[Any] = [BlockingIOError("no room"), "another server"]

    async def begin(place: int, joins: bool) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(supervisor, "_begin", begin)
    await supervisor._look_after_servers()
    await supervisor._look_after_servers()
    assert supervisor._servers == [dead]
    dead.begun_at -= SHORT_LIFE_S
    await supervisor._look_after_servers()
    assert supervisor._servers == ["another server"]


@pytest.fixture
async def stopped() -> AsyncIterator[_Server]:
    """A server that has taken models, and then hangs."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[theirs.fileno()])
    theirs.close()
    server = _Server(process, *await asyncio.open_connection(sock=ours))
    server.taken[1] = asyncio.Event()
    server.taken[1].set()
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)  # a signal that ends it must not come first
    yield server
    server._outgoing.close()
    process.kill()
    process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell what is unread")
async def test_a_server_that_reads_nothing_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stopped: _Server
) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    monkeypatch.setattr(module, "HUNG_S", 0.05)
    ours, theirs = socket.socketpair()
    reading = _Server(NOTHING, *await asyncio.open_connection(sock=ours))
    heard, outgoing = await asyncio.open_connection(sock=theirs)
    supervisor = Supervisor(Settings(), tmp_path, 0, NOTHING, 2)
    supervisor._servers = [stopped, reading]
    loading = asyncio.create_task(asyncio.sleep(0))
    looking = asyncio.create_task(supervisor._end_what_hangs(loading))
    assert await asyncio.to_thread(stopped.process.wait, PATIENCE_S) == -signal.SIGKILL
    assert await heard.read(1)
    looking.cancel()
    for writer in (reading._outgoing, outgoing):
        writer.close()


async def test_a_server_that_takes_no_models_may_still_begin(stopped: _Server) -> None:
    stopped.taken.clear()
    stopped.tell("all are ready")
    assert not any(stopped.hangs() for _ in range(int(module.HUNG_S / module.BEAT_S) + 1))


async def test_a_server_that_does_not_end_is_killed(stopped: _Server) -> None:
    stopped.process.terminate()
    stopped.end(time.monotonic())
    assert stopped.process.returncode == -signal.SIGKILL
