"""The cache of sentences, before workers in virtual time: many orders of events are tried within milliseconds."""

import asyncio
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.base.contract import Answer
from service.base.errors import DeadlinePassed, Draining, InferenceFailed, QueueFull, WorkerEnded
from service.base.metrics import Metrics, TaskMetrics
from service.engine.scheduler import BURST, Sequence
from service.engine.search import Hypothesis, Search
from service.pool.pool import Admission, Pool
from service.pool.sentence_cache import CachedSearches, SentenceCache

Result = TypeVar("Result")
FAR = 1e6
SEARCH = Search(9, 2)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while all tasks wait, and then at once."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__()
        select = self._selector.select  # type: ignore[attr-defined]

        def select_at_once(timeout: float | None) -> Any:
            assert timeout is not None, "all tasks wait for ever"
            self.now += timeout
            return select(0)

        self._selector.select = select_at_once  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


class Workers:
    """Answers each call after some seconds, unless its deadline passes before or the call is to fail."""

    def __init__(self, seconds: float = 1, failing: frozenset[int] = frozenset()) -> None:
        self.seconds, self.failing = seconds, failing
        self.calls: list[list[tuple[int, ...]]] = []
        self.running: Counter[tuple[int, ...]] = Counter()
        self.most_at_once = 0

    async def compute(self, sequences: list[Sequence[Search]], deadline: float, _: Admission) -> Answer[Search]:
        number, sources = len(self.calls), [tuple(sequence.source_ids) for sequence in sequences]
        self.calls.append(sources)
        self.running.update(sources)
        self.most_at_once = max(self.most_at_once, *self.running.values())
        try:
            left_s = deadline - asyncio.get_running_loop().time()
            await asyncio.sleep(min(self.seconds, left_s))
            if left_s < self.seconds:
                raise DeadlinePassed("too late")
        finally:
            self.running.subtract(sources)
        if number in self.failing:
            raise InferenceFailed("was told to fail")
        for sequence in sequences:
            sequence.output = replace(sequence.output, finished=[right_answer(sequence.source_ids)])
        return Answer([sequence.output for sequence in sequences], 0, 0, self.seconds)


def right_answer(source_ids: list[int]) -> Hypothesis:
    return Hypothesis([*source_ids, 7], -0.5 * len(source_ids), "eos")


def outputs(answer: Answer[Search]) -> list[list[Hypothesis]]:
    return [search.finished for search in answer.outputs]


class Bench:
    """A cache before workers, in the running event loop."""

    def __init__(self, workers: Workers | None = None, max_bytes: int = 10_000, artifact: str = "a" * 64) -> None:
        self.workers = workers or Workers()
        self.metrics = Metrics()
        self.cache = SentenceCache(max_bytes, self.metrics.cache)
        self.searches = self.of(artifact)

    def of(self, artifact: str) -> CachedSearches:
        return CachedSearches(self.cache, "en-de", artifact, asyncio.get_running_loop().time)

    async def ask(
        self,
        *numbers: int,
        caller: str | None = "",
        deadline: float = FAR,
        background: bool = False,
        search: Search = SEARCH,
        searches: CachedSearches | None = None,
    ) -> list[list[Hypothesis]]:
        sequences = [Sequence([number, 3], replace(search)) for number in numbers]
        admission = Admission(background=background, caller=caller)
        answer = await (searches or self.searches).run(sequences, deadline, admission, self.workers.compute)
        assert outputs(answer) == [[right_answer([number, 3])] for number in numbers]
        assert admission.accepted or caller is None
        return outputs(answer)

    def found(self, result: str) -> float:
        return self.metrics.registry.get_sample_value("attend_cache_sentences_total", {"result": result}) or 0.0


@dataclass
class Request:
    """What a request does, and how it ended."""

    at: int
    numbers: list[int]
    patience_s: int
    cancelled_after: int | None
    ended: BaseException | None = field(default=None, init=False)
    ended_at: float = field(default=math.inf, init=False)


requests = st.builds(
    Request,
    at=st.integers(0, 12),
    numbers=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    patience_s=st.sampled_from([3, 9, 1000]),
    cancelled_after=st.none() | st.integers(0, 12),
)


