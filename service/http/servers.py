"""Several server processes on one port, before the same loops.

    supervisor    begins the servers and replaces those that die; counts the rates of clients for all
      server      HTTP
      server
      loader      and its loops

A server that dies costs its own connections alone. Each listens on its own socket, and the system deals out connections
(SO_REUSEPORT): sockets that processes share would give most of them to whoever wakes first.
"""

import json
import logging
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from service.artifact import Artifact
from service.contract import About
from service.engine.remote_loader import RemoteLoader
from service.engine.wire import packed
from service.errors import StartRefused
from service.http.access import RateLimiter
from service.settings import Settings

logger = logging.getLogger(__name__)

LOOK_S = 0.05
"""How often the supervisor looks after its servers."""

SHORT_LIFE_S = 5.0
"""A server that dies younger than this is replaced after as long."""


@dataclass(frozen=True)
class Given:
    """What a server gets from its supervisor.

    Attributes:
        paths: where loops listen.
        rates: where requests are counted; None where there is no limit.
    """

    artifacts: dict[str, Artifact]
    abouts: dict[str, About]
    paths: list[Path]
    rates: Path | None
    port: int


def default_servers(cores: int, n_loops: int) -> int:
    """One, and up to four where the loops leave cores free: a loop gives work to about half a core of a server."""
    return max(1, min(4, (cores - n_loops) // 2))


def shared_socket(host: str, port: int) -> socket.socket:
    """Bound to a port that several processes share.

    Raises:
        OSError: it cannot be.
    """
    shared = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    shared.bind((host, port))
    return shared


class Supervisor:
    """Serves until it is told to stop.

    Args:
        loader: has loaded.

    Raises:
        StartRefused: somebody else listens at the port.
    """

    def __init__(
        self, settings: Settings, artifacts: dict[str, Artifact], loader: RemoteLoader, n_servers: int
    ) -> None:
        self._loader = loader
        self._held = _held(settings.host, settings.port)
        self._metrics = loader.directory / "metrics"
        self._metrics.mkdir()
        rates = None
        if settings.rate_limit is not None:
            rates = loader.directory / "rates.sock"
            counting = _Rates(str(rates), RateLimiter(settings.rate_limit))
            threading.Thread(target=counting.serve_forever, name="rates", daemon=True).start()
        port = self._held.getsockname()[1]
        self._given = Given(artifacts, loader.abouts, loader.paths, rates, port)
        self._stopping = threading.Event()
        self._servers = [self._begin() for _ in range(n_servers)]
        logger.info("%d servers running on http://%s:%d", n_servers, settings.host, port)

    def run(self) -> None:
        """Replace servers that die, until a signal comes; then let all answer what they have accepted."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        while not self._stopping.wait(LOOK_S):
            for place, server in enumerate(self._servers):
                if server.process.poll() is not None and time.monotonic() >= server.begun_at + SHORT_LIFE_S:
                    logger.critical("a server has died (%d)", server.process.returncode)
                    server.lifeline.close()
                    # Its connections have gone.
                    mark_process_dead(server.process.pid, str(self._metrics))  # type: ignore[no-untyped-call]
                    self._servers[place] = self._begin()
        for server in self._servers:
            server.process.terminate()
        for server in self._servers:
            server.process.wait()
        self._loader.end()

    def _begin(self) -> "_Server":
        lifeline, theirs = socket.socketpair()
        begin = "import sys; from service.http.server import serve_with_others; serve_with_others(int(sys.argv[1]))"
        process = subprocess.Popen(  # noqa: S603  this Python, and words of our own
            [sys.executable, "-c", begin, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(self._metrics)},
        )
        theirs.close()
        lifeline.sendall(packed(self._given))
        return _Server(process, lifeline, time.monotonic())


@dataclass(frozen=True)
class _Server:
    process: "subprocess.Popen[bytes]"
    lifeline: socket.socket
    """At its end the server knows that the supervisor has gone."""
    begun_at: float


class _Rates(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Counts requests for all servers: a client as a line of JSON, and as answer a line with the seconds to wait."""

    daemon_threads = True

    def __init__(self, path: str, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._counting = threading.Lock()
        super().__init__(path, _RatesHandler)

    def wait_s(self, client: str) -> int:
        with self._counting:
            return self._limiter.wait_s(client)


class _RatesHandler(socketserver.StreamRequestHandler):
    server: _Rates

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(b"%d\n" % self.server.wait_s(json.loads(line)))


def _held(host: str, port: int) -> socket.socket:
    """A port that is kept for the servers, though nobody listens at it here.

    Raises:
        StartRefused: somebody else listens there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass  # a port that is shared would not tell
        return shared_socket(host, port)
    except OSError as error:
        raise StartRefused(f"cannot listen on {host}:{port}: {error}") from error
