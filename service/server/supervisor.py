"""Several server processes on one port, which share the same workers.

    supervisor    starts the servers, replaces a server that dies or hangs, counts the rates of clients for all
      server      HTTP
      server
      loader      and its workers

A server that dies costs its own connections alone. Each server listens on its own socket, and the system distributes
connections (SO_REUSEPORT): on a shared socket, most of them would go to the process that wakes first.
"""

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from service.access.keys import Keys
from service.access.limiters import may_have_rates
from service.access.rates import Rates
from service.base.errors import ReloadRefused
from service.base.metrics import Metrics, forget_gauges
from service.base.settings import Settings
from service.front.assembly import catalog_of
from service.front.serving import proven
from service.front.suppliers import READY, LoadingSupplier, begin, in_daemon_thread
from service.passes.plan import HUNG_S, LOADING_S
from service.passes.wire import packed, read_messages
from service.pool.loader import LoadedModels, Loader
from service.pool.remote_loader import RATES_SOCKET, make_run_directory
from service.server.listening import announce_addresses
from service.server.send_buffer import send_queue_bytes

logger = logging.getLogger(__name__)

LOOK_S = 0.05
"""Pause between two checks of the servers."""
BEAT_S = 1.0
"""Pause between two messages to each server, by which the supervisor sees whether the server reads."""
END_S = 5.0
"""Time in which a server that has drained must end; then it is killed."""
SHORT_LIFE_S = 5.0
"""Least time between the start of a server and its replacement. A server that cannot start is not restarted without
pause."""


