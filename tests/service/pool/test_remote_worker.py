"""A worker in a process of its own: the same answers, and a named error when the process cannot give one."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.base.artifact import Artifact
from service.base.backlog import Backlog
from service.base.contract import Answer, EngineState
from service.base.errors import Broken, DeadlinePassed, Draining, QueueFull, Silent, Unavailable, WorkerEnded
from service.base.metrics import Metrics, TaskMetrics
from service.engine.search import Search
from service.passes.wire import packed
from service.pool import pool, remote_worker
from service.pool.pool import Pool
from service.pool.remote_worker import RemoteWorker
from service.worker.loader_process import NICENESS
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator
from tests.service.worker_services import (
    MAX_WAITING,
    SLOTS,
    Service,
    answered,
    make_service,
    pause,
    sequence,
    server_that,
    soon,
    unready_reason,
    until,
)

pytestmark = [pytest.mark.anyio, pytest.mark.process]

GREEDY, BEAM = "tiny/greedy", "tiny/beam"


@pytest.fixture
async def service(translator_artifact: Artifact) -> AsyncIterator[Service]:
    service = await make_service(translator_artifact).start()
    yield service
    await service.stop()


async def test_answers_come_back_into_the_sequences_that_were_sent(
    service: Service, tiny_translator: TinyTranslator
) -> None:
    worker, sent, wide = service.worker, [sequence(5, 6, 7), sequence(8)], [sequence(9, beam_size=4)]
    answers = [await answered(worker.submit(GREEDY, sent, soon())), await answered(worker.submit(BEAM, wide, soon()))]
    assert [s.output for s in (*sent, *wide)] == [*answers[0].outputs, *answers[1].outputs]
    target, log_prob = tiny_translator.translate([5, 6, 7, EOS], 9)
    assert sent[0].output.best()[0].token_ids == target
    assert sent[0].output.best()[0].log_prob == pytest.approx(log_prob, abs=1e-3)
    assert worker.load == 0
    await until(lambda: b'attend_inference_seconds_count{phase="encode",task="translation"} 2.0' in metrics(service))


def metrics(service: Service) -> bytes:
    return service.metrics.render()


async def test_a_process_that_dies_leaves_nobody_waiting_and_another_serves(service: Service) -> None:
    worker = service.worker
    assert unready_reason(worker) is None
    pause(service.process_id())
    waiting = worker.submit(GREEDY, [sequence(5, 6)], soon())
    os.kill(service.process_id(), signal.SIGKILL)
    with pytest.raises(WorkerEnded, match="tiny/greedy"):
        await answered(waiting)
    assert unready_reason(worker) == "starting"
    with pytest.raises(Unavailable):
        worker.submit(GREEDY, [sequence(5, 6)], soon())
    assert worker.load == 0
    await until(lambda: unready_reason(worker) is None)
    assert (await answered(worker.submit(GREEDY, [sequence(5, 6)], soon()))).outputs[0].finished


def test_a_server_that_ends_without_stopping_its_workers_does_not_wait_for_them(translator_artifact: Artifact) -> None:
    """A server ends so if another model refuses the start."""
    ending = server_that(translator_artifact, "sys.exit(7)")
    assert subprocess.run(ending, timeout=60).returncode == 7


@pytest.mark.parametrize("then", ["server.kill()", "kill the loader"])
def test_no_process_outlives_a_server_or_a_loader_that_was_killed(translator_artifact: Artifact, then: str) -> None:
    waiting = server_that(translator_artifact, "print(service.loader._process.pid, flush=True); sys.stdin.read()")
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        loader = int(server.stdout.readline())
        if then == "kill the loader":
            os.kill(loader, signal.SIGKILL)
        server.kill()
        server.communicate(timeout=PATIENCE_S)  # at its end nobody has this output, which the workers share


async def test_a_submitted_request_never_waits_for_a_process_that_is_stuck(service: Service) -> None:
    """The event loop submits requests: if it waited, all requests and health checks would wait."""
    pause(service.process_id())
    more_than_a_socket_holds = [sequence(5, 6) for _ in range(20_000)]
    began = time.monotonic()
    service.worker.submit(GREEDY, more_than_a_socket_holds, soon()).cancel()
    assert time.monotonic() - began < PATIENCE_S


async def test_a_process_that_is_silent_gets_no_requests(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    pause(service.process_id())
    monkeypatch.setattr(remote_worker, "SILENCE_S", 0)
    assert (unready_reason(service.worker) or "").startswith("its worker has not reported for ")
    with pytest.raises(Silent, match=r"tiny/greedy .* has not reported for \d+ s"):
        service.worker.submit(GREEDY, [sequence(5)], soon())


async def test_a_process_that_stays_silent_is_given_up(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_worker, "SILENCE_S", 3.0)
    monkeypatch.setattr(remote_worker, "HUNG_S", 0.5)
    service = await make_service(translator_artifact).start()
    pause(service.process_id())
    with pytest.raises(WorkerEnded):
        await answered(service.worker.submit(GREEDY, [sequence(5)], soon()))
    os.kill(service.process_id(), signal.SIGCONT)
    await until(lambda: unready_reason(service.worker) is None)
    await service.stop()


async def test_the_others_go_on_where_one_process_has_died(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    service = await make_service(translator_artifact, n_workers=2, MIN_PAUSE_S=3600.0).start()
    broken = service.worker
    all_workers: Pool[Search] = Pool(GREEDY, service.workers, TaskMetrics(Metrics(), "translation"))
    pause(service.process_id())
    waiting = broken.submit(GREEDY, [sequence(5, 6)], soon())
    os.kill(service.process_id(), signal.SIGKILL)
    with pytest.raises(Broken):
        await answered(waiting)
    sent = [sequence(5, 6), sequence(7), sequence(8, 9)]
    await all_workers.run(sent, soon())
    assert [s.output.best()[0].token_ids for s in sent] == [tiny_translator.translate(s.source_ids, 9)[0] for s in sent]
    await service.stop()


async def test_a_process_that_is_stuck_does_not_hold_a_request_beyond_its_deadline(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "GRACE_S", 0.05)
    pause(service.process_id())
    with pytest.raises(DeadlinePassed, match="not answer"):
        await Pool(GREEDY, service.workers, TaskMetrics(Metrics(), "translation")).run(
            [sequence(5, 6)], time.monotonic() + 1
        )
    os.kill(service.process_id(), signal.SIGCONT)
    assert (await answered(service.worker.submit(GREEDY, [sequence(5, 6)], soon()))).outputs[0].finished


async def test_a_full_queue_and_a_passed_deadline_are_told_by_name(service: Service) -> None:
    pause(service.process_id())
    late = service.worker.submit(GREEDY, [sequence(8)], time.monotonic() - 1)
    crowd = [service.worker.submit(BEAM, [sequence(5, 6, beam_size=8)], soon()) for _ in range(MAX_WAITING + 40)]
    os.kill(service.process_id(), signal.SIGCONT)
    with pytest.raises(DeadlinePassed):
        await answered(late)
    answers = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(answer) for answer in answers} == {QueueFull, Answer}


async def test_a_worker_gives_way_to_its_server_where_cores_are_busy(service: Service) -> None:
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert os.getpriority(os.PRIO_PROCESS, service.process_id()) == min(19, own + NICENESS)
    assert os.getsid(service.process_id()) == os.getsid(0), "Linux compares priorities within a session"


async def connected(path: Path) -> tuple[RemoteWorker, socket.socket]:
    """Return a server's side of a worker, and the connection of the worker, which is a part of the test."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        worker = RemoteWorker(path, Metrics().add)
        worker.start()
        process, _ = await asyncio.to_thread(listener.accept)
    process.sendall(packed("report", {BEAM: EngineState(None, 0, 0, SLOTS)}, {}))
    await until(lambda: unready_reason(worker, BEAM) is None)
    return worker, process


