"""Many clients at once, which ask until a time has come."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from random import Random

from tests.soak import documents, glossaries, live
from tests.soak.calls import CalledServer
from tests.soak.client import Client, Manner, Shared
from tests.soak.dialects import Dialects
from tests.soak.http import Answer
from tests.soak.ledger import Ledger
from tests.soak.models import VERSION_SEEDS, Served, save_version
from tests.soak.oracle import Oracle, comparable
from tests.soak.requests import Native, Request, choose
from tests.soak.service import Soaked
from tests.soak.texts import Texts
from tests.soak.wrong_requests import BAD_HEADS, Wrong

N_CLIENTS = 100
N_DOCUMENTS = 16
CALM_CLIENTS = 4
MANNERS = {Manner.WHOLE: 70, Manner.SLOW: 5, Manner.LEAVES: 8, Manner.LEAVES_STREAM: 4, Manner.CUT: 9}
SHARE_OF_WRONG = 0.12
SHARE_OF_DOCUMENTS, SHARE_OF_GLOSSARIES, SHARE_OF_LIVE, SHARE_OF_NOISE = 0.01, 0.01, 0.005, 0.005
SHARE_OF_NEW_CONNECTIONS = 0.1


class Storm:
    """Clients, and the requests among which they choose.

    Args:
        n: how many different requests there are.
    """

    def __init__(self, soaked: Soaked, served: Served, random: Random, n: int) -> None:
        texts = Texts(random, served.words)
        self._soaked, self._served, self._random = soaked, served, random
        n_wrong = int(n * SHARE_OF_WRONG)
        good = [*Native(served, texts, random).makers(), *Dialects(served, texts, random).makers()]
        self.requests = choose(good, random, n - n_wrong) + choose([*Wrong(served, texts).makers()], random, n_wrong)
        self.called = CalledServer()
        self.documents = documents.Journeys(documents.make_documents(texts, N_DOCUMENTS), random, self.called)
        self._glossaries = glossaries.Journeys(texts, random)
        self._live = live.Sessions(texts, random)
        self._others = {
            self.documents.any: SHARE_OF_DOCUMENTS,
            self._glossaries.any: SHARE_OF_GLOSSARIES,
            self._live.any: SHARE_OF_LIVE,
            self._make_noise: SHARE_OF_NOISE,
        }
        self.oracle = Oracle()
        self.ledger = Ledger()
        self._shared = self._sharing(self.ledger)

    async def calm(self) -> None:
        """Note what everything is answered while nothing is wrong, and little is asked at once."""
        if self._served.versioned is not None:  # the service began with its second version
            of_version = [request for request in self.requests if request.of_version]
            later = await self._answers(of_version)
            await asyncio.to_thread(save_version, self._soaked.folders.artifacts, VERSION_SEEDS[0])
            assert await self._soaked.reload() == 200
            await self._soaked.seconds_until_ready(time.monotonic())
            former = await self._answers(of_version)
            for request, *answers in zip(of_version, former, later, strict=True):
                self.oracle.of_versions[request] = [comparable(answer) for answer in answers]
        asked = [request.patient or request for request in self.requests if not request.of_version]
        answers = await self._answers(asked)
        of_others = (request for request in self.requests if not request.of_version)
        for request, answer in zip(of_others, answers, strict=True):
            self.oracle.calm[request] = comparable(answer)
        client = Client(self._sharing(ledger := Ledger()))
        for name in self.documents.names:
            await self.documents.native(client, name)
        for text in self._live.texts:
            await self._live.typed(client, text)
        await client.renew()
        assert not ledger.wrong, ledger.wrong

    async def rage(self, until: Callable[[], bool], n_clients: int = N_CLIENTS, ledger: Ledger | None = None) -> None:
        """Let clients ask until it is time to stop."""
        shared = self._shared if ledger is None else self._sharing(ledger)
        async with asyncio.TaskGroup() as group:
            for _ in range(n_clients):
                group.create_task(self._work(shared, until))

    async def _work(self, shared: Shared, until: Callable[[], bool]) -> None:
        random, client = self._random, Client(shared)
        while not until():
            (journey,) = random.choices([None, *self._others], [1 - sum(self._others.values()), *self._others.values()])
            if journey is not None:
                await journey(client)
            else:
                request = random.choice(self.requests)
                await client.send(request, self._manner_of(request))
            if random.random() < SHARE_OF_NEW_CONNECTIONS:
                await client.renew()
        await client.renew()

    async def _make_noise(self, client: Client) -> None:
        await client.make_noise(self._random.choice(BAD_HEADS))

    def _manner_of(self, request: Request) -> Manner:
        (manner,) = self._random.choices([*MANNERS], [*MANNERS.values()])
        if manner is Manner.LEAVES_STREAM and not request.streams:
            return Manner.WHOLE
        return manner

    async def _answers(self, requests: Sequence[Request]) -> list[Answer]:
        """Ask for each once, a few at a time."""
        answers = [Answer()] * len(requests)
        rest = iter(enumerate(requests))
        shared = self._sharing(Ledger())

        async def work() -> None:
            client = Client(shared)
            for i, request in rest:
                answer = await client.ask(request, lambda _: None)
                assert answer is not None, shared.ledger.wrong
                answers[i] = answer
            await client.renew()

        await asyncio.gather(*(work() for _ in range(CALM_CLIENTS)))
        return answers

    def _sharing(self, ledger: Ledger) -> Shared:
        soaked = self._soaked
        return Shared(soaked.host, soaked.port, ledger, self.oracle, self._random, itertools.count(), itertools.count())