@settings(max_examples=60)
@given(st.lists(requests, min_size=1, max_size=7), st.sets(st.integers(0, 6)), st.sampled_from([200, 450, 10_000]))
def test_a_request_leaves_fails_or_is_late_alone_and_no_sentence_is_computed_twice_at_once(
    asked: list[Request], failing: set[int], max_bytes: int
) -> None:
    failed: list[Request] = []

    async def one(bench: Bench, request: Request) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(request.at)
        task = asyncio.create_task(bench.ask(*request.numbers, deadline=loop.time() + request.patience_s))
        if request.cancelled_after is not None:
            loop.call_later(request.cancelled_after, task.cancel)
        await asyncio.wait([task])
        request.ended_at = loop.time()
        request.ended = asyncio.CancelledError() if task.cancelled() else task.exception()

    async def all_of_them() -> Bench:
        bench = Bench(Workers(seconds=4, failing=frozenset(failing)), max_bytes)
        await asyncio.gather(*(one(bench, request) for request in asked))
        return bench

    bench = in_virtual_time(all_of_them)
    for request in asked:
        ends_at = request.at + request.patience_s
        assert request.ended_at <= ends_at
        match request.ended:
            case None:  # `ask` has seen that the answer is right
                pass
            case asyncio.CancelledError():
                assert request.cancelled_after is not None
                assert request.ended_at == request.at + request.cancelled_after
            case DeadlinePassed():
                assert request.ended_at == ends_at
            case InferenceFailed():
                failed.append(request)
            case other:
                raise AssertionError(other)
    assert len(failed) <= len(failing), "an error is told to one request only"
    assert bench.workers.most_at_once == 1
    assert not bench.cache.leaders
    assert bench.cache.n_bytes <= max_bytes


def test_a_sentence_is_computed_once_however_many_ask_for_it() -> None:
    async def scenario() -> None:
        bench = Bench()
        await asyncio.gather(*(bench.ask(1, 1, number) for number in (2, 3, 2)))
        await bench.ask(3, 2, 1)
        assert bench.workers.calls == [[(1, 3), (2, 3)], [(3, 3)]]
        assert [bench.found(result) for result in ("miss", "joined", "hit")] == [3, 6, 3]

    in_virtual_time(scenario)


def test_when_the_first_leaves_one_of_the_others_computes() -> None:
    async def scenario() -> None:
        bench = Bench()
        first = asyncio.create_task(bench.ask(1))
        others = [asyncio.create_task(bench.ask(1)) for _ in range(3)]
        await asyncio.sleep(0.5)
        first.cancel()
        await asyncio.gather(*others)
        assert bench.workers.calls == [[(1, 3)]] * 2
        assert asyncio.get_running_loop().time() == 1.5

    in_virtual_time(scenario)


def test_a_deadline_is_that_of_the_request_alone() -> None:
    async def scenario() -> None:
        bench = Bench(Workers(seconds=4))
        slow = asyncio.create_task(bench.ask(1))
        await asyncio.sleep(1)
        with pytest.raises(DeadlinePassed):
            await bench.ask(1, deadline=2)
        assert asyncio.get_running_loop().time() == 2
        await slow
        hasty = asyncio.create_task(bench.ask(2, deadline=7))
        patient = asyncio.create_task(bench.ask(2))
        with pytest.raises(DeadlinePassed):
            await hasty
        await patient

    in_virtual_time(scenario)