def supervise(settings: Settings, keys: Keys, sockets: list[socket.socket], loader: Loader, n_servers: int) -> None:
    """Serve until a signal comes. `sockets` hold the port and do not listen; `loader` is the process that is loading
    the models. Raises StartRefused: a model cannot be loaded."""
    directory = make_run_directory(settings.run_directory)
    try:
        asyncio.run(Supervisor(settings, keys, directory, sockets, loader, n_servers).run())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Supervisor:
    """Starts servers, and gives them the models.

    Args:
        keys: tells whether the file of keys may be read again.
        directory: a folder that no other service uses.
        sockets: sockets that hold the port; they do not listen.
        loader: the process that is loading the models.
    """

    def __init__(
        self,
        settings: Settings,
        keys: Keys,
        directory: Path,
        sockets: list[socket.socket],
        loader: Loader,
        n_servers: int,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._n_servers = n_servers
        self._sockets = sockets
        self._announced: set[str] = set()
        self._metrics = directory / "metrics"
        self._metrics.mkdir()
        self._rates: Path | None = None
        if may_have_rates(settings):
            self._rates = directory / RATES_SOCKET
            Rates(str(self._rates)).start()
        self._loader = loader
        self._loaded: LoadedModels | None = None
        self._generation = 0
        self._supplier = LoadingSupplier(self._load, self._take, loader)
        self._servers: list[_Server] = []
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Replace servers that die, until a signal comes; then let all servers answer their accepted requests. Raises
        StartRefused: a model cannot be loaded."""
        self._event_loop = loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        self._servers = [await self._begin(place) for place in range(self._n_servers)]
        loading = begin(self._supplier.run(), self._tasks)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        begin(self._end_what_hangs(loading), self._tasks)
        try:
            while not self._stopping.is_set():
                await self._look_after_servers()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), LOOK_S)
                if loading.done() and (failure := loading.exception()) is not None:
                    raise failure
        finally:
            for server in self._servers:
                server.process.terminate()
            drain_s = max(self._settings.drain_timeout_s, self._settings.drain_delay_s)
            ends_at = time.monotonic() + drain_s + END_S
            for server in self._servers:
                await asyncio.to_thread(server.end, ends_at)
            self._loader.end()

    def _stop(self, number: signal.Signals) -> None:
        logger.info("stopped by %s", number.name)
        self._stopping.set()

    async def _look_after_servers(self) -> None:
        for place, server in enumerate(self._servers):
            if server.process.poll() is not None and time.monotonic() >= server.begun_at + SHORT_LIFE_S:
                logger.critical("a server has died (%d)", server.process.returncode)
                forget_gauges(self._metrics, place)
                try:
                    self._servers[place] = await self._begin(place, joins=self._loaded is not None)
                except OSError as error:  # the system has no room for it
                    logger.critical("a server cannot be started now: %s", error)
                    server.begun_at = time.monotonic()  # tried again later, as if this one had just started

    async def _end_what_hangs(self, loading: "asyncio.Task[None]") -> None:
        """Kill servers that read nothing; they are replaced. Silence is counted in checks, not by the clock: a server
        is not to blame if the whole machine was paused. Until `loading` is done, the task that loads the first models,
        no server is told that all are ready."""
        while True:
            await asyncio.sleep(BEAT_S)
            for server in self._servers:
                if server.hangs():
                    logger.critical("a server hangs and is killed")
                    server.process.kill()
                elif loading.done():
                    server.tell("all are ready")

    async def _begin(self, place: int, joins: bool = False) -> "_Server":
        ours, theirs = socket.socketpair()
        # A terminal interrupts the whole group of processes; the supervisor says when to stop.
        ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        serve = "import sys; from service.server.supervised import main; main(*map(int, sys.argv[1:5]), sys.argv[5])"
        process = subprocess.Popen(  # noqa: S603  this Python, and words of our own
            [
                sys.executable,
                "-c",
                ignore + serve,
                *map(str, (theirs.fileno(), self._sockets[0].getsockname()[1], int(joins), place, self._rates or "")),
            ],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(self._metrics)},
        )
        theirs.close()
        server = _Server(process, *await asyncio.open_connection(sock=ours))
        begin(self._listen_to(server), self._tasks)
        if self._loaded is not None:
            server.take(self._generation, self._loaded)
            server.tell("all are ready")
        return server

    async def _listen_to(self, server: "_Server") -> None:
        async for kind, number in server.messages():
            if kind == "reload":
                begin(self._reload_for(server, number), self._tasks)
            elif kind in ("listening", "ready"):
                self._announce(kind)
            else:
                server.event(kind, number).set()
        server.leave()

    async def _reload_for(self, server: "_Server", number: int) -> None:
        refusal = None
        try:
            await self._supplier.reload()
        except ReloadRefused as error:
            refusal = str(error)
        server.tell("reloaded", number, refusal)

    def _announce(self, state: str) -> None:
        """The first server that reports speaks for all."""
        if state not in self._announced:
            self._announced.add(state)
            if state == "ready":
                logger.info(READY)
            else:
                announce_addresses(self._sockets)

    def _hang_up(self) -> None:
        if self._keys.reread():
            for server in self._servers:
                server.tell("reread keys")
        begin(self._reload(), self._tasks)

    async def _reload(self) -> None:
        with suppress(ReloadRefused):  # the log has it
            await self._supplier.reload()

    def _load(self, loader: Loader | None) -> tuple[Loader, LoadedModels]:
        """Raises StartRefused: a model cannot be loaded. The loader has ended then."""
        loader = loader or Loader(self._settings)
        try:
            return loader, loader.wait()
        except BaseException:
            loader.end()
            raise

    async def _take(self, loaded_by: tuple[Loader, LoadedModels]) -> None:
        """Give the models to all servers, and wait until all serve with them. Until then no server is told that all are
        ready, and no reload is answered. So whoever has the answer gets the new models from every server. Raises
        StartRefused: a model cannot do a forward pass."""
        loader, loaded = loaded_by
        is_first = self._loaded is None
        if not is_first:
            try:
                await self._prove(loaded)
            except BaseException:
                await asyncio.to_thread(loader.end)
                raise
        former, self._loader = self._loader, loader
        loaded.announce(self._settings)
        self._generation = generation = self._generation + 1
        self._loaded = loaded
        loader.report_worker_ends(self._report_worker_end)
        for server in self._servers:
            server.take(generation, loaded)
        servers = list(self._servers)
        for server in servers:
            await server.event("serves", generation).wait()
        if not is_first:
            begin(self._end(former, [server.event("taken", generation) for server in servers]), self._tasks)
            return
        for server in self._servers:
            server.tell("all are ready")

    async def _prove(self, loaded: LoadedModels) -> None:
        """Raises StartRefused: a model cannot do a forward pass."""
        catalog = await in_daemon_thread(partial(catalog_of, loaded, self._settings, Metrics()))
        catalog.start()
        await proven(catalog)
        await asyncio.to_thread(catalog.stop, 0.0)

    def _report_worker_end(self, how: str) -> None:
        """One server counts a worker that has ended. Called in a thread of the loader."""

        def tell() -> None:
            alive = (server for server in self._servers if server.process.poll() is None)
            if (server := next(alive, None)) is not None:
                server.tell("worker ended", how)

        with suppress(RuntimeError):  # this event loop has ended
            self._event_loop.call_soon_threadsafe(tell)

    async def _end(self, loader: Loader, unused: list[asyncio.Event]) -> None:
        for event in unused:
            await event.wait()
        await asyncio.to_thread(loader.end)


class _Server:
    """A server process, as its supervisor sees it; supervised.py lists the messages."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self.begun_at = time.monotonic()
        self._events: dict[tuple[str, int], asyncio.Event] = {}
        self._incoming = incoming
        self._outgoing = outgoing
        self._has_gone = False
        self._silent_s = 0.0

    def take(self, generation: int, loaded: LoadedModels) -> None:
        self.tell("take", generation, loaded)

    def event(self, kind: str, generation: int) -> asyncio.Event:
        """Return the event that the server "serves" with a generation of models, or has "taken" it and does not use the
        former models any more. A server that has ended has done both."""
        event = self._events.setdefault((kind, generation), asyncio.Event())
        if self._has_gone:
            event.set()
        return event

    def leave(self) -> None:
        """The server has ended, so nobody waits for it."""
        for event in self._events.values():
            event.set()

    def tell(self, *message: Any) -> None:
        """Send a message, unless the server has gone."""
        if not self._has_gone:
            self._outgoing.write(packed(*message))

    def hangs(self) -> bool:
        """Whether the server has read nothing for too long; called every BEAT_S. A server that has taken no models yet
        may still be importing its libraries."""
        self._silent_s = self._silent_s + BEAT_S if send_queue_bytes(self._outgoing.transport) else 0.0
        has_begun = any(event.is_set() for event in self._events.values())
        return self._silent_s >= (HUNG_S if has_begun else LOADING_S)

    def end(self, ends_at: float) -> None:
        """Wait for the end of the process, and kill it at `ends_at`."""
        try:
            self.process.wait(max(0.0, ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            logger.critical("a server does not end and is killed")
            self.process.kill()
            self.process.wait()

    async def messages(self) -> AsyncIterator[tuple[Any, ...]]:
        """Yield the messages of the server, until it has gone."""
        async for message in read_messages(self._incoming):
            yield message
        self._has_gone = True
        self._outgoing.close()
