"""One of several servers, which gets its models from the supervisor that loads them."""

import asyncio
import itertools
import logging
import os
import signal
import socket
from functools import partial
from pathlib import Path
from typing import Any, Literal

from service.access.keys import Keys
from service.base.configuration import read_settings
from service.base.errors import ReloadRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.assembly import catalog_of
from service.front.serving import Serving
from service.front.suppliers import in_daemon_thread
from service.passes.wire import packed, read_messages
from service.pool.loader import LoadedModels
from service.pool.sentence_cache import SentenceCache
from service.server.listening import share
from service.server.server import run

logger = logging.getLogger(__name__)

ENDED = "The models stay as they are: this server ends"


def main(supervisor_file: int, port: int, joins: int, place: int, rates: str) -> None:
    """Run one of several servers.

    Args:
        supervisor_file: the file descriptor of a socket to the supervisor.
        joins: whether other servers serve already; then this one must not listen before it has models.
        place: the number of this server, which is that of the one that it replaces.
        rates: the path of the socket where requests are counted; empty if they are not counted.
    """
    settings = read_settings()
    settings.log.configure()
    keys, metrics, serving = Keys(settings), Metrics(place), Serving(settings.probe_interval_s)
    supervisor = socket.socket(fileno=supervisor_file)
    supplier = SupervisedSupplier(settings, metrics, serving, keys, supervisor, joins=bool(joins))
    run(settings, share(settings.host, port), keys, metrics, serving, supplier, Path(rates) if rates else None)


class SupervisedSupplier:
    """Serves with the models that the supervisor loads, one set after the other.

    A supervisor sends `("take", generation, LoadedModels)`, `("all are ready",)`, `("reread keys",)`, `("worker ended",
    how)` and `("reloaded", number, refusal or None)`. A server sends `("listening", 0)` and `("ready", 0)`; `("reload",
    number)`; `("serves", generation)` when new requests get these models; and `("taken", generation)` when it does not
    use the former ones any more.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, serving: Serving, keys: Keys, supervisor: socket.socket, joins: bool
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._cache = SentenceCache(settings.cache, metrics.cache)
        self._serving = serving
        self._keys = keys
        self._supervisor = supervisor
        self._outgoing: asyncio.StreamWriter | None = None
        self._has_ended = False
        self._reported: list[str] = []
        self._may_listen = asyncio.Event()
        if not joins:
            self._may_listen.set()
        serving.awaits_others = True
        self._numbers = itertools.count()
        self._reloads: dict[int, asyncio.Future[str | None]] = {}

    async def may_listen(self) -> None:
        """Return immediately if all servers start. If this server joins others, wait for models."""
        await self._may_listen.wait()

    def report(self, state: Literal["listening", "ready"]) -> None:
        """The supervisor logs it once for all servers."""
        self._reported.append(state)
        if self._outgoing is not None:
            self._tell(state, 0)

    async def run(self) -> None:
        """Take the supervisor's messages, and end when it has gone."""
        try:
            await self._listen()
        finally:
            self._may_listen.set()
            self._has_ended = True
            for refusal in self._reloads.values():  # nothing else would resolve them
                refusal.set_result(ENDED)
        os.kill(os.getpid(), signal.SIGTERM)

    async def reload(self) -> None:
        """The supervisor loads the models anew for all servers."""
        if self._outgoing is None:
            raise ReloadRefused("Models are being loaded already")
        if self._has_ended:
            raise ReloadRefused(ENDED)
        number = next(self._numbers)
        self._reloads[number] = asyncio.get_running_loop().create_future()
        self._tell("reload", number)
        refusal = await asyncio.shield(self._reloads[number])
        if refusal is not None:
            raise ReloadRefused(refusal)

    async def _listen(self) -> None:
        incoming, self._outgoing = await asyncio.open_connection(sock=self._supervisor)
        for state in self._reported:
            self._tell(state, 0)
        async for kind, *content in read_messages(incoming):
            if kind == "take":
                await self._take(*content)
            elif kind == "reread keys":
                self._keys.reread(logs=False)
            elif kind == "all are ready":
                self._serving.awaits_others = False
            elif kind == "worker ended":
                self._metrics.worker_ended(*content)
            else:
                number, refusal = content
                self._reloads.pop(number).set_result(refusal)

    async def _take(self, generation: int, loaded: LoadedModels) -> None:
        make = partial(catalog_of, loaded, self._settings, self._metrics, cache=self._cache)
        retiring = await self._serving.replace(await in_daemon_thread(make))
        self._tell("serves", generation)
        retiring.add_done_callback(lambda _: self._tell("taken", generation))
        self._may_listen.set()

    def _tell(self, *message: Any) -> None:
        assert self._outgoing is not None, "messages are sent after the connection is open"
        self._outgoing.write(packed(*message))
