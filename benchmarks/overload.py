"""What a service does with more than it can bear: `python -m benchmarks overload`.

First the best rate is searched: a closed loop with more and more requests at the same time. Then requests arrive at
random at multiples of it, whatever the answers do, with several deadlines. Client and service share the cores of the
machine, so each row tells how much processor time either took.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.models import SHIPPED
from benchmarks.open_loop import Address, Client, Outcome, request_of
from benchmarks.servers import Server, Variant
from benchmarks.texts import load_sentences
from service.base.memory import family

MANY = 256
N_AT_ONCE = {1: (1, 4, 16, 64, 128), MANY: (1, 2, 4, 8)}
"""Requests at the same time in the closed loop, by the number of texts of each."""
DEFAULT_TIMEOUT_S = 30.0
SHARE_COMING_BACK = 0.1
PROBE_S, PROBE_PAUSE_S = 4.0, 0.02
PROBE_FROM = "127.0.0.3"
"""The address of the client that asks after the load: another one than the load's."""
SINGLES_SHARE = 0.2
"""The rate of single texts beside a client with large requests, as a share of the best rate."""
N_LARGE, TEXTS_OF_A_LONG_ONE = 4, 3
"""How many requests that client always has, and how many sentences each of its texts has."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Row:
    """One load and what became of it.

    Attributes:
        goodput: answers within the deadline that came while the load lasted, per second.
        p50_ms, p99_ms: of the answers.
        refused, late: shares of all requests: 503, and 504 or an answer after the deadline.
        refused_p99_ms: how long refusals took.
        served_again: of those that came back after Retry-After, how many were served; None if nobody did.
        recovery_s: after the load ended, how long until a single text was answered as fast as in calm.
        client_cores, service_cores: processor time per second of the load.
    """

    texts: int
    timeout_s: float
    load: float
    offered: float
    goodput: float
    p50_ms: float
    p99_ms: float
    refused: float
    late: float
    refused_p99_ms: float
    served_again: float | None
    recovery_s: float
    client_cores: float
    service_cores: float

    def __str__(self) -> str:
        again = "-" if self.served_again is None else f"{self.served_again:.0%}"
        return (
            f"{self.texts} texts, {self.timeout_s:g} s, {self.load:g} x: {self.offered:.1f}/s, goodput "
            f"{self.goodput:.1f}/s, p50 {self.p50_ms:.0f} ms, p99 {self.p99_ms:.0f} ms; refused {self.refused:.0%} "
            f"within {self.refused_p99_ms:.0f} ms, late {self.late:.1%}, served again {again}; recovery "
            f"{self.recovery_s:.2f} s; cores: client {self.client_cores:.2f}, service {self.service_cores:.2f}"
        )


@dataclass(frozen=True)
class Beside:
    """Latency of single texts alone, or beside a client with large requests.

    Attributes:
        large_texts: texts per second of the large requests.
    """

    company: str
    rate: float
    p50_ms: float
    p99_ms: float
    failed: int
    large_texts: float

    def __str__(self) -> str:
        return (
            f"single texts {self.company}: {self.rate:.0f}/s, p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms, "
            f"{self.failed} failed; large requests: {self.large_texts:.0f} texts/s"
        )


@dataclass(frozen=True)
class OverloadBenchmark:
    """Measures one running service.

    Args:
        seconds: how long each load lasts.
    """

    server: Server
    seconds: float
    data: Path | None

    @property
    def _port(self) -> int:
        return int(self.server.address.rpartition(":")[2])

    def best(self, texts: int, timeouts: Sequence[float]) -> dict[float, float]:
        """Return the most answers within each deadline, per second, in a closed loop."""
        asyncio.run(self._warm_up())
        rates = dict.fromkeys(timeouts, 0.0)
        for n in N_AT_ONCE[texts]:
            client = Client(Address(self._port))
            seconds = min(self.seconds, 3.0 if texts == 1 else 8.0)
            began = time.perf_counter()
            outcomes = asyncio.run(client.keep_asking(self._requests(texts, None), n, seconds))
            seconds = time.perf_counter() - began
            for timeout_s in timeouts:
                in_time = [outcome for outcome in outcomes if outcome.status == 200 and outcome.seconds <= timeout_s]
                rates[timeout_s] = max(rates[timeout_s], len(in_time) / seconds)
        return rates

    def offer(self, texts: int, timeout_s: float, load: float, best: float) -> Row:
        """Offer a multiple of the best rate."""
        return asyncio.run(self._offer(texts, timeout_s, load, best))

    def beside(self, rate: float, large_from: str) -> Iterator[Beside]:
        """Yield the latency of single texts alone, and beside a client with large requests.

        Args:
            large_from: the address of that client.
        """
        for company in ("alone", "beside"):
            yield asyncio.run(self._beside(company, rate, large_from))

    async def _offer(self, texts: int, timeout_s: float, load: float, best: float) -> Row:
        calm = await self._probe(1.0)
        client = Client(Address(self._port))
        given = None if timeout_s == DEFAULT_TIMEOUT_S else timeout_s
        n_refused = 0

        def comes_back(_: Outcome) -> bool:
            nonlocal n_refused
            n_refused += 1
            return n_refused * SHARE_COMING_BACK % 1 < SHARE_COMING_BACK

        used = time.process_time(), _processor_s(self.server.process_id)
        offering = asyncio.create_task(
            client.offer(self._requests(texts, given), load * best, self.seconds, comes_back)
        )
        await asyncio.sleep(self.seconds)
        used = time.process_time() - used[0], _processor_s(self.server.process_id) - used[1]
        ended_at = time.perf_counter()
        probes = await self._probe(PROBE_S)
        outcomes, again = await offering
        answered = [outcome for outcome in outcomes if outcome.status == 200]
        in_time = [answer for answer in answered if answer.seconds <= timeout_s]
        refused = [outcome for outcome in outcomes if outcome.status == 503]
        slow = [probe for probe in probes if probe.status != 200 or probe.seconds > 2 * _quantile(calm, 0.99)]
        recovered_at = max((answer.due_at + answer.seconds for answer in slow), default=ended_at)
        return Row(
            texts,
            timeout_s,
            load,
            load * best,
            sum(answer.due_at + answer.seconds <= ended_at for answer in in_time) / self.seconds,
            1000 * _quantile(answered, 0.5),
            1000 * _quantile(answered, 0.99),
            len(refused) / len(outcomes),
            1 - (len(in_time) + len(refused)) / len(outcomes),
            1000 * _quantile(refused, 0.99),
            sum(answer.status == 200 for answer in again) / len(again) if again else None,
            max(0.0, recovered_at - ended_at),
            used[0] / self.seconds,
            used[1] / self.seconds,
        )

    async def _beside(self, company: str, rate: float, large_from: str) -> Beside:
        large = Client(Address(self._port, large_from))
        busy: list[asyncio.Task[list[Outcome]]] = []
        if company == "beside":
            requests = self._requests(MANY, None, TEXTS_OF_A_LONG_ONE)
            busy = [asyncio.create_task(large.keep_asking(requests, N_LARGE, self.seconds))]
        client = Client(Address(self._port))
        outcomes, _ = await client.offer(self._requests(1, None), rate, self.seconds, lambda _: False)
        answered = [outcome for outcome in outcomes if outcome.status == 200]
        found = [one for task in busy for one in await task]
        took_s = max((one.due_at + one.seconds for one in found), default=1.0) - min(
            (o.due_at for o in found), default=0.0
        )
        return Beside(
            company,
            len(outcomes) / self.seconds,
            1000 * _quantile(answered, 0.5),
            1000 * _quantile(answered, 0.99),
            len(outcomes) - len(answered),
            MANY * sum(one.status == 200 for one in found) / took_s,
        )

    async def _warm_up(self) -> None:
        await Client(Address(self._port)).keep_asking(self._requests(1, None), 64, 1.0)

    async def _probe(self, seconds: float) -> list[Outcome]:
        """Send a single text again and again, each without waiting for the one before."""
        client, requests, tasks = Client(Address(self._port, PROBE_FROM)), self._requests(1, None), []
        ends_at = time.perf_counter() + seconds
        while time.perf_counter() < ends_at:
            tasks.append(asyncio.create_task(client.ask(requests[0])))
            await asyncio.sleep(PROBE_PAUSE_S)
        return await asyncio.gather(*tasks)

    def _requests(self, texts: int, timeout_s: float | None, sentences_of_a_text: int = 1) -> list[bytes]:
        """Return requests with all sentences in turn."""
        sentences = [sentence.text for sentence in load_sentences(self.data, MANY)]
        n = sentences_of_a_text
        written = [" ".join((sentences * 2)[i : i + n]) for i in range(len(sentences))]
        bodies = [written] if texts == MANY else [[text] for text in written]
        options = {} if timeout_s is None else {"timeout_s": timeout_s}
        return [request_of("/translate", json.dumps({"text": body, **options}).encode()) for body in bodies]


def service(settings: dict[str, str] | None = None) -> Server:
    """Return a service with the shipped model, without a cache: the sentences repeat."""
    environment = {
        "ATTEND_MODELS": SHIPPED,
        "ATTEND_PROVIDER": "cpu",
        "ATTEND_CACHE": "0",
        "ATTEND_LOG_LEVEL": "warning",
    }
    return Server(
        Variant(
            server="attend",
            label="overload",
            command=lambda port: ["env", f"ATTEND_PORT={port}", sys.executable, "-m", "service"],
            environment=os.environ | environment | (settings or {}),
            health="/health/ready",
            body=lambda text: {"text": text},
            texts=lambda answer: [translation["text"] for translation in answer["translations"]],
        )
    )


def _quantile(outcomes: Sequence[Outcome], share: float) -> float:
    seconds = sorted(outcome.seconds for outcome in outcomes)
    if len(seconds) < 2:
        return seconds[0] if seconds else 0.0
    return statistics.quantiles(seconds, n=100, method="inclusive")[round(100 * share) - 1]


def _processor_s(process_id: int) -> float:
    """Return the processor time that a process and its descendants have taken."""
    total = 0
    for process in family(process_id):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS
