"""The life of a server: it listens, gets its models, serves until a signal comes, and answers accepted requests."""

import asyncio
import logging
import math
import signal
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from service.access.addresses import trusted_hosts
from service.access.keys import Keys
from service.base.errors import ReloadRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.assembly import load_catalog
from service.front.serving import Serving
from service.front.suppliers import LoadingSupplier, Supplier, begin
from service.pool.loader import Loader
from service.pool.sentence_cache import SentenceCache
from service.server.app import create_app
from service.server.connections import Connections, max_connections
from service.server.tracing import close_traces, open_traces

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open. Clients and proxies usually keep a connection for a minute. The server
keeps it longer, because a request that comes while the server closes its connection gets no answer."""
MAX_MESSAGE_BYTES = 2**31
"""Never reached: `LiveConnection` ends longer messages itself."""
LOOK_S = 0.05
"""Pause between two checks whether the server is ready, or whether all requests are answered, so that it may stop."""


def serve(settings: Settings, keys: Keys, sockets: list[socket.socket], loader: Loader) -> None:
    """Run the only server until a signal comes. `loader` is the process that is loading the models. Raises
    StartRefused: a model cannot be loaded."""
    metrics, serving = Metrics(), Serving(settings.probe_interval_s)
    cache = SentenceCache(settings.cache, metrics.cache)
    supplier = LoadingSupplier(partial(load_catalog, settings, metrics, cache=cache), serving.replace, loader)
    run(settings, sockets, keys, metrics, serving, supplier)


def run(
    settings: Settings,
    sockets: list[socket.socket],
    keys: Keys,
    metrics: Metrics,
    serving: Serving,
    supplier: Supplier,
    rates: Path | None = None,
) -> None:
    """Serve until a signal comes; then answer the accepted requests. `rates` is the socket where requests are counted
    for several servers; None if this is the only one. Raises StartRefused: a model cannot be loaded."""
    max_body_bytes = max(settings.max_body_bytes, settings.max_document_bytes)
    timeout_s = settings.client_timeout_s
    connections = Connections(
        max_connections(), timeout_s, timeout_s, max_body_bytes, metrics, max_message_bytes=settings.max_body_bytes
    )
    traces = open_traces()
    config = uvicorn.Config(
        create_app(settings, serving, metrics, keys, supplier.reload, rates, traces),
        http=connections.protocol,  # type: ignore[arg-type]  # uvicorn only calls it
        ws=connections.live_protocol,  # type: ignore[arg-type]  # as above
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_timeout=None,  # while an update waits nothing is read, and so no answer to a ping
        ws_per_message_deflate=False,  # a small message could become a huge one
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        proxy_headers=settings.trusted_proxies is not None,
        forwarded_allow_ips=trusted_hosts(settings.trusted_proxies),
    )
    server = Server(config, serving, supplier, keys, settings.drain_timeout_s, settings.drain_delay_s, traces)
    server.run(sockets)
    if server.failure is not None:
        raise server.failure


class Server(uvicorn.Server):
    """Drains the models as soon as a signal asks the server to stop. While answers still go out, the server listens, so
    that health checks and new clients are told that it is draining.

    Args:
        drain_timeout_s: seconds after which requests in an engine fail; a second later all others are cancelled.
        drain_delay_s: seconds for which it listens even if all requests are answered.
        traces: sends the last spans when all requests are answered.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        serving: Serving,
        supplier: Supplier,
        keys: Keys,
        drain_timeout_s: float,
        drain_delay_s: float,
        traces: "TracerProvider | None" = None,
    ) -> None:
        super().__init__(config)
        self.failure: BaseException | None = None
        """The error that ended the server; None if a signal did."""
        self._serving = serving
        self._supplier = supplier
        self._keys = keys
        self._drain_timeout_s = drain_timeout_s
        self._drain_delay_s = drain_delay_s
        self._traces = traces
        self._tasks: set[asyncio.Task[None]] = set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._serving.drain()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        begin(self._run_supplier(), self._tasks)
        await self._supplier.may_listen()
        await super().startup(sockets)
        self._supplier.report("listening")
        begin(self._report_readiness(), self._tasks)
        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        answering = asyncio.create_task(self._answer_the_rest())
        try:
            await self._listen_while_answering()
            await super().shutdown(sockets)
            if self._traces is not None:
                await close_traces(self._traces)
        finally:
            answering.cancel()

    async def _run_supplier(self) -> None:
        try:
            await self._supplier.run()
        except Exception as error:
            self.failure, self.should_exit = error, True
            self._serving.drain()

    async def _report_readiness(self) -> None:
        while self._serving.unready_reason() is not None:
            await asyncio.sleep(LOOK_S)
        self._supplier.report("ready")

    def _hang_up(self) -> None:
        self._keys.reread()
        begin(self._reload(), self._tasks)

    async def _reload(self) -> None:
        with suppress(ReloadRefused):  # the log has it
            await self._supplier.reload()

    async def _listen_while_answering(self) -> None:
        """The rest of the drain timeout is left to clients that read slowly."""
        accepted = set(self.server_state.tasks)
        logger.info("draining: %d requests are still to be answered", len(accepted))
        began = time.monotonic()
        ends_at = began + max(self._drain_timeout_s, self._drain_delay_s)
        stays_until = began if self.failure else began + self._drain_delay_s
        while not self.force_exit and (now := time.monotonic()) < ends_at:
            if now >= stays_until and all(task.done() for task in accepted):
                break
            await self.on_tick(0)  # this sets the Date header of answers
            await asyncio.sleep(LOOK_S)
        self.config.timeout_graceful_shutdown = math.ceil(max(0.0, ends_at - time.monotonic())) + 1

    async def _answer_the_rest(self) -> None:
        await asyncio.sleep(self._drain_timeout_s)
        await self._serving.stop(0)
