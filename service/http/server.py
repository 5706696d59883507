"""The server's life: load every artifact, prove each with a forward pass, serve until told to stop."""

import asyncio
import logging
import math
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from types import FrameType

import uvicorn

from service import __version__
from service.configuration import announce, read_settings
from service.cores import usable_cores
from service.engine.wire import receive
from service.errors import StartRefused
from service.http.app import create_app
from service.http.connections import Connections, most_connections
from service.http.keys import Keys
from service.http.servers import Given, Supervisor, default_servers, shared_socket
from service.metrics import Metrics
from service.registry import Models, begin_loader, models_here, models_of, wanted_artifacts
from service.settings import Settings

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""How long an idle connection stays open. Clients and proxies usually keep one for a minute; the server keeps it
longer, because a request that comes while the server closes the connection gets an error and no answer."""

LOOK_S = 0.05
"""How often the server checks whether all requests are answered, so that it may stop."""


def main() -> None:
    """Serve; exit with one sentence if the service cannot start as configured."""
    try:
        settings = read_settings()
        settings.log.configure()
        announce(settings)
        Keys(settings)  # refused before models are loaded
        artifacts = wanted_artifacts(settings)
        if settings.loops == 0:
            metrics = Metrics()
            models = models_here(artifacts, settings, metrics)
            _say_what_serves(artifacts, {model.provider for model in models}, 0)
            serve(settings, models, metrics)
            return
        loader = begin_loader(artifacts, settings)
        loader.wait_until_loaded()
        _say_what_serves(artifacts, {about.provider for about in loader.abouts.values()}, len(loader.paths))
        n_servers = settings.servers or default_servers(usable_cores(), len(loader.paths))
        if n_servers > 1:
            Supervisor(settings, artifacts, loader, n_servers).run()
            return
        metrics = Metrics()
        serve(settings, models_of(artifacts, loader.abouts, loader.paths, settings, metrics, loader), metrics)
    except StartRefused as error:
        sys.exit(f"attend cannot start: {error}")


def _say_what_serves(models: Iterable[str], providers: set[str], n_loops: int) -> None:
    names, provider = ", ".join(models), ", ".join(sorted(providers))
    logger.info("attend %s: %s on %s, %d loops", __version__, names, provider, n_loops)


def serve_with_others(supervisor_file: int) -> None:
    """Be one of several servers.

    Args:
        supervisor_file: the file descriptor of a socket to the supervisor.
    """
    supervisor = socket.socket(fileno=supervisor_file)
    message = receive(supervisor)
    if message is None:
        return
    given: Given = message[0]
    settings, metrics = read_settings(), Metrics(shared=True)
    settings.log.configure()

    def stop_without_supervisor() -> None:
        supervisor.recv(1)
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=stop_without_supervisor, name="supervisor", daemon=True).start()
    models = models_of(given.artifacts, given.abouts, given.paths, settings, metrics)
    serve(settings, models, metrics, given)


def serve(settings: Settings, models: Models, metrics: Metrics, given: Given | None = None) -> None:
    """Until a signal comes; then answer what was accepted.

    Args:
        given: by a supervisor, to one of several servers.
    """
    limit = most_connections(settings.max_connections)
    connections = Connections(limit, settings.head_timeout_s, settings.send_timeout_s, metrics)
    config = uvicorn.Config(
        create_app(settings, models, metrics, None if given is None else given.rates),
        host=settings.host,
        port=settings.port,
        http=connections.protocol,  # type: ignore[arg-type]  # uvicorn calls it, and wants no more of it
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        proxy_headers=settings.trusted_proxies is not None,
        forwarded_allow_ips=settings.trusted_proxies,
    )
    sockets = None if given is None else [shared_socket(settings.host, given.port)]
    Server(config, models, settings.drain_timeout_s).run(sockets)


class Server(uvicorn.Server):
    """Drains the models as soon as a signal asks the server to stop. While answers still go out the server listens, so
    that health checks and new clients are told that it is draining.

    Args:
        drain_timeout_s: after this, requests in an engine fail, and a second later all others are cancelled.
    """

    def __init__(self, config: uvicorn.Config, models: Models, drain_timeout_s: float) -> None:
        super().__init__(config)
        self._models = models
        self._drain_timeout_s = drain_timeout_s

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._models.drain()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        answering = asyncio.create_task(self._answer_the_rest())
        try:
            await self._listen_while_answering()
            await super().shutdown(sockets)
        finally:
            answering.cancel()

    async def _listen_while_answering(self) -> None:
        """What is left of the drain timeout is for clients that read their answers slowly."""
        accepted = set(self.server_state.tasks)
        logger.info("draining: %d requests are still to be answered", len(accepted))
        ends_at = time.monotonic() + self._drain_timeout_s
        while not all(task.done() for task in accepted) and not self.force_exit and time.monotonic() < ends_at:
            await self.on_tick(0)  # it sets the Date header of answers
            await asyncio.sleep(LOOK_S)
        self.config.timeout_graceful_shutdown = math.ceil(max(0.0, ends_at - time.monotonic())) + 1

    async def _answer_the_rest(self) -> None:
        await asyncio.sleep(self._drain_timeout_s)
        await asyncio.to_thread(self._models.stop, 0)
