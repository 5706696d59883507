"""What one of several servers does when its supervisor has gone."""

import asyncio
import os
import socket
from typing import Any

import pytest

from service.base.errors import ReloadRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.serving import Serving
from service.server.supervised import SupervisedSupplier
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def test_a_reload_is_answered_when_the_supervisor_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was waited for until the drain timeout, and the port was not free for another service."""
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *sent: signals.append(sent))
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    keys: Any = None
    supplier = SupervisedSupplier(Settings(), Metrics(), Serving(15), keys, ours, joins=False)
    running = asyncio.create_task(supplier.run())
    await until(lambda: supplier._outgoing is not None)
    reloading = asyncio.create_task(supplier.reload())
    await asyncio.get_running_loop().sock_recv(theirs, 1)
    theirs.close()
    for asked in (reloading, supplier.reload()):
        with pytest.raises(ReloadRefused, match="this server ends"):
            await asked
    await running
    assert [process_id for process_id, _ in signals] == [os.getpid()]
