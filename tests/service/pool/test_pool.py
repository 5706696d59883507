"""Several engines of one model, each with a computation that the test drives."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest

from service.base.backlog import NO_BACKLOG, Backlog
from service.base.contract import Answer, EngineState, in_background
from service.base.errors import Broken, DeadlinePassed, Draining, InferenceFailed, QueueFull, TooManyTexts
from service.base.metrics import Metrics, TaskMetrics
from service.engine.scheduler import BURST, Sequence
from service.pool.pool import BUSY_WORK, REMEMBERED_S, Admission, Pool, admission_of
from tests.service.fakes import NAME, PATIENCE_S, Harness, Tally, sequences
from tests.service.in_process import LoopThread
from tests.waiting import until

pytestmark = pytest.mark.anyio


class Bench:
    """A pool of engines that share a clock, and the harness of each."""

    def __init__(self, n_engines: int = 2, max_waiting: int = 1000) -> None:
        first = Harness(max_waiting=max_waiting)
        others = [Harness(max_waiting=max_waiting, clock=first.clock) for _ in range(n_engines - 1)]
        self.harnesses = [first, *others]
        self.metrics = Metrics()
        self.workers = [LoopThread(harness.loop) for harness in self.harnesses]
        self.pool: Pool[Tally] = Pool(
            NAME, self.workers, TaskMetrics(self.metrics, "fake"), max_waiting=max_waiting, clock=first.clock
        )

    def start(self) -> "Bench":
        for worker in self.workers:
            worker.start()
            assert worker.warm.wait(PATIENCE_S), "the engine did not become warm"
        return self

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop(PATIENCE_S)

    def run(self, *steps: int, tokens: int = 3) -> "asyncio.Task[object]":
        work = self.pool.run(sequences(*steps, tokens=tokens), self.pool.clock() + 60)
        return asyncio.ensure_future(work)

    @property
    def unanswered(self) -> dict[str, float]:
        """The counts of requests that got no answer, by reason."""
        counters = [self.metrics.cancelled, self.metrics.rejected]
        samples = [sample for counter in counters for metric in counter.collect() for sample in metric.samples]
        return {s.labels["reason"]: s.value for s in samples if s.name.endswith("_total") and s.value}

    def hold(self) -> None:
        for harness in self.harnesses:
            harness.computation.hold()

    def release(self) -> None:
        for harness in self.harnesses:
            harness.computation.release()

    async def await_arrivals(self) -> None:
        for harness in self.harnesses:
            await asyncio.to_thread(harness.computation.await_arrival)

    @property
    def loads(self) -> list[int]:
        return [worker.load for worker in self.workers]

    @property
    def idle(self) -> bool:
        """Whether no request has any work left."""
        return not any(self.loads) and all(harness.is_idle for harness in self.harnesses)

    async def settle(self) -> None:
        """Let each loop make its next step, in which it drops cancelled requests."""
        for number in range(len(self.workers)):
            await self.submit(number, 1)

    def submit(self, number: int, steps: int, tokens: int = 3) -> "asyncio.Future[Any]":
        """Give a request of one sequence to one of the workers."""
        return self.workers[number].submit(NAME, sequences(steps, tokens=tokens), self.pool.clock() + 60)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench().start()
    yield bench
    bench.release()
    bench.stop()


async def test_a_late_request_is_never_submitted(bench: Bench) -> None:
    with pytest.raises(DeadlinePassed, match=r"2\.0 s ago"):
        await bench.pool.run(sequences(1), bench.pool.clock() - 2)
    assert (await bench.pool.run([], bench.pool.clock() - 2)).outputs == []
    assert [call for harness in bench.harnesses for call, _ in harness.computation.calls] == ["warm_up"] * 2


async def test_an_answer_has_the_outputs_in_order_whichever_engine_made_them(bench: Bench) -> None:
    answer = await bench.pool.run(sequences(3, 1, 2, 5, 4), bench.pool.clock() + 60)
    assert [tally.steps for tally in answer.outputs] == [3, 1, 2, 5, 4]
    assert [len(tally.places) for tally in answer.outputs] == [3, 1, 2, 5, 4]
    assert all(any(call == "encode" for call, _ in harness.computation.calls) for harness in bench.harnesses)


async def test_each_sequence_goes_to_the_engine_that_has_least_to_do(bench: Bench) -> None:
    bench.hold()
    tasks = [bench.run(1, tokens=10)]
    await asyncio.sleep(0)
    assert bench.loads == [10, 0]
    tasks.append(bench.run(1, 1, 1, tokens=4))
    await asyncio.sleep(0)
    assert bench.loads == [10, 12]
    tasks.append(bench.run(1, tokens=4))
    await asyncio.sleep(0)
    assert bench.loads == [14, 12]
    bench.release()
    await asyncio.gather(*tasks)
    assert bench.idle


async def test_each_engine_gets_its_shortest_sequences_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[list[int]] = []
    for loop in bench.workers:
        submit = loop.submit

        def recorded(name: str, part: list[Sequence[Tally]], deadline: float, submit: Any = submit) -> Any:
            submitted.append([len(sequence.source_ids) for sequence in part])
            return submit(name, part, deadline)

        monkeypatch.setattr(loop, "submit", recorded)
    everybody = [Sequence([1] * length, Tally(1)) for length in (3, 9, 1, 7, 5, 2)]
    await bench.pool.run(everybody, bench.pool.clock() + 60)
    assert sorted(map(sum, submitted)) == [13, 14]
    assert all(lengths == sorted(lengths) for lengths in submitted)


async def test_a_request_of_one_spares_the_last_engine_while_another_has_less_than_plenty_to_do(bench: Bench) -> None:
    bench.hold()
    tasks = []
    for tokens, loads in ((BUSY_WORK - 1, [BUSY_WORK - 1, 0]), (5, [BUSY_WORK + 4, 0]), (6, [BUSY_WORK + 4, 6])):
        tasks.append(bench.run(1, tokens=tokens))
        await asyncio.sleep(0)
        assert bench.loads == loads
    bench.release()
    await asyncio.gather(*tasks)


async def test_no_request_of_one_is_refused_while_the_last_engine_has_nothing_to_do() -> None:
    bench = Bench(max_waiting=3).start()
    bench.hold()
    tasks = [bench.run(1) for _ in range(4)]
    await asyncio.sleep(0)
    assert bench.loads == [6, 6]
    bench.release()
    await asyncio.gather(*tasks)
    bench.stop()


async def test_a_wide_search_weighs_as_much_as_its_rows(bench: Bench) -> None:
    bench.hold()
    wide, *narrow = sequences(1, 1, 1, 1)
    wide.n_rows = 3
    task = asyncio.ensure_future(bench.pool.run([wide, *narrow], bench.pool.clock() + 60))
    await asyncio.sleep(0)
    assert bench.loads == [9, 9]
    bench.release()
    await task


async def test_a_part_that_fails_fails_the_request_and_the_others_are_dropped(bench: Bench) -> None:
    failing, other = bench.harnesses
    failing.computation.failing = lambda call, _: call == "encode"
    other.computation.hold()
    task = bench.run(1000, 1000)
    with pytest.raises(InferenceFailed):
        await task
    other.computation.release()
    failing.computation.failing = lambda call, _: False
    await bench.settle()
    assert bench.idle
    assert bench.unanswered == {}, "who gets an error has an answer"


async def test_a_part_that_is_refused_takes_back_those_that_were_accepted() -> None:
    bench = Bench(max_waiting=1).start()
    bench.hold()
    running = [bench.submit(number, 1, tokens) for number, tokens in enumerate((3, 4))]
    await bench.await_arrivals()
    waiting = bench.submit(1, 1, tokens=1)
    assert bench.loads == [3, 5]
    refused = bench.run(1000, 1000)
    await asyncio.sleep(0)
    bench.release()
    with pytest.raises(QueueFull):
        await refused
    await asyncio.gather(*running, waiting)
    await until(lambda: bench.idle)  # its queue has no place for one that would settle it
    assert bench.unanswered == {"queue_full": 1}
    bench.stop()


async def test_a_cancelled_wait_cancels_every_part(bench: Bench) -> None:
    bench.hold()
    wait = bench.run(1000, 1000)
    await bench.await_arrivals()
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    bench.release()
    await bench.settle()
    assert bench.idle
    assert bench.unanswered == {"client_gone": 1}


async def test_a_deadline_that_passes_in_every_part_is_one(bench: Bench) -> None:
    bench.hold()
    late = bench.run(1000, 1000)
    await bench.await_arrivals()
    bench.harnesses[0].clock.now += 61
    bench.release()
    with pytest.raises(DeadlinePassed):
        await late
    await bench.settle()
    assert bench.unanswered == {"deadline": 1}


async def test_no_sequences_are_answered_without_a_worker() -> None:
    assert (await Bench().pool.run([], deadline=0)).outputs == []


async def test_a_pool_is_ready_when_all_its_engines_are(bench: Bench) -> None:
    assert bench.pool.unready_reason() is None
    bench.harnesses[1].computation.failing = lambda call, _: call in ("step", "warm_up")
    with pytest.raises(InferenceFailed):
        await bench.run(2, 2)
    assert bench.pool.unready_reason() == "the last forward pass failed (RuntimeError)"


async def test_a_draining_pool_answers_what_was_accepted_and_refuses_the_rest(bench: Bench) -> None:
    bench.hold()
    accepted = bench.run(3, 3)
    await bench.await_arrivals()
    bench.pool.drain()
    assert bench.pool.unready_reason() == "draining"
    with pytest.raises(Draining):
        await bench.run(1)
    assert bench.unanswered == {"draining": 1}
    bench.release()
    await accepted
    bench.stop()


async def test_more_work_for_an_accepted_request_waits_in_a_full_queue_of_a_pool_that_drains() -> None:
    bench = Bench(n_engines=1, max_waiting=1).start()
    deadline = bench.pool.clock() + 60
    with admission_of(TaskMetrics(bench.metrics, "fake")) as admission:
        await bench.pool.run(sequences(1), deadline, admission)
        bench.hold()
        running = bench.run(1)
        await bench.await_arrivals()
        waiting = bench.run(1)
        await asyncio.sleep(0)
        bench.pool.drain()
        more = asyncio.ensure_future(bench.pool.run(sequences(2), deadline, admission))
        await asyncio.sleep(0)
        bench.release()
        assert [tally.steps for tally in (await more).outputs] == [2]
    await asyncio.gather(running, waiting)
    assert bench.unanswered == {}
    bench.stop()


@pytest.mark.parametrize("reason", ["client_gone", "deadline", "an error"])
async def test_a_request_in_parts_is_counted_once(bench: Bench, reason: str) -> None:
    bench.hold()

    async def in_parts() -> None:
        with admission_of(TaskMetrics(bench.metrics, "fake")) as admission:
            parts = [bench.pool.run(sequences(1000, 1000), bench.pool.clock() + 60, admission) for _ in range(5)]
            tasks = [asyncio.ensure_future(part) for part in parts]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()

    request = asyncio.ensure_future(in_parts())
    await bench.await_arrivals()
    if reason == "client_gone":
        request.cancel()
    elif reason == "deadline":
        bench.harnesses[0].clock.now += 61
    else:
        bench.harnesses[0].computation.failing = lambda call, _: call == "encode"
    bench.release()
    with pytest.raises((asyncio.CancelledError, DeadlinePassed, InferenceFailed)):
        await request
    bench.harnesses[0].computation.failing = lambda call, _: False
    await bench.settle()
    assert bench.unanswered == ({reason: 1} if reason != "an error" else {})


async def test_a_pool_with_a_broken_engine_asks_the_other_one(bench: Bench) -> None:
    broken, whole = bench.harnesses
    broken.computation.failing = lambda call, _: True
    with pytest.raises(InferenceFailed):
        await bench.run(2, 2)
    for _ in range(4):
        await bench.run(1, 1)
    whole.computation.failing = lambda call, _: True
    with pytest.raises(InferenceFailed):
        await bench.run(2)
    with pytest.raises(Broken, match=r"fake/greedy .*forward pass failed"):
        await bench.run(2)


def test_a_pool_is_starting_until_all_its_engines_have_been_tried() -> None:
    bench = Bench()
    slow = bench.harnesses[1].computation
    slow.hold()
    for worker in bench.workers:
        worker.start()
    assert bench.workers[0].warm.wait(PATIENCE_S)
    assert bench.pool.unready_reason() == "starting"
    slow.release()
    assert bench.workers[1].warm.wait(PATIENCE_S)
    assert bench.pool.unready_reason() is None
    bench.stop()


async def test_a_request_of_too_many_sequences_is_refused_before_any_is_queued(bench: Bench) -> None:
    pool: Pool[Tally] = Pool(
        NAME, bench.workers, TaskMetrics(bench.metrics, "fake"), max_sequences=3, clock=bench.pool.clock
    )
    with pytest.raises(TooManyTexts, match=r"4 .* 3$"):
        await pool.run(sequences(1, 1, 1, 1), pool.clock() + 60)
    assert bench.idle
    assert len((await pool.run(sequences(1, 1, 1), pool.clock() + 60)).outputs) == 3


class Worker:
    """A worker that answers nothing, and notes what it was given."""

    def __init__(self, *engines: str, load: int = 0, background_load: int = 0, device: str | None = None) -> None:
        self.engines, self.load, self.background_load = engines, load, background_load
        self.device = device
        self.awaited_at = -math.inf
        self.first_in_line = self.last_in_line = NO_BACKLOG
        self.refuses = False
        self.given: list[tuple[str, bool]] = []

    def submit(self, name: str, sequences: list[Sequence[Tally]], _: float) -> "asyncio.Future[Any]":
        self.given.append((name, sequences[0].background))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.refuses:
            future.set_exception(QueueFull("full"))
        else:
            future.set_result(Answer([sequence.output for sequence in sequences], 0, 0, 0))
        return future

    def start(self) -> None:
        pass

    def stop(self, timeout_s: float) -> None:
        pass

    def backlog(self, _name: str, is_whole: bool) -> Backlog:
        return self.last_in_line if is_whole else self.first_in_line

    def state(self, name: str) -> EngineState | None:
        return EngineState(None, 1, 2, 3) if name in self.engines else None


async def test_documents_run_in_the_background_where_there_is_one() -> None:
    documents = in_background(NAME)
    busy, calm = Worker(NAME, documents, background_load=900), Worker(NAME, documents, load=500)
    pool: Pool[Tally] = Pool(NAME, [busy, calm], TaskMetrics(Metrics(), "fake"))
    assert len(pool.states()) == 4
    await pool.run(sequences(1), pool.clock() + 60, Admission(background=True))
    await pool.run(sequences(1), pool.clock() + 60, Admission())
    assert busy.given == [(NAME, False)], "what waits in the background is in nobody's way"
    assert calm.given == [(documents, True)]


async def test_documents_leave_a_core_to_requests_that_somebody_waits_for() -> None:
    documents = in_background(NAME)
    workers = [Worker(NAME, documents, background_load=900), Worker(NAME, documents)]
    pool: Pool[Tally] = Pool(NAME, workers, TaskMetrics(Metrics(), "fake"), clock=lambda: 50.0)
    for awaited_at in (49.5, 48.5):
        workers[0].awaited_at = awaited_at
        await pool.run(sequences(1), 60, Admission(background=True))
    assert [worker.given for worker in workers] == [[(documents, True)]] * 2


async def test_without_a_background_engine_documents_run_with_the_others() -> None:
    worker = Worker(NAME)
    pool: Pool[Tally] = Pool(NAME, [worker], TaskMetrics(Metrics(), "fake"))
    await pool.run(sequences(1), pool.clock() + 60, Admission(background=True))
    assert worker.given == [(NAME, True)], "its scheduler lets others pass"


async def test_a_large_request_runs_beside_others_as_documents_do_but_on_all_cores() -> None:
    documents = in_background(NAME)
    workers = [Worker(NAME, documents), Worker(NAME, documents)]
    pool: Pool[Tally] = Pool(NAME, workers, TaskMetrics(Metrics(), "fake"))
    workers[0].awaited_at = pool.clock()
    await pool.run(sequences(*[1] * BURST), pool.clock() + 60)
    await pool.run(sequences(*[1] * (BURST + 1)), pool.clock() + 60)
    assert [worker.given for worker in workers] == [[(NAME, False), (documents, False)]] * 2


BEHIND_TEN_SECONDS = Backlog(n_waiting=50, work=1000.0, work_per_s=100.0)


@pytest.mark.parametrize("timeout_s", [5, 60])
async def test_a_request_late_in_the_least_loaded_worker_is_refused_unless_it_may_wait(timeout_s: float) -> None:
    busy, calm = Worker(NAME, load=9), Worker(NAME, load=1)
    calm.first_in_line = BEHIND_TEN_SECONDS
    metrics = Metrics()
    pool: Pool[Tally] = Pool(NAME, [busy, calm], TaskMetrics(metrics, "fake"))
    if timeout_s == 5:
        with pytest.raises(QueueFull) as refusal:
            pool.refuse_late(1, pool.clock() + timeout_s)
        assert refusal.value.retry_after_s == 10
    else:
        pool.refuse_late(1, pool.clock() + timeout_s)
    refused = {"task": "fake", "reason": "queue_full"}
    assert metrics.registry.get_sample_value("attend_rejected_total", refused) == (timeout_s == 5)
    pool.refuse_late(1, pool.clock() + 5, Admission(accepted=True))


async def test_a_client_that_a_worker_has_refused_is_last_in_line_for_a_while_and_others_are_not() -> None:
    worker, now = Worker(NAME), 50.0
    worker.last_in_line, worker.refuses = BEHIND_TEN_SECONDS, True
    pool: Pool[Tally] = Pool(NAME, [worker], TaskMetrics(Metrics(), "fake"), clock=lambda: now)
    flood, other = Admission(client="flood"), Admission(client="other")
    pool.refuse_late(1, now + 5, flood)
    with pytest.raises(QueueFull):
        await pool.run(sequences(1), now + 5, Admission(client="flood"))
    with pytest.raises(QueueFull):
        pool.refuse_late(1, now + 5, flood)
    pool.refuse_late(1, now + 5, other)
    now += REMEMBERED_S + 0.1
    pool.refuse_late(1, now + 5, flood)


async def test_a_client_whose_large_request_was_refused_is_first_in_line_with_a_small_one() -> None:
    worker = Worker(NAME, in_background(NAME))
    worker.last_in_line, worker.refuses = BEHIND_TEN_SECONDS, True
    pool: Pool[Tally] = Pool(NAME, [worker], TaskMetrics(Metrics(), "fake"), clock=lambda: 50.0)
    with pytest.raises(QueueFull):
        await pool.run(sequences(*[1] * (BURST + 1)), 55, Admission(client="translator"))
    with pytest.raises(QueueFull):
        pool.refuse_late(BURST + 1, 55, Admission(client="translator"))
    pool.refuse_late(1, 55, Admission(client="translator"))
