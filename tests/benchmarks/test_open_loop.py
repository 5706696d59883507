"""The client that sends whatever the answers do, against a server of a few lines."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.open_loop import Address, Client, request_of

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@asynccontextmanager
async def server(*answers: bytes) -> AsyncIterator[Client]:
    """Yield a client of a server that gives these answers in turn, in two pieces each."""
    left, serving = [*answers], set[asyncio.Future[None]]()

    async def serve(incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        serving.add(ended := asyncio.get_running_loop().create_future())
        while await incoming.read(10_000):
            answer = left.pop(0) if len(left) > 1 else left[0]
            for piece in (answer[:20], answer[20:]):
                outgoing.write(piece)
                await outgoing.drain()
            if answer in (LAST, b""):
                break
        outgoing.close()
        await outgoing.wait_closed()
        ended.set_result(None)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        client = Client(Address(listening.sockets[0].getsockname()[1]))
        yield client
        client.close()
        await asyncio.gather(*serving)


async def test_an_outcome_has_status_and_retry_after_and_a_broken_connection_is_none() -> None:
    request = request_of("/translate", b'{"text": "a"}')
    async with server(OK, REFUSAL, LAST, OK, b"") as client:
        outcomes = [await client.ask(request) for _ in range(5)]
    assert [(one.status, one.retry_after_s) for one in outcomes] == [(200, 0), (503, 7), (200, 0), (200, 0), (0, 0)]


async def test_requests_are_sent_at_the_rate_whatever_the_answers_are() -> None:
    async with server(OK, REFUSAL, OK) as client:
        outcomes, again = await client.offer([request_of("/", b"{}")], 1000, 0.1, lambda _: False)
    assert 60 < len(outcomes) < 140
    assert again == []
    assert Counter(one.status for one in outcomes)[503] == 1
