"""An HTTP client that sends at random moments, whatever the answers do: in an open loop, as many independent users do.

It takes about 50 us of a core for each request, from the cores that it shares with the server.
"""

import asyncio
import random
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

TICK_S = 0.002
"""Pause between two looks at whether the next request is due."""


class Outcome(NamedTuple):
    """What became of a request.

    Attributes:
        due_at: when it was to be sent; a late client would hide that users wait.
        seconds: from then to the whole answer.
        status: 0 if the connection broke.
        retry_after_s: the header of a refusal; 0 if there is none.
    """

    due_at: float
    seconds: float
    status: int
    retry_after_s: int = 0


@dataclass(frozen=True)
class Address:
    """A server, and the own address from which it is asked: servers tell clients apart by it."""

    port: int
    own: str = "127.0.0.1"


def request_of(path: str, body: bytes) -> bytes:
    """Return the bytes of a POST of JSON."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class Client:
    """Keeps as many connections as it has requests at the same time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[_Connection] = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def ask(self, request: bytes, due_at: float | None = None) -> Outcome:
        """Send a request and wait for its answer."""
        due_at = time.perf_counter() if due_at is None else due_at
        connection = self._idle.pop() if self._idle else None
        try:
            if connection is None:
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, "127.0.0.1", self._address.port, local_addr=(self._address.own, 0)
                )
            status, retry_after_s = await connection.ask(request)
        except OSError:
            return Outcome(due_at, time.perf_counter() - due_at, 0)
        if connection.is_open:
            self._idle.append(connection)
        return Outcome(due_at, time.perf_counter() - due_at, status, retry_after_s)

    def close(self) -> None:
        """Close all connections without a request."""
        while self._idle:
            self._idle.pop().close()

    async def offer(
        self, requests: Iterable[bytes], rate: float, seconds: float, comes_back: Callable[[Outcome], bool]
    ) -> tuple[list[Outcome], list[Outcome]]:
        """Send requests at random moments (a Poisson process), and wait for all answers.

        Args:
            comes_back: whether the sender of a refused request sends it again after Retry-After.

        Returns:
            The outcomes of all requests, and of those that were sent again.
        """
        draw, again = random.Random(1), list[Outcome]()
        one_of = list(requests)

        async def send(due_at: float) -> Outcome:
            request = draw.choice(one_of)
            outcome = await self.ask(request, due_at)
            if outcome.retry_after_s and comes_back(outcome):
                await asyncio.sleep(outcome.retry_after_s)
                again.append(await self.ask(request))
            return outcome

        tasks = []
        due_at = time.perf_counter()
        ends_at = due_at + seconds
        while (due_at := due_at + draw.expovariate(rate)) < ends_at:
            while time.perf_counter() < due_at:
                await asyncio.sleep(TICK_S)
            tasks.append(asyncio.create_task(send(due_at)))
        return list(await asyncio.gather(*tasks)), again

    async def keep_asking(self, requests: list[bytes], n: int, seconds: float) -> list[Outcome]:
        """Have always n requests without an answer (a closed loop). After a refusal, wait as it says."""
        ends_at = time.perf_counter() + seconds

        async def one_after_the_other(number: int) -> list[Outcome]:
            draw, outcomes = random.Random(number), []
            while time.perf_counter() < ends_at:
                outcomes.append(await self.ask(draw.choice(requests)))
                await asyncio.sleep(outcomes[-1].retry_after_s)
            return outcomes

        of_clients = await asyncio.gather(*[one_after_the_other(number) for number in range(n)])
        return [outcome for outcomes in of_clients for outcome in outcomes]


class _Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self.is_open = True
        self._received = b""
        self._answer: asyncio.Future[tuple[int, int]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]

    async def ask(self, request: bytes) -> tuple[int, int]:
        """Return status and Retry-After. Raises OSError: the connection was closed."""
        if not self.is_open:
            raise ConnectionResetError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields.get(b"content-length", b"0")):
            return
        self._received = b""
        if fields.get(b"connection") == b"close":
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((int(head[9:12]), int(fields.get(b"retry-after", b"0"))))

    def close(self) -> None:
        self.is_open = False
        self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError())
