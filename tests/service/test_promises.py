"""The service's promises as a client sees them: the whole application around decoder rows that the test drives.

That neighbours never change an answer is shown with real graphs, in test_runner.py and test_http.py.
"""

import asyncio
import json
import math
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.types import Message

from manifest.schema import Decoding
from service.base.artifact import Artifact
from service.base.contract import AnyInts, BeamLayout, Candidates, EncodedSource, Ints
from service.base.errors import DeadlinePassed, Draining, InferenceFailed, NotReady, QueueFull, Starting, WorkerEnded
from service.base.metrics import Metrics, TaskMetrics
from service.base.settings import Settings
from service.engine.beam_search import BeamSearch
from service.engine.engine import ContinuousEngine
from service.engine.loop import Loop
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from service.front.catalog import Catalog
from service.pool.pool import Pool
from service.server.server import Server
from service.tasks.translation.translator import Translator
from service.text.tokenization import Tokenizer
from tests.service.conftest import Serve, problem, server_of, until_warm
from tests.service.engine.test_beam_search import encoded
from tests.service.fakes import PATIENCE_S
from tests.service.in_process import LoopThread
from tests.service.tiny_artifacts import BOS, EOS
from tests.waiting import until

pytestmark = pytest.mark.anyio

ENDLESS, SHORT = "the dog", "a cat"
GATED = "gated/greedy"


class GatedRows:
    """Beams of one that never end, nor repeat, where the source is ENDLESS, and end at once otherwise.

    Each step waits while held.
    """

    def __init__(self, endless: list[int]) -> None:
        self.n_rows = 8
        self._endless = endless
        self._sources: dict[int, list[int]] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.stepping = threading.Semaphore(0)
        self.rows_of_steps: list[int] = []
        self.error: BaseException | None = None

    def encode(self, sources: list[Ints]) -> list[EncodedSource]:
        return encoded(sources)

    def enter(self, first_place: int, sources: list[EncodedSource]) -> None:
        self._sources.update(enumerate([source.token_ids for source in sources], start=first_place))

    def step(
        self, token_ids: AnyInts, positions: AnyInts, length: int, k: int, beams: BeamLayout | None = None
    ) -> Candidates:
        self.stepping.release()
        assert self.gate.wait(PATIENCE_S), "the test forgot to open the gate"
        if self.error is not None:
            raise self.error
        self.rows_of_steps.append(len(token_ids))
        chosen = [
            [5 + position if self._sources[place] == self._endless else EOS] * k
            for place, position in zip(beams.places_of_rows if beams else range(len(token_ids)), positions, strict=True)
        ]
        return np.array(chosen), np.zeros((len(token_ids), k), np.float32)

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        raise AssertionError("a beam of one stays where it is")

    def move(self, source_place: int, target_place: int) -> None:
        self._sources[target_place] = self._sources[source_place]

    async def await_step(self) -> None:
        assert await asyncio.to_thread(self.stepping.acquire, timeout=PATIENCE_S), "no step came"


class Bench:
    """One translator on gated rows, with room for two sequences."""

    def __init__(self, artifact: Artifact) -> None:
        tokenizer = Tokenizer(artifact.path("tokenizer.json"))
        self.rows = GatedRows(*tokenizer.encode([ENDLESS]))
        self.metrics = Metrics()
        self.scheduler: Scheduler[Search] = Scheduler(max_rows=2, max_waiting=1, prefill_padded_tokens=100)
        engine = ContinuousEngine(BeamSearch(self.rows, BOS, EOS), self.scheduler)
        manifest = artifact.manifest.model_copy(
            update={
                "limits": artifact.manifest.limits.model_copy(update={"max_target_tokens": 10**9}),
                "decoding": Decoding(beam_size=1, length_penalty=1.0, beam_threshold=1000.0, stop="empty"),
            }
        )
        self.loop = Loop({GATED: engine}, self.metrics.count, probe_interval_s=3600)
        self.worker = LoopThread(self.loop)
        pool: Pool[Any] = Pool(GATED, [self.worker], TaskMetrics(self.metrics, "translation"))
        translator = Translator(manifest, "cpu", tokenizer, pool, pool, pool, 1000)
        self.models = Catalog([translator], [], workers=[self.worker], metrics=self.metrics)

    def hold(self) -> None:
        """Stop at the next step."""
        while self.rows.stepping.acquire(blocking=False):
            pass
        self.rows.gate.clear()


