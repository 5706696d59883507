"""The start of the service. It imports little. So a signal can stop it immediately, and models load while the rest is
imported."""

import logging
import signal
import sys
from collections.abc import Sequence

from service.access.keys import Keys
from service.access.rate_store import storage_of
from service.base.configuration import announce, read_settings
from service.base.cores import n_workers, usable_cores
from service.base.errors import StartRefused
from service.base.settings import Settings
from service.base.temporary_files import require_temporary_folder
from service.pool.devices import devices_of
from service.pool.loader import Loader
from service.server.fetching import fetch_models
from service.server.listening import announce_addresses, listen
from service.server.tracing import announce_traces
from service.storage.data_directory import with_data_directory
from service.storage.database import check_database

logger = logging.getLogger(__name__)

MAX_SERVERS = 4
"""Limit of the default number of servers: each process takes memory."""


def main(fetched: Sequence[str] = ()) -> None:
    """Serve until a signal comes; exit with one sentence if the service cannot start as configured.

    Args:
        fetched: arguments of `attend fetch`, which runs first if there are any.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # by default the first process of a container ignores both
        signal.signal(number, _exit)
    if not (sys.stdin and sys.stdin.isatty()):  # else the terminal was closed
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        settings = read_settings()
        settings.log.configure()
        announce(settings)
        if fetched:
            fetch_models(fetched, settings.artifacts)
        require_temporary_folder()
        announce_traces()
        keys = Keys(settings)
        storage_of(settings)  # refuses a wrong address
        servers = n_servers(settings)
        sockets = listen(settings.host, settings.port, shared=servers > 1)
        if servers == 1:
            announce_addresses(sockets)
        with with_data_directory(settings) as settings:
            loader = Loader(settings)
            check_database(settings)
            # Imported only now, since these imports take as long as loading a few models.
            if servers > 1:
                from service.server.supervisor import supervise

                supervise(settings, keys, sockets, loader, servers)
            else:
                from service.server.server import serve

                serve(settings, keys, sockets, loader)
    except StartRefused as error:
        sys.exit(f"attend cannot start: {error}")
    except _Stopped as stopped:
        logger.info("stopped by %s", stopped.signal.name)
        raise


def n_servers(settings: Settings) -> int:
    """Return the number of processes that speak HTTP. A worker keeps about half a core of a server busy, so there is
    one, and more if the workers leave cores free. Raises ProviderUnavailable: a device that the settings name is not
    there."""
    # Whether there is a GPU that works is not known yet.
    provider = "cuda" if settings.provider == "cuda" or settings.devices else "cpu"
    n_devices = len(devices_of(settings))
    free = usable_cores() - n_workers(settings, provider) * n_devices
    return settings.servers or max(1, min(MAX_SERVERS, free // 2))


class _Stopped(SystemExit):
    """A signal has stopped the service."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.signal = signal.Signals(number)


def _exit(number: int, _: object) -> None:
    """Stop the process, while models load or once a server has drained: uvicorn then raises the signal again."""
    raise _Stopped(number)
