"""What the supervisor of several servers does when one of them ends at a bad moment."""

import asyncio
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.http.supervisor import SHORT_LIFE_S, Supervisor, _Server
from service.settings import Settings

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

    async def begin(joins: bool) -> Any:
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
