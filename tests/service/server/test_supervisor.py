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
from service.passes.wire import packed
from service.server import supervisor as module
from service.server.supervisor import SHORT_LIFE_S, Supervisor, _Server
from tests.service.fakes import PATIENCE_S
from tests.waiting import until

pytestmark = pytest.mark.anyio

NOTHING: Any = None


async def test_a_server_that_ended_with_something_unread_uses_no_models() -> None:
    """Its end comes as an error, and not as the end of what it says."""
    ours, theirs = socket.socketpair()
    server = _Server(NOTHING, *await asyncio.open_connection(sock=ours))
    server.tell("all are ready")
    theirs.close()
    assert [message async for message in server.messages()] == []
    server.take(1, NOTHING)
    assert server.event("taken", 1).is_set()


async def test_a_server_that_cannot_be_begun_now_is_begun_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    supervisor = Supervisor(Settings(), NOTHING, tmp_path, [], NOTHING, 1)
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


class _Loader:
    """Stands for a process that has loaded models."""

    def end(self) -> None:
        pass

    def report_worker_ends(self, report: object) -> None:
        pass

    def announce(self, settings: Settings) -> None:
        pass


async def test_a_reload_is_answered_when_every_server_has_the_new_models(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another server answered by the former models, though the client of the reload had its answer."""
    supervisor, loader = Supervisor(Settings(), NOTHING, tmp_path, [], NOTHING, 3), _Loader()
    supervisor._loader, supervisor._loaded = loader, loader  # type: ignore[assignment]  # it reloads
    monkeypatch.setattr(supervisor, "_prove", lambda _: asyncio.sleep(0))
    pairs = [socket.socketpair() for _ in range(3)]
    supervisor._servers = [_Server(NOTHING, *await asyncio.open_connection(sock=ours)) for ours, _ in pairs]
    listening = [asyncio.create_task(supervisor._listen_to(server)) for server in supervisor._servers]
    reloading = asyncio.create_task(supervisor._take((loader, loader)))  # type: ignore[arg-type]
    (_, first), (_, second), (_, dead) = pairs
    for message in (packed("serves", 1), packed("taken", 1)):
        first.sendall(message)
    await until(supervisor._servers[0].event("taken", 1).is_set)
    assert not reloading.done()
    dead.close()  # it is waited for no longer
    second.sendall(packed("serves", 1))
    await asyncio.wait_for(reloading, PATIENCE_S)
    assert not supervisor._servers[1].event("taken", 1).is_set(), "the former models may still be used"
    for own in (first, second):
        own.close()
    await asyncio.gather(*listening)


@pytest.fixture
async def stopped() -> AsyncIterator[_Server]:
    """A server that has taken models, and then hangs."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[theirs.fileno()])
    theirs.close()
    server = _Server(process, *await asyncio.open_connection(sock=ours))
    server.event("serves", 1).set()
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)  # a signal that ends it must not come first
    yield server
    server._outgoing.close()
    process.kill()
    process.wait()


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell what is unread")
async def test_a_server_that_reads_nothing_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stopped: _Server
) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    monkeypatch.setattr(module, "HUNG_S", 0.05)
    ours, theirs = socket.socketpair()
    reading = _Server(NOTHING, *await asyncio.open_connection(sock=ours))
    heard, outgoing = await asyncio.open_connection(sock=theirs)
    supervisor = Supervisor(Settings(), NOTHING, tmp_path, [], NOTHING, 2)
    supervisor._servers = [stopped, reading]
    loading = asyncio.create_task(asyncio.sleep(0))
    looking = asyncio.create_task(supervisor._end_what_hangs(loading))
    assert await asyncio.to_thread(stopped.process.wait, PATIENCE_S) == -signal.SIGKILL
    assert await heard.read(1)
    looking.cancel()
    for writer in (reading._outgoing, outgoing):
        writer.close()


@pytest.mark.process
async def test_a_server_that_takes_no_models_may_still_begin(stopped: _Server) -> None:
    stopped.event("serves", 1).clear()
    stopped.tell("all are ready")
    assert not any(stopped.hangs() for _ in range(int(module.HUNG_S / module.BEAT_S) + 1))


@pytest.mark.process
async def test_a_server_that_does_not_end_is_killed(stopped: _Server) -> None:
    stopped.process.terminate()
    stopped.end(time.monotonic())
    assert stopped.process.returncode == -signal.SIGKILL
