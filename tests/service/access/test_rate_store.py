"""Services that count the requests of clients together in a Redis, and go on without it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import ANY

import pytest
from limits.aio.storage import MemoryStorage

from service.access import rate_store
from service.access.limiters import RateLimiter
from service.access.rate_store import N_CONNECTIONS, StoredRateLimiter, storage_of
from service.base.errors import StartRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from tests.redis_server import PROGRAM, Redis, running_redis
from tests.service.conftest import Client, Serve
from tests.waiting import until

pytestmark = pytest.mark.process
needs_redis = pytest.mark.skipif(PROGRAM is None, reason="neither redis-server nor valkey-server is installed")


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    monkeypatch.setattr(rate_store, "STORE_TIMEOUT_S", 5.0)  # this machine may be busy
    with running_redis() as running:
        yield running


async def statuses(n: int, *clients: Client) -> Counter[int]:
    """The statuses of requests, in turns."""
    return Counter([(await client.get("/models")).status_code for _ in range(n // len(clients)) for client in clients])


async def n_without_store(client: Client) -> int:
    [line] = [
        line for line in (await client.get("/metrics")).text.splitlines() if line.startswith("attend_rates_without")
    ]
    return int(float(line.split()[1]))


@needs_redis
@pytest.mark.anyio
async def test_services_share_a_rate_and_each_counts_alone_while_the_store_is_down(
    serve: Serve, redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rate_store, "RETRY_S", 0.1)
    caplog.set_level(logging.INFO, rate_store.__name__)
    settings = {"rate_limit": "60/hour", "rate_store": redis.address}
    async with serve(**settings) as one, serve(**settings) as other:
        assert await statuses(80, one, other) == {200: 60, 429: 20}
        refused = await one.get("/models")
        assert 0 < int(refused.headers["Retry-After"]) <= 3600
        assert await n_without_store(one) == 0
        redis.stop()
        assert await statuses(140, one, other) == {200: 120, 429: 20}, "each has a rate of its own"
        assert await n_without_store(one) > 0
        redis.start()

        async def is_back() -> bool:
            before = await n_without_store(one)
            return await statuses(1, one) == {200: 1} and await n_without_store(one) == before

        await until(is_back)
    messages = [record.message.partition(",")[0] for record in caplog.records if record.name == rate_store.__name__]
    assert Counter(messages) == {"the rate store cannot be used": 2, "the rate store can be used again": 1}


@needs_redis
@pytest.mark.anyio
async def test_a_store_that_hangs_delays_one_request_alone(
    serve: Serve, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_asked, ask = 0, StoredRateLimiter._ask

    async def asking(self: StoredRateLimiter, client: str, rate: str) -> int:
        nonlocal n_asked
        n_asked += 1
        return await ask(self, client, rate)

    monkeypatch.setattr(StoredRateLimiter, "_ask", asking)
    monkeypatch.setattr(rate_store, "RETRY_S", 600.0)
    async with serve(rate_limit="10/hour", rate_store=redis.address) as client:
        assert await statuses(2, client) == {200: 2}
        with redis.paused():
            monkeypatch.setattr(rate_store, "STORE_TIMEOUT_S", 0.5)
            assert await statuses(20, client) == {200: 10, 429: 10}
            assert (n_asked, await n_without_store(client)) == (3, 20)


@pytest.mark.anyio
async def test_a_store_that_is_slower_than_requests_come_lets_none_wait_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = asyncio.Event()

    async def asking(*_: object) -> int:
        await event.wait()
        return 0

    monkeypatch.setattr(StoredRateLimiter, "_stored_wait_s", asking)
    metrics = Metrics()
    limiter = StoredRateLimiter(MemoryStorage(), RateLimiter(), metrics)
    stuck = [asyncio.create_task(limiter.wait_s("one", "9/hour")) for _ in range(N_CONNECTIONS)]
    await asyncio.sleep(0)
    assert await asyncio.gather(*(limiter.wait_s("other", "9/hour") for _ in range(20))) == [0] * 9 + [ANY] * 11
    assert metrics.registry.get_sample_value("attend_rates_without_store_total") == 20
    event.set()
    assert await asyncio.gather(*stuck) == [0] * N_CONNECTIONS


@pytest.mark.anyio
async def test_a_store_is_not_to_blame_for_what_keeps_this_process_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_store, "STORE_TIMEOUT_S", 0.001)

    async def answered_late(pause_s: float) -> int:
        answered = asyncio.Event()
        asyncio.get_running_loop().call_later(pause_s, answered.set)
        await answered.wait()
        return 7

    for late_s, pause_s in ((1.0, 0.002), (0.0, 600.0), (1.0, 600.0)):
        monkeypatch.setattr(rate_store, "time", SimpleNamespace(monotonic=count(step=late_s).__next__))
        answer = rate_store._in_time(answered_late(pause_s))
        if pause_s < 1:
            assert await answer == 7
        else:
            with pytest.raises(TimeoutError):
                await answer


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("s3cret", "The address of the rate store must be redis://USER:PASSWORD@HOST:PORT"),
        ("memcached://s3cret", "The address of the rate store must be redis://USER:PASSWORD@HOST:PORT"),
        ("redis://u:s3cret@host:port", "The address of the rate store must be redis://USER:PASSWORD@HOST:PORT"),
    ],
)
def test_a_wrong_address_is_refused_and_not_shown(address: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "attend_rate_store").write_text(f"{address}\n")
    for settings in ({"rate_store": address}, {"secrets": tmp_path}):
        with pytest.raises(StartRefused) as refused:
            storage_of(Settings(**settings))  # type: ignore[arg-type]
        assert str(refused.value) == sentence


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey", "valkeys"])
def test_valkey_is_a_redis(scheme: str) -> None:
    assert storage_of(Settings(rate_store=f"{scheme}://user:s3cret@localhost:6379/1")) is not None  # type: ignore[arg-type]