async def test_a_request_whose_answer_cannot_be_read_fails(tmp_path: Path) -> None:
    worker, process = await connected(tmp_path / "worker")
    with process:
        waiting = worker.submit(BEAM, [sequence(5, 6)], soon())
        process.sendall(packed("answer", 0, ([], 0.0, 0.0)))
        with pytest.raises(WorkerEnded):
            await answered(waiting)
        await asyncio.to_thread(worker.stop, 0)


async def test_a_worker_that_refuses_tells_what_it_has_to_do_and_less_is_left_as_it_answers(tmp_path: Path) -> None:
    """Many messages are read before a callback of the first is called."""
    worker, process = await connected(tmp_path / "worker")
    with process:
        crowd = [worker.submit(BEAM, [sequence(5, 6, beam_size=8)], soon()) for _ in range(MAX_WAITING + 40)]
        whole = Backlog(MAX_WAITING, MAX_WAITING * sequence(5, 6, beam_size=8).work, 1.0)
        refusal = QueueFull("The queue is full")
        refusal.state = EngineState(None, MAX_WAITING, 1, SLOTS, whole, whole)
        process.sendall(b"".join([packed("answer", number, refusal) for number in range(MAX_WAITING, len(crowd))]))
        await asyncio.gather(*crowd[MAX_WAITING:], return_exceptions=True)
        assert worker.backlog(BEAM, is_whole=True) == whole
        for number, future in enumerate(crowd[:MAX_WAITING]):
            process.sendall(packed("answer", number, DeadlinePassed("late")))
            with pytest.raises(DeadlinePassed):
                await answered(future)
            assert worker.backlog(BEAM, is_whole=True).n_waiting == MAX_WAITING - 1 - number
        await asyncio.to_thread(worker.stop, 0)


