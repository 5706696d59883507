"""An engine in a process of its own: the same answers, and a named error when the process cannot give one."""

import asyncio
import multiprocessing.connection
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.artifact import Artifact
from service.contract import Answer
from service.engine import pool
from service.engine import worker as module
from service.engine.beam_search import Search
from service.engine.pool import Pool
from service.engine.worker import Worker
from service.errors import Broken, DeadlinePassed, Draining, QueueFull, StartRefused, Unavailable
from service.metrics import Metrics, TaskMetrics
from tests.service.engine.workers import (
    MAX_WAITING,
    RESTART_PATIENCE_S,
    answered,
    make_worker,
    process_id,
    sequence,
    server_that,
    soon,
    start,
)
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator

pytestmark = pytest.mark.anyio


@pytest.fixture
async def worker(translator_artifact: Artifact) -> AsyncIterator[Worker[Search]]:
    worker = make_worker(translator_artifact)
    await start(worker)
    yield worker
    await asyncio.to_thread(worker.stop, timeout_s=0)


async def test_answers_come_back_into_the_sequences_that_were_sent(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    metrics = Metrics()
    worker = make_worker(translator_artifact, metrics)
    await start(worker)
    sent = [sequence(5, 6, 7), sequence(9, beam_size=4)]
    answer = await answered(worker.submit(sent, soon()))
    assert [s.output for s in sent] == answer.outputs
    target, log_prob = tiny_translator.translate([5, 6, 7, EOS], 9)
    assert sent[0].output.best()[0].token_ids == target
    assert sent[0].output.best()[0].log_prob == pytest.approx(log_prob, abs=1e-3)
    assert worker.load == 0
    await asyncio.to_thread(worker.stop, timeout_s=PATIENCE_S)
    assert b'attend_inference_seconds_count{phase="probe",task="translation"} 1.0' in metrics.render()


async def test_a_process_that_dies_leaves_nobody_waiting(worker: Worker[Search]) -> None:
    assert worker.unready_reason() is None
    os.kill(process_id(worker), signal.SIGSTOP)
    waiting = worker.submit([sequence(5, 6)], soon())
    os.kill(process_id(worker), signal.SIGKILL)
    with pytest.raises(Broken, match="tiny is broken: the worker process has ended"):
        await answered(waiting)
    assert worker.unready_reason() in ("the worker process has ended", "starting")
    with pytest.raises(Unavailable):
        worker.submit([sequence(5, 6)], soon())
    assert (worker.load, worker.n_waiting, worker.n_running) == (0, 0, 0)


def test_who_ends_without_stopping_its_workers_does_not_wait_for_them(translator_artifact: Artifact) -> None:
    """As where another model refuses the start."""
    ending = server_that(translator_artifact, "sys.exit(7)")
    assert subprocess.run(ending, timeout=RESTART_PATIENCE_S).returncode == 7


def test_no_process_outlives_a_server_that_was_killed(translator_artifact: Artifact) -> None:
    waiting = server_that(translator_artifact, "print('loaded', flush=True); sys.stdin.read()")
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"loaded\n"
        server.kill()
        server.communicate(timeout=PATIENCE_S)  # at its end nobody has this output, which the worker shares


async def test_who_submits_never_waits_for_a_process_that_is_stuck(worker: Worker[Search]) -> None:
    """The event loop submits: all requests, and health, would wait with it."""
    os.kill(process_id(worker), signal.SIGSTOP)
    more_than_a_socket_holds = [sequence(5, 6) for _ in range(20_000)]
    began = time.monotonic()
    worker.submit(more_than_a_socket_holds, soon()).cancel()
    assert time.monotonic() - began < PATIENCE_S


async def test_a_process_that_is_silent_gets_no_requests(
    worker: Worker[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(process_id(worker), signal.SIGSTOP)
    monkeypatch.setattr(module, "SILENCE_S", 0)
    assert worker.unready_reason() == "the worker process has not reported for 0 s"
    with pytest.raises(Broken, match="tiny is broken: the worker process has not reported for 0 s"):
        worker.submit([sequence(5)], soon())


async def test_the_others_go_on_where_one_process_has_died(
    translator_artifact: Artifact, worker: Worker[Search], tiny_translator: TinyTranslator
) -> None:
    other = make_worker(translator_artifact)
    await start(other)
    pool: Pool[Search] = Pool([worker, other], TaskMetrics(Metrics(), "translation"))
    os.kill(process_id(worker), signal.SIGSTOP)
    waiting = worker.submit([sequence(5, 6)], soon())
    os.kill(process_id(worker), signal.SIGKILL)
    with pytest.raises(Broken):
        await answered(waiting)
    sent = [sequence(5, 6), sequence(7), sequence(8, 9)]
    await pool.run(sent, soon())
    assert [s.output.best()[0].token_ids for s in sent] == [tiny_translator.translate(s.source_ids, 9)[0] for s in sent]
    assert pool.unready_reason() in ("the worker process has ended", "starting")
    await asyncio.to_thread(other.stop, timeout_s=0)


async def test_a_process_that_is_stuck_does_not_hold_a_request_beyond_its_deadline(
    worker: Worker[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "GRACE_S", 0.05)
    os.kill(process_id(worker), signal.SIGSTOP)
    with pytest.raises(DeadlinePassed, match="does not answer"):
        await Pool([worker], TaskMetrics(Metrics(), "translation")).run([sequence(5, 6)], time.monotonic() + 0.05)
    os.kill(process_id(worker), signal.SIGCONT)
    assert (await answered(worker.submit([sequence(5, 6)], soon()))).outputs[0].finished


async def test_a_full_queue_and_a_passed_deadline_are_told_by_name(worker: Worker[Search]) -> None:
    os.kill(process_id(worker), signal.SIGSTOP)
    late = worker.submit([sequence(8)], time.monotonic() - 1)
    crowd = [worker.submit([sequence(5, 6, beam_size=8)], soon()) for _ in range(MAX_WAITING + 40)]
    os.kill(process_id(worker), signal.SIGCONT)
    with pytest.raises(DeadlinePassed):
        await answered(late)
    answers = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(answer) for answer in answers} == {QueueFull, Answer}


async def test_a_cancelled_request_is_forgotten_and_the_next_one_served(worker: Worker[Search]) -> None:
    leaving = worker.submit([sequence(5, 6, max_target_tokens=70)], soon())
    assert leaving.cancel()
    assert (await answered(worker.submit([sequence(7)], soon()))).outputs[0].finished
    assert worker.load == 0


async def test_what_is_not_answered_when_it_stops_gets_a_named_error(worker: Worker[Search]) -> None:
    os.kill(process_id(worker), signal.SIGSTOP)
    waiting = worker.submit([sequence(5)], soon())
    await asyncio.to_thread(worker.stop, timeout_s=0)
    with pytest.raises(Draining, match="stopped before this request was answered"):
        await answered(waiting)
    with pytest.raises(Draining):
        worker.submit([sequence(5)], soon())


def test_a_worker_ends_also_where_its_event_loop_has_ended_before(translator_artifact: Artifact) -> None:
    worker = make_worker(translator_artifact)
    asyncio.run(start(worker))
    worker.stop(timeout_s=PATIENCE_S)
    assert not worker._process.child.is_alive()


def test_a_graph_that_cannot_be_loaded_refuses_the_start(translator_artifact: Artifact, tmp_path: Path) -> None:
    broken = shutil.copytree(translator_artifact.directory, tmp_path / "broken")
    (broken / "cpu" / "encoder.onnx").write_bytes(b"no graph")
    with pytest.raises(StartRefused, match=r"broken.*encoder\.onnx.*cannot load it"):
        make_worker(Artifact(broken, translator_artifact.manifest))


async def test_who_stops_does_not_wait_for_a_process_that_loads(
    worker: Worker[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for one of the threads that are there for everything: a machine of two cores has six, for eight processes."""
    loading = threading.Event()

    def load(process: Any) -> None:
        loading.set()
        multiprocessing.connection.wait([process.child.sentinel])  # and leaves it to others to join
        raise StartRefused("killed while it was loading")

    monkeypatch.setattr(module._Process, "wait_until_loaded", load)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    os.kill(process_id(worker), signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        while not loading.is_set():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(worker.stop, timeout_s=0)
    assert not worker._process.child.is_alive()
