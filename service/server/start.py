"""The start of the service. It imports little, so that a signal can stop it immediately, and models load while the rest
is imported."""

import logging
import signal
import sys

from service.base.configuration import announce, read_settings
from service.base.data_directory import with_data_directory
from service.base.database import check_database
from service.base.errors import StartRefused
from service.base.temporary_files import require_temporary_folder
from service.http.keys import Keys
from service.http.rate_store import storage_of
from service.server.listening import announce_addresses, listen
from service.server.tracing import announce_traces
from service.workers.devices import select_device
from service.workers.loader import Loader
from service.workers.processes import n_servers

logger = logging.getLogger(__name__)


def main() -> None:
    """Serve until a signal comes; exit with one sentence if the service cannot start as configured."""
    for number in (signal.SIGINT, signal.SIGTERM):  # by default the first process of a container ignores both
        signal.signal(number, _exit)
    if sys.platform != "win32" and not (sys.stdin and sys.stdin.isatty()):  # else the terminal was closed
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        settings = read_settings()
        settings.log.configure()
        announce(settings)
        require_temporary_folder()
        announce_traces()
        keys = Keys(settings)
        storage_of(settings)  # refuses a wrong address
        select_device(settings.device)
        servers = n_servers(settings)
        sockets = listen(settings.host, settings.port, shared=servers > 1)
        if servers == 1:
            announce_addresses(sockets)
        with with_data_directory(settings) as settings:
            loader = Loader(settings) if settings.loops != 0 else None
            check_database(settings)
            # Imported only now, since these imports take as long as loading a few models.
            if servers > 1:
                from service.server.supervisor import supervise

                assert loader is not None, "settings refuse several servers without workers"
                supervise(settings, keys, sockets, loader, servers)
            else:
                from service.server.server import serve

                serve(settings, keys, sockets, loader)
    except StartRefused as error:
        sys.exit(f"attend cannot start: {error}")
    except _Stopped as stopped:
        logger.info("stopped by %s", stopped.signal.name)
        raise


class _Stopped(SystemExit):
    """A signal has stopped the service."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.signal = signal.Signals(number)


def _exit(number: int, _: object) -> None:
    """Stop the process, while models load or once a server has drained: uvicorn then raises the signal again."""
    raise _Stopped(number)