@pytest.fixture
def bench(translator_artifact: Artifact) -> Bench:
    return Bench(translator_artifact)


async def test_a_failed_batch_is_a_named_error_for_every_member_and_the_next_request_succeeds(
    serve: Serve, bench: Bench
) -> None:
    async with serve(bench.models, bench.metrics) as client:
        bench.hold()
        first = asyncio.ensure_future(client.post("/translate", json={"text": ENDLESS}))
        await bench.rows.await_step()
        endless = [Sequence(bench.rows._endless, Search(10**9))]
        second = bench.worker.request(GATED, endless, bench.loop.clock() + PATIENCE_S)
        bench.rows.gate.set()
        await until(lambda: len(bench.scheduler.running) == 2)
        bench.rows.error = MemoryError("the secret cause")
        detail = problem(await first, InferenceFailed)["detail"]
        assert "gated/greedy failed (MemoryError)" in detail
        assert "secret" not in detail
        with pytest.raises(InferenceFailed):
            second.result(PATIENCE_S)
        not_ready = problem(await client.get("/health/ready"), NotReady)
        assert "tiny-en-fr: the last forward pass failed (MemoryError)" in not_ready["detail"]
        bench.rows.error = None
        await until_warm(bench.models, "failed")
        assert (await client.post("/translate", json={"text": SHORT})).status_code == 200
        assert (await client.get("/health/ready")).status_code == 200


async def test_a_client_that_left_frees_its_rows_within_one_step(serve: Serve, bench: Bench) -> None:
    async with serve(bench.models, bench.metrics) as client:
        bench.hold()
        app = client._transport.app  # type: ignore[attr-defined]
        messages: list[Message] = []

        async def receive() -> Message:
            if not messages:
                messages.append({"type": "http.request", "body": json.dumps({"text": [ENDLESS, ENDLESS]}).encode()})
                return messages[0]
            await bench.rows.await_step()  # the client leaves in the middle of its first step
            return {"type": "http.disconnect"}

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers, "query_string": b""}
        await app(scope, receive, messages.append)
        bench.rows.gate.set()
        assert (await client.post("/translate", json={"text": SHORT})).status_code == 200
        metrics = (await client.get("/metrics")).text.splitlines()
    assert len(messages) == 1, "nothing is sent to nobody"
    assert bench.rows.rows_of_steps == [1, 2, 1]  # the warm-up, the step that was running, the next request alone
    assert 'attend_cancelled_total{reason="client_gone",task="translation"} 1.0' in metrics
    assert 'attend_requests_total{dialect="native",route="/translate",status="499"} 1.0' in metrics
    assert 'attend_running{task="translation"} 0.0' in metrics


async def test_a_passed_deadline_frees_its_rows_while_others_go_on(serve: Serve, bench: Bench) -> None:
    async with serve(bench.models, bench.metrics) as client:
        problem(await client.post("/translate", json={"text": ENDLESS, "timeout_s": 0.05}), DeadlinePassed)
        assert (await client.post("/translate", json={"text": SHORT})).status_code == 200
        assert not bench.scheduler.running


async def test_a_full_queue_is_busy_at_once_and_says_when_to_come_again(serve: Serve, bench: Bench) -> None:
    async with serve(bench.models, bench.metrics) as client:
        bench.hold()
        running = asyncio.ensure_future(client.post("/translate", json={"text": [SHORT, SHORT]}))
        await bench.rows.await_step()
        waiting = bench.worker.request(GATED, [Sequence([5, EOS], Search(9))], bench.loop.clock() + PATIENCE_S)
        load = bench.worker.load
        refusing = asyncio.ensure_future(client.post("/translate", json={"text": SHORT}))
        await until(lambda: bench.worker.load != load)
        bench.rows.gate.set()
        refused = await refusing
        assert re.search("1 sequences .* 1$", problem(refused, QueueFull)["detail"])
        assert refused.headers["Retry-After"] == "1"
        assert (await running).status_code == 200
        assert waiting.result(PATIENCE_S).outputs[0].best()[0].finish_reason == "eos"