def test_a_request_that_waited_for_a_dead_worker_does_not_try_the_sentence_again() -> None:
    """It may have died because of the sentence, and a second death takes the model out for everybody."""

    async def scenario() -> None:
        bench = Bench()

        async def dies(*_: object) -> Answer[Search]:
            bench.workers.calls.append([])
            await asyncio.sleep(1)
            raise WorkerEnded("the worker died")

        bench.workers.compute = dies  # type: ignore[method-assign]
        ended = await asyncio.gather(*(bench.ask(1) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in ended] == [WorkerEnded] * 3
        assert len(bench.workers.calls) == 1

    in_virtual_time(scenario)


def test_a_full_queue_refuses_those_who_waited_for_a_request_that_it_refused() -> None:
    async def scenario() -> None:
        bench = Bench()
        seen = []

        async def refuses(_: object, __: float, admission: Admission) -> Answer[Search]:
            seen.append(admission.accepted)
            await asyncio.sleep(1)
            raise QueueFull("the queue is full", retry_after_s=1)

        bench.workers.compute = refuses  # type: ignore[method-assign]
        ended = await asyncio.gather(*(bench.ask(1) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in ended] == [QueueFull] * 3
        assert seen == [False] * 3, "nothing of these requests was accepted"

    in_virtual_time(scenario)


def test_a_small_request_waits_neither_for_a_large_one_nor_for_a_document() -> None:
    async def scenario() -> None:
        bench = Bench()
        large = [*range(1, BURST + 2)]
        await asyncio.gather(bench.ask(*large), bench.ask(1), bench.ask(*large[: BURST // 2 + 1]))
        assert [len(call) for call in bench.workers.calls] == [BURST + 1, 1]
        await asyncio.gather(bench.ask(100, background=True), bench.ask(100), bench.ask(100, background=True))
        assert bench.workers.calls[2:] == [[(100, 3)]] * 2
        assert not bench.cache.leaders

    in_virtual_time(scenario)


def test_callers_share_nothing_and_who_is_unknown_goes_past_the_cache() -> None:
    async def scenario() -> None:
        bench = Bench()
        for caller in ("", "one", "two", None, None, "one"):
            await bench.ask(1, caller=caller)
        assert len(bench.workers.calls) == 5
        assert (bench.found("miss"), bench.found("hit")) == (3, 1)

    in_virtual_time(scenario)


def test_an_answer_of_another_artifact_is_never_used() -> None:
    async def scenario() -> None:
        bench = Bench()
        later = bench.of("b" * 64)
        await asyncio.gather(bench.ask(1), bench.ask(1, searches=later))
        await bench.ask(1, searches=later)
        assert len(bench.workers.calls) == 2

    in_virtual_time(scenario)


OTHER_OPTIONS = {
    "max_target_tokens": 8,
    "beam_size": 3,
    "length_penalty": 0.5,
    "n_best": 2,
    "beam_threshold": 2.5,
    "stop": "full",
    "prefix": (4,),
    "once_tokens": (5,),
    "scored": True,
    "may_end": True,
    "n_next_tokens": 3,
}


def test_every_option_of_a_search_makes_another_answer() -> None:
    assert OTHER_OPTIONS.keys() == {one.name for one in fields(Search)} - {"finished"}

    async def scenario() -> None:
        bench = Bench()
        searches = [SEARCH, *(replace(SEARCH, **{name: value}) for name, value in OTHER_OPTIONS.items())]  # type: ignore[arg-type]
        for search in searches * 2:
            await bench.ask(1, search=search)
        assert len(bench.workers.calls) == len(searches)
        assert bench.found("hit") == len(searches)

    in_virtual_time(scenario)


def test_what_one_request_changes_in_its_answer_no_other_sees() -> None:
    async def scenario() -> None:
        bench = Bench()
        for _ in range(3):
            (answer,) = await bench.ask(1)
            answer[0].token_ids.clear()
            answer.clear()

    in_virtual_time(scenario)


def test_a_pool_that_drains_refuses_what_the_cache_has() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.ask(1)
        pool: Pool[Search] = Pool("en-de/beam", [], TaskMetrics(bench.metrics, "translation"), answers=bench.searches)
        assert outputs(await pool.run([Sequence([1, 3], replace(SEARCH))], math.inf, Admission(caller="")))
        with pytest.raises(DeadlinePassed):
            await pool.run([Sequence([1, 3], replace(SEARCH))], 0, Admission(caller=""))
        pool.drain()
        with pytest.raises(Draining):
            await pool.run([Sequence([1, 3], replace(SEARCH))], math.inf, Admission(caller=""))

    in_virtual_time(scenario)


def test_memory_is_bounded_and_what_was_used_last_stays() -> None:
    metrics, max_bytes = Metrics(), 200_000
    cache = SentenceCache(max_bytes, metrics.cache)
    tracemalloc.start()
    try:
        for number in range(3_000):
            cache.put(b"key %d" % number, bytes(number % 200))
            assert cache.get(b"key 0") is not None
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.8 * max_bytes < cache.n_bytes <= max_bytes
    assert n_bytes < 1.1 * max_bytes
    assert cache.get(b"key 1") is None
    assert cache.get(b"key 2999") == bytes(199)
    cache.put(b"large", bytes(max_bytes))
    assert cache.get(b"large") is None
    assert metrics.registry.get_sample_value("attend_cache_bytes") == cache.n_bytes
    assert (metrics.registry.get_sample_value("attend_cache_evictions_total") or 0) > 2_000
