"""A client: it sends requests in different manners, over a connection that it keeps or not, and has answers judged."""

import asyncio
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.soak.http import Answer, Connection, Lost, Surplus
from tests.soak.ledger import Ledger
from tests.soak.oracle import Oracle
from tests.soak.requests import Request
from tests.soak.service import BODY_TIMEOUT_S

PATIENCE_S = 90.0
"""How long a client waits for an answer before it says that there is none."""
PIECES, MAX_PIECE_PAUSE_S = 8, 0.1
MAX_STAY_S = 0.05
"""How long a client stays at most that leaves before its answer."""
BODY_TIMEOUT = 408


class Manner(StrEnum):
    WHOLE = "whole"
    SLOW = "in slow pieces"
    LEAVES = "left before the answer"
    LEAVES_STREAM = "left within the answer"
    CUT = "cut off"


Judge = Callable[[Answer], str | None]
"""Returns what is wrong with an answer; None if nothing is."""


@dataclass
class Shared:
    """What all clients of a storm share."""

    host: str
    port: int
    ledger: Ledger
    oracle: Oracle
    random: Random
    numbers: "itertools.count[int]"
    cut_at: "itertools.count[int]"
    """Where the next connection is cut: at each byte of a request in turn."""


class Client:
    """One client with one connection."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._connection = Connection(shared.host, shared.port)

    async def renew(self) -> None:
        """Close the connection; the next request begins another one."""
        try:
            await self._connection.close()
        except Surplus as error:
            self.shared.ledger.complain(f"bytes that nobody asked for: {error}")

    async def make_noise(self, noise: bytes) -> None:
        """Send what is no HTTP, and leave."""
        connection = Connection(self.shared.host, self.shared.port)
        with suppress(Lost, Surplus, TimeoutError):
            await connection.begin()
            await connection.send(noise)
            async with asyncio.timeout(MAX_STAY_S):
                await connection.answer()
        connection.drop()
        self.shared.ledger.outcomes["noise", "sent"] += 1

    async def ask(self, request: Request, judge: Judge | None = None) -> Answer | None:
        """Send a request and wait for its answer.

        Args:
            judge: judges the answer, in place of what was answered in calm.

        Returns:
            The answer, right or wrong; None if a fault cost it, so that the client may ask again.
        """
        began = time.monotonic()
        answer = await self._exchange(request, request.message.data, began)
        if answer is None:
            return None
        return None if self.note_answer(request, answer, began, judge) else answer

    async def send(self, request: Request, manner: Manner) -> None:
        """Send a request in a manner, and judge what comes of it."""
        if manner is Manner.WHOLE:
            await self.ask(request)
        elif manner is Manner.SLOW:
            await self._send_slowly(request)
        elif manner is Manner.CUT:
            await self._cut(request)
        else:
            await self._leave(request, manner)

    async def _exchange(
        self, request: Request, data_of: Callable[[str], bytes], began: float, pieces: int = 1
    ) -> Answer | None:
        ledger = self.shared.ledger
        request_id = f"soak-{next(self.shared.numbers)}"
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._connection.begin()
                await self._send_pieces(data_of(request_id), pieces)
                answer = await self._connection.answer()
        except (Lost, TimeoutError) as error:
            self._connection.reset()
            self.note_loss(request, began, error)
            return None
        except Surplus as error:
            self._connection.reset()
            ledger.complain(f"{request.kind} {request.message.path}: more than one answer: {error}")
            return None
        if request.route:
            ledger.answered[request.dialect, request.route, answer.status] += 1
            if answer.headers.get("x-request-id") != request_id:
                ledger.complain(f"{request.kind}: {request_id} got the answer to {answer.headers.get('x-request-id')}")
        return answer

    async def _send_pieces(self, data: bytes, n_pieces: int) -> None:
        size = -(-len(data) // n_pieces)
        for start in range(0, len(data), size):
            if start:
                await asyncio.sleep(self.shared.random.random() * MAX_PIECE_PAUSE_S)
            await self._connection.send(data[start : start + size])

    async def _send_slowly(self, request: Request) -> None:
        began = time.monotonic()
        answer = await self._exchange(request, request.message.data, began, PIECES)
        if answer is None:
            return
        is_late = answer.status == BODY_TIMEOUT and time.monotonic() - began >= BODY_TIMEOUT_S
        self.note_answer(request, answer, began, (lambda _: None) if is_late else None)

    def note_loss(self, request: Request, began: float, error: Exception) -> None:
        """Note that no whole answer came; it is wrong unless a fault may have cost it."""
        ledger, ended = self.shared.ledger, time.monotonic()
        ledger.unanswered[request.dialect, request.route] += 1
        is_excused = self.shared.oracle.excuses_loss(began, ended, is_timeout=isinstance(error, TimeoutError))
        ledger.outcomes[request.kind, "lost in a fault" if is_excused else "wrong"] += 1
        if not is_excused:
            waited_s = ended - began
            ledger.complain(f"{request.kind} {request.message.path}: no answer, {error!r} after {waited_s:.1f} s")

    def note_answer(self, request: Request, answer: Answer, began: float, judge: Judge | None) -> bool:
        """Judge an answer, and note it. Return whether it is the error of a fault."""
        ledger, oracle = self.shared.ledger, self.shared.oracle
        ended = time.monotonic()
        wrong = oracle.complaint(request, answer, began, ended) if judge is None else judge(answer)
        is_excused = wrong is not None and oracle.excuses(request, answer, began, ended)
        if is_excused:
            outcome = f"{answer.status} in a fault"
        elif wrong is not None:
            outcome = "wrong"
            ledger.complain(wrong)
        else:
            outcome = str(answer.status)
        ledger.outcomes[request.kind, outcome] += 1
        return is_excused

    async def _leave(self, request: Request, manner: Manner) -> None:
        """Leave before an answer, or after the first part of it."""
        shared = self.shared
        connection = Connection(shared.host, shared.port)
        has_begun = asyncio.Event()
        with suppress(Lost, Surplus):
            await connection.begin()
            await connection.send(request.message.data(f"soak-{next(shared.numbers)}"))
            reading = asyncio.create_task(connection.answer(has_begun))
            if manner is Manner.LEAVES:
                await asyncio.sleep(shared.random.random() * MAX_STAY_S)
            else:
                await asyncio.wait([reading, waiting := asyncio.create_task(has_begun.wait())], timeout=PATIENCE_S,
                                   return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
                waiting.cancel()
            reading.cancel()
            with suppress(asyncio.CancelledError, Lost, Surplus):
                await reading
        self._end(connection)
        self._note_unanswered(request, manner)

    async def _cut(self, request: Request) -> None:
        """Send a request up to some byte, and end the connection in one of three ways."""
        shared = self.shared
        data = request.message.data(f"soak-{next(shared.numbers)}")
        connection = Connection(shared.host, shared.port)
        with suppress(Lost, Surplus):
            await connection.begin()
            await connection.send(data[: next(shared.cut_at) % len(data)])
            if shared.random.random() < 0.3:
                connection.half_close()
                await asyncio.sleep(shared.random.random() * MAX_STAY_S)
        self._end(connection)
        self._note_unanswered(request, Manner.CUT)

    def _end(self, connection: Connection) -> None:
        connection.reset() if self.shared.random.random() < 0.5 else connection.drop()

    def _note_unanswered(self, request: Request, manner: Manner) -> None:
        ledger = self.shared.ledger
        if request.route:
            ledger.unanswered[request.dialect, request.route] += 1
        ledger.outcomes[request.kind, manner.value] += 1
