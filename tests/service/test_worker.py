"""An engine in a process of its own: the same answers, and a named error when the process cannot give one."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, cast
from unittest.mock import Mock

import pytest

from service import pool
from service import worker as module
from service.artifact import Artifact
from service.decoding import Search
from service.engine import Answer, Engine
from service.errors import Broken, DeadlinePassed, Draining, QueueFull, Starting, StartRefused, Unavailable
from service.loading import translation_engine
from service.metrics import EngineEvents, EngineMetrics, Metrics, RequestMetrics
from service.pool import Pool
from service.runner.provider import Provider
from service.scheduler import Sequence
from service.worker import MakeEngine, Worker
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator

pytestmark = pytest.mark.anyio

SLOTS, MAX_WAITING = 8, 3
RESTART_PATIENCE_S = 12 * PATIENCE_S
"""For a process that imports everything anew."""

FATAL = 13
"""Who reads this token dies."""


def make_worker(artifact: Artifact, metrics: Metrics | None = None) -> Worker[Search]:
    make_engine = partial(translation_engine, artifact, Provider("cpu", 1), SLOTS, MAX_WAITING, 100, 3600.0, "tiny")
    worker = Worker("tiny", make_engine, SLOTS, EngineMetrics(metrics or Metrics(), "translation"))
    worker.wait_until_loaded()
    return worker


class Unreadable:
    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("not a number",)


def fragile_engine(
    artifact: Artifact,
    dies_of: Literal[
        "its engine", "itself", "its warm-up", "an answer that nobody can read", "an answer that cannot be sent"
    ],
    events: EngineEvents,
) -> Engine[Search]:
    """The engine of a worker process in which something dies."""
    engine = translation_engine(artifact, Provider("cpu", 1), SLOTS, MAX_WAITING, 100, 3600.0, "fragile", events)
    computation = engine._computation
    prefill = computation.prefill
    outputs = {"an answer that nobody can read": Unreadable(), "an answer that cannot be sent": threading.Lock()}

    def read(first_place: int, sequences: list[Sequence[Search]]) -> None:
        if not any(FATAL in sequence.source_ids for sequence in sequences):
            prefill(first_place, sequences)
        elif dies_of.startswith("an answer"):
            for sequence in sequences:
                sequence.output, sequence.finished = cast(Search, outputs[dies_of]), True
        else:
            die()

    def die() -> None:
        if dies_of == "its engine":
            raise SystemExit  # no Exception, and so the end of the engine's thread
        os._exit(1)

    computation.prefill = read  # type: ignore[method-assign]
    if dies_of == "its warm-up":
        computation.warm_up = die  # type: ignore[method-assign]
    return engine


def make_fragile_worker(artifact: Artifact, dies_of: str) -> Worker[Search]:
    make_engine = partial(fragile_engine, artifact, dies_of)
    worker = Worker("fragile", make_engine, SLOTS, EngineMetrics(Metrics(), "translation"))
    worker.wait_until_loaded()
    return worker


@pytest.fixture
async def worker(translator_artifact: Artifact) -> AsyncIterator[Worker[Search]]:
    worker = make_worker(translator_artifact)
    await start(worker)
    yield worker
    await asyncio.to_thread(worker.stop, timeout_s=0)


def server_that(artifact: Artifact, then: str) -> list[str]:
    """The command of a process that loads a worker and then does something."""
    script = (
        "import sys; from pathlib import Path; from service.artifact import read_artifact; "
        "from tests.service.test_worker import make_worker; "
        f"worker = make_worker(read_artifact(Path(sys.argv[1]))); {then}"
    )
    return [sys.executable, "-c", script, str(artifact.directory)]


async def start(worker: Worker[Search]) -> None:
    worker.start()
    assert await asyncio.to_thread(worker.warm.wait, PATIENCE_S)


async def answered(future: "asyncio.Future[Answer[Search]]") -> Answer[Search]:
    return await asyncio.wait_for(future, PATIENCE_S)


def process_id(worker: Worker[Search]) -> int:
    process_id = worker._process.child.pid
    assert process_id is not None
    return process_id


def sequence(*words: int, beam_size: int = 1, max_target_tokens: int = 9) -> Sequence[Search]:
    return Sequence([*words, EOS], Search(max_target_tokens, beam_size), slots=beam_size)


def soon() -> float:
    return time.monotonic() + PATIENCE_S


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


async def test_the_others_go_on_where_one_process_has_died(
    translator_artifact: Artifact, worker: Worker[Search], tiny_translator: TinyTranslator
) -> None:
    other = make_worker(translator_artifact)
    await start(other)
    pool: Pool[Search] = Pool([worker, other], RequestMetrics(Metrics(), "translation"))
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
        await Pool([worker], RequestMetrics(Metrics(), "translation")).run([sequence(5, 6)], time.monotonic() + 0.05)
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


async def test_where_a_process_cannot_be_replaced_it_is_told_in_the_log_and_tried_again(
    worker: Worker[Search], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_a_graph_that_cannot_be_loaded_refuses_the_start(translator_artifact: Artifact) -> None:
    manifest = translator_artifact.manifest
    broken = Artifact(translator_artifact.directory / "nowhere", manifest)
    with pytest.raises(StartRefused, match=r"nowhere.*cannot load it"):
        make_worker(broken)


async def test_who_stops_does_not_wait_for_a_process_that_loads(
    worker: Worker[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for one of the threads that are there for everything: a machine of two cores has six, for eight processes."""
    loading = threading.Event()

    def load(process: Any) -> None:
        loading.set()
        process.child.join()
        raise StartRefused("killed while it was loading")

    monkeypatch.setattr(module._Process, "wait_until_loaded", load)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    os.kill(process_id(worker), signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        while not loading.is_set():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(worker.stop, timeout_s=0)
    assert not worker._process.child.is_alive()
