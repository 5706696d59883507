"""What takes the place of a worker process that died, hangs or cannot be made."""

import asyncio
import os
import signal
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from service.artifact import Artifact
from service.engine import worker as module
from service.engine.beam_search import Search
from service.engine.worker import MakeEngine
from service.errors import Broken, Starting, StartRefused
from tests.service.engine.workers import (
    FATAL,
    RESTART_PATIENCE_S,
    answered,
    make_fragile_worker,
    make_worker,
    process_id,
    sequence,
    soon,
    start,
)
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "dies_of", ["its engine", "itself", "an answer that nobody can read", "an answer that cannot be sent"]
)
async def test_what_died_in_a_worker_is_replaced_and_the_next_request_served(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, dies_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Semaphore(0)

    class Process(module._Process[Search]):
        def __init__(self, name: str, make_engine: MakeEngine[Search]) -> None:
            super().__init__(name, make_engine)
            begun.release()

    monkeypatch.setattr(module, "_Process", Process)
    worker = make_fragile_worker(translator_artifact, dies_of)
    worker.start()
    for _ in range(2):
        assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE_S)
        assert await asyncio.to_thread(worker.warm.wait, RESTART_PATIENCE_S)
        [output] = (await answered(worker.submit([sequence(5, 6)], soon()))).outputs
        assert output.best()[0].token_ids == tiny_translator.translate([5, 6, EOS], 9)[0]
        assert worker.unready_reason() is None
        with pytest.raises(Broken):
            await answered(worker.submit([sequence(FATAL)], soon()))
    await asyncio.to_thread(worker.stop, timeout_s=0)


async def test_a_process_that_dies_before_it_is_warm_is_replaced_again_and_again(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Mock(side_effect=module._Process)
    monkeypatch.setattr(module, "_Process", processes)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    worker = make_fragile_worker(translator_artifact, "its warm-up")
    worker.start()
    async with asyncio.timeout(RESTART_PATIENCE_S):
        while processes.call_count < 3:
            await asyncio.sleep(0.01)
            assert worker.unready_reason() in ("starting", "the worker process has ended")
            with pytest.raises((Starting, Broken)):
                worker.submit([sequence(5)], soon())
    await asyncio.to_thread(worker.stop, timeout_s=0)
    assert not worker._process.child.is_alive()


async def test_a_process_that_dies_of_its_first_request_is_replaced_after_a_pause(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading a model again and again would leave the machine nothing for the others."""
    pauses = []
    sleep = asyncio.sleep

    async def noted_sleep(seconds: float) -> None:
        if seconds != module.LOOK_S:
            pauses.append(seconds)
        await sleep(seconds if seconds == module.LOOK_S else 0)

    monkeypatch.setattr(asyncio, "sleep", noted_sleep)
    worker = make_fragile_worker(translator_artifact, "itself")
    worker.start()
    for has_served in (True, False):
        assert await asyncio.to_thread(worker.warm.wait, RESTART_PATIENCE_S)
        if has_served:
            await answered(worker.submit([sequence(5, 6)], soon()))
        with pytest.raises(Broken):
            await answered(worker.submit([sequence(FATAL)], soon()))
    assert await asyncio.to_thread(worker.warm.wait, RESTART_PATIENCE_S)
    assert pauses == [0, module.FIRST_PAUSE_S]
    await asyncio.to_thread(worker.stop, timeout_s=0)


async def test_a_process_that_hangs_is_replaced(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual_s = module.SILENCE_S
    monkeypatch.setattr(module, "LOOK_S", 0.2)
    monkeypatch.setattr(module, "HUNG_S", 1.0)
    worker = make_worker(translator_artifact)
    await start(worker)
    os.kill(process_id(worker), signal.SIGSTOP)
    waiting = worker.submit([sequence(5, 6)], soon())
    monkeypatch.setattr(module, "SILENCE_S", 0.5)
    with pytest.raises(Broken, match="the worker process has ended"):
        await answered(waiting)
    assert "tiny: the worker process hangs and is killed" in caplog.messages
    monkeypatch.setattr(module, "SILENCE_S", usual_s)
    async with asyncio.timeout(RESTART_PATIENCE_S):
        while worker.unready_reason() is not None:
            await asyncio.sleep(0.01)
    assert (await answered(worker.submit([sequence(5, 6)], soon()))).outputs[0].finished
    await asyncio.to_thread(worker.stop, timeout_s=0)


async def test_where_a_process_cannot_be_replaced_it_is_told_in_the_log_and_tried_again(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = make_worker(translator_artifact)
    await start(worker)
    failures: list[Exception] = [OSError("too many open files"), StartRefused("no model there")]
    make_process = module._Process

    def make_or_fail(name: str, make_engine: MakeEngine[Search]) -> Any:
        if failures:
            raise failures.pop(0)
        return make_process(name, make_engine)

    monkeypatch.setattr(module, "_Process", make_or_fail)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    os.kill(process_id(worker), signal.SIGKILL)
    async with asyncio.timeout(RESTART_PATIENCE_S):
        while failures or worker.unready_reason() is not None:
            await asyncio.sleep(0.01)
    assert "tiny: the worker process cannot be replaced now: too many open files" in caplog.messages
    assert "tiny: the worker process cannot be replaced now: no model there" in caplog.messages
    assert (await answered(worker.submit([sequence(5, 6)], soon()))).outputs[0].finished
    await asyncio.to_thread(worker.stop, timeout_s=0)