async def test_a_cancelled_request_is_forgotten_and_the_next_one_served(service: Service) -> None:
    leaving = service.worker.submit(GREEDY, [sequence(5, 6, max_target_tokens=70)], soon())
    assert leaving.cancel()
    assert (await answered(service.worker.submit(GREEDY, [sequence(7)], soon()))).outputs[0].finished
    assert service.worker.load == 0


async def test_an_unanswered_request_gets_a_named_error_when_the_worker_stops(service: Service) -> None:
    pause(service.process_id())
    waiting = service.worker.submit(GREEDY, [sequence(5)], soon())
    await asyncio.to_thread(service.worker.stop, timeout_s=0)
    with pytest.raises(Draining):
        await answered(waiting)


async def test_two_servers_get_their_own_answers_and_each_event_is_counted_once(service: Service) -> None:
    [other] = service.connections()
    other.start()
    await until(lambda: unready_reason(other) is None)
    sent = [[sequence(5, number)] for number in range(4, 12)]
    workers = [service.worker, other]
    for first, second in zip(sent[::2], sent[1::2], strict=True):
        await asyncio.gather(
            *(worker.submit(GREEDY, s, soon()) for worker, s in zip(workers, (first, second), strict=True))
        )
    assert all(request[0].output.best()[0].token_ids for request in sent)
    await asyncio.to_thread(other.stop, PATIENCE_S)
    tokens = sum(len(request[0].source_ids) for request in sent)
    source = f'attend_tokens_total{{side="source",task="translation"}} {float(tokens)}'.encode()
    await until(lambda: source in metrics(service))
    assert (await answered(service.worker.submit(GREEDY, [sequence(7)], soon()))).outputs[0].finished


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_a_request_that_comes_while_the_connection_closes_is_refused_by_name(service: Service) -> None:
    """uvloop, on which servers run, raises its own error where something is written into a closed connection."""
    worker = service.worker
    waiting = worker.submit(GREEDY, [sequence(5, 6)], soon())
    assert worker._outgoing is not None
    worker._outgoing.abort()
    waiting.cancel()
    with pytest.raises(Unavailable):
        await answered(worker.submit(GREEDY, [sequence(5, 6)], soon()))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await answered(worker.submit(GREEDY, [sequence(5, 6)], soon()))
    await until(lambda: unready_reason(worker) is None)
    await answered(worker.submit(GREEDY, [sequence(5, 6)], soon()))