async def test_who_would_be_late_is_refused_before_a_long_text_is_read_and_told_when_to_come_again(
    serve: Serve, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(bench.models, bench.metrics) as client:
        endless = [Sequence(bench.rows._endless, Search(10**9)) for _ in range(2)]
        running = bench.worker.request(GATED, endless, math.inf)
        await until(lambda: len(bench.scheduler.running) == 2)
        waiting = bench.worker.request(GATED, [Sequence([5, EOS], Search(9))], math.inf)
        await until(lambda: len(bench.scheduler.waiting) == 1)
        n_tokens = 2 * len(bench.rows._endless) + 2
        bench.loop._served[GATED].rate.work_per_s = n_tokens / 20
        read: list[list[str]] = []
        monkeypatch.setattr(Tokenizer, "encode", lambda _, texts: read.append(texts))
        refused = await client.post("/translate", json={"text": SHORT * 200, "timeout_s": 19})
        assert "about 20.0 s" in problem(refused, QueueFull)["detail"]
        assert refused.headers["Retry-After"] == "20"
        assert refused.headers["Server-Timing"].startswith("queue;dur=0.00")
        assert read == []
        for future in (running, waiting):
            future.cancel()
        await until(lambda: not bench.scheduler.running)
        metrics = (await client.get("/metrics")).text.splitlines()
    assert 'attend_rejected_total{reason="queue_full",task="translation"} 1.0' in metrics


async def test_the_engine_knows_a_client_by_its_address(serve: Serve, bench: Bench) -> None:
    async with serve(bench.models, bench.metrics) as client:
        assert (await client.post("/translate", json={"text": SHORT})).status_code == 200
    assert [*bench.scheduler._due] == ["127.0.0.1"]


async def test_a_worker_that_died_is_told_by_readiness_and_liveness_stays(serve: Serve, bench: Bench) -> None:
    class Death(BaseException):
        """Not an Exception: nothing in the loop may catch it."""

    async with serve(bench.models, bench.metrics) as client:
        bench.rows.error = Death()
        assert "has ended" in problem(await client.post("/translate", json={"text": SHORT}), WorkerEnded)["detail"]
        assert "tiny-en-fr: starting" in problem(await client.get("/health/ready"), NotReady)["detail"]
        problem(await client.post("/translate", json={"text": SHORT}), Starting)
        assert (await client.get("/health/live")).status_code == 200


@asynccontextmanager
async def listening(bench: Bench, settings: Settings) -> AsyncIterator[tuple[Server, int]]:
    """A real server on a port of its own, which stops in the end."""
    options = {"timeout_graceful_shutdown": PATIENCE_S, "timeout_keep_alive": 3600}
    server = server_of(bench.models, bench.metrics, settings.model_copy(update={"drain_timeout_s": 0}), **options)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    await until_warm(bench.models)
    (port,) = {s.getsockname()[1] for listener in server.servers for s in listener.sockets}
    yield server, port
    server.should_exit = True
    await serving


@pytest.mark.parametrize(
    ("settings", "status"), [({"api_keys": "k"}, 401), ({"max_body_bytes": 9}, 413), ({"client_timeout_s": 0.01}, 408)]
)
async def test_a_connection_is_closed_where_a_body_was_not_read_to_its_end(
    bench: Bench, settings: dict[str, Any], status: int
) -> None:
    """A server would read on, for ever and without limits."""
    async with listening(bench, Settings(**settings)) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /translate HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n"
        )
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


async def test_a_connection_stays_open_where_the_body_was_read_or_there_is_none(bench: Bench) -> None:
    async with listening(bench, Settings()) as (_, port), httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}"
        answers = [await client.post(f"{url}/translate", json={"text": SHORT}), await client.get(f"{url}/models")]
        answers.append(await client.post(f"{url}/translate", json={"txet": SHORT}))
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert not any("Connection" in answer.headers for answer in answers)


async def test_who_is_not_answered_when_the_server_has_drained_is_told_so(bench: Bench) -> None:
    async with listening(bench, Settings()) as (server, port), httpx.AsyncClient() as client:
        bench.hold()
        waiting = asyncio.create_task(client.post(f"http://127.0.0.1:{port}/translate", json={"text": ENDLESS}))
        await bench.rows.await_step()
        server.should_exit = True
        assert "gated/greedy" in problem(await waiting, Draining)["detail"]
        bench.rows.gate.set()
