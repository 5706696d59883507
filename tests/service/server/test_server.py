"""Starting and stopping as a process does."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from service.base.metrics import Metrics
from service.base.settings import Settings
from service.server.server import LOOK_S
from service.server.start import main
from tests.service.conftest import server_of
from tests.service.fakes import PATIENCE_S
from tests.service.in_process import load_in_process
from tests.waiting import until


def start_error() -> str:
    """What the process says on standard error before it exits with status 1."""
    with pytest.raises(SystemExit) as exited:
        main()
    said = str(exited.value.code)
    assert "\n" not in said
    return said.removeprefix("attend cannot start: ")


def test_a_setting_that_makes_no_sense_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_PORT", "70000")
    assert start_error() == "ATTEND_PORT is '70000': must be less than or equal to 65535"


def test_a_signal_drains_before_the_server_ends(artifacts: Path) -> None:
    settings, metrics = Settings(artifacts=artifacts, provider="cpu", threads=1), Metrics()
    models = load_in_process(settings, metrics)
    server = server_of(models, metrics, settings)
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit
    assert models.unready_reason() == "tiny-en-fr: draining; tiny-sentiment: draining"


@pytest.mark.anyio
@pytest.mark.parametrize("delay_s", [0.0, 10 * LOOK_S])
async def test_a_draining_server_tells_newcomers_so_until_it_has_answered_all(artifacts: Path, delay_s: float) -> None:
    settings = Settings(
        artifacts=artifacts, provider="cpu", threads=1, drain_timeout_s=PATIENCE_S, drain_delay_s=delay_s
    )
    metrics = Metrics()
    models = load_in_process(settings, metrics)
    server = server_of(models, metrics, settings, log_config=None)
    serving = asyncio.create_task(server._serve())  # with no hands on this process's signals
    await until(lambda: server.started or serving.done())
    ((_, port),) = [listening.getsockname() for listening in server.servers[0].sockets]
    address = f"http://127.0.0.1:{port}"
    rest = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        yield b'{"text": '
        await rest.wait()
        yield b'"a dog"}'

    async with httpx.AsyncClient(base_url=address) as early:
        headers = {"content-type": "application/json"}
        asking = asyncio.create_task(early.post("/classify", content=slow_body(), headers=headers))
        await until(lambda: bool(server.server_state.tasks))
        server.handle_exit(signal.SIGTERM, None)
        began = time.monotonic()
        while time.monotonic() - began < 5 * LOOK_S:  # so often that it is looked whether the server may end
            async with httpx.AsyncClient(base_url=address) as late:
                assert "draining" in (await late.get("/health/ready")).json()["detail"]
        rest.set()
        assert (await asking).status_code == 503
    await asyncio.wait_for(serving, PATIENCE_S)
