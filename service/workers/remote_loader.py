"""The process that loads, as the process sees it which began it."""

import atexit
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.base.contract import About
from service.base.errors import StartRefused
from service.base.log import Log
from service.workers.loader_process import LOADING_S
from service.workers.source import Plan
from service.workers.wire import messages_of, packed

logger = logging.getLogger(__name__)

RATES_SOCKET = "rates.sock"
"""No socket in a folder of the service has a longer name."""

MOST_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""Of the path of a socket."""

RESTART_S = 1.0
"""Pause before a loader that has died is begun anew."""


class RemoteLoader:
    """A process that loads models and forks loops; it is begun anew where it dies.

    Attributes:
        directory: a folder of this service alone, which is gone in the end.
        paths: where the loops listen.
        abouts: what servers must know of each model.
        on_loop_end: is called in a thread of its own when a loop has ended: by which signal, or with which status.

    Args:
        source, arguments: as in a Plan.
        folder: where a folder for the sockets is made; None: where the system has such things.

    Raises:
        StartRefused: no folder can be made there, or its path is too long.
    """

    def __init__(
        self,
        source: str,
        arguments: tuple[Any, ...],
        probe_interval_s: float,
        log: Log,
        folder: Path | None = None,
    ) -> None:
        self.directory = new_directory(folder)
        self._plan = Plan(source, arguments, self.directory, probe_interval_s, log)
        self._ending = threading.Event()
        self.paths: list[Path] = []
        self.abouts: dict[str, About] = {}
        self.on_loop_end: Callable[[str], None] = lambda _: None
        self._begin()
        atexit.register(self.end)

    def wait_until_loaded(self) -> None:
        """Raises StartRefused: a model cannot be loaded."""
        try:
            n_loops, slow = self._loaded()
        except StartRefused:
            self.end()
            raise
        self._plan = replace(self._plan, slow=slow)  # places stay, whatever another loader would measure
        self.paths = [self.directory / f"{number}.sock" for number in range(n_loops)]
        threading.Thread(target=self._supervise, name="loader", daemon=True).start()

    def end(self) -> None:
        """End all loops at once: their requests have been answered."""
        atexit.unregister(self.end)
        self._ending.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # which also wakes the thread that waits for it
        self._kill()
        self._socket.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _begin(self) -> None:
        self._socket, theirs = socket.socketpair()
        begin = "import sys; from service.workers.loader_process import main; main(int(sys.argv[1]))"
        self._process = subprocess.Popen(  # noqa: S603  this Python, and words of our own
            [sys.executable, "-c", begin, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True
        )
        theirs.close()
        self._socket.sendall(packed(self._plan))
        self._messages = messages_of(self._socket)

    def _kill(self) -> None:
        """The process and its loops: one that hangs would outlive it."""
        if self._process.returncode is None:  # else its number may be another one's by now
            with suppress(ProcessLookupError, PermissionError):  # all have ended; macOS says so in another way
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _loaded(self) -> tuple[int, list[str]]:
        """Wait until all models are loaded; how many loops there are, and the models that are slow."""
        self._socket.settimeout(LOADING_S)
        try:
            message = next(self._messages, None)
        except TimeoutError:
            raise StartRefused(f"Models were not loaded within {LOADING_S:.0f} s") from None
        except OSError:
            message = None
        if message is None:
            raise StartRefused("The process that loads models has ended")
        refusal, n_loops, slow, abouts = message
        if refusal is not None:
            raise StartRefused(refusal)
        self._socket.settimeout(None)
        self.abouts = abouts
        return n_loops, slow

    def _supervise(self) -> None:
        """Hear of loops, and begin another loader whenever one has died."""
        while True:
            with suppress(OSError):
                for how, *others in self._messages:
                    if others:  # it says why it ends
                        logger.critical("the process that loads models fails: %s", how)
                        break
                    self.on_loop_end(how)
            while not self._ending.wait(RESTART_S):
                logger.critical("The process that loads models has ended")
                try:
                    self._kill()
                    self._socket.close()
                    self._begin()
                    self._loaded()
                    break
                except (OSError, StartRefused) as error:
                    logger.critical("models cannot be loaded now: %s", error)
            if self._ending.is_set():
                return


def new_directory(folder: Path | None) -> Path:
    """A new folder that nobody else may enter; in `folder`, or where the system has such things.

    Raises:
        StartRefused: none can be made there, or its path is too long.
    """
    try:
        made = Path(tempfile.mkdtemp(prefix="attend-", dir=folder))
    except OSError as error:
        where = folder or "where the system has temporary files"
        raise StartRefused(f"No folder can be made in {where} (ATTEND_RUN_DIRECTORY): {error.strerror}") from error
    n_bytes = len(os.fsencode(made / RATES_SOCKET))
    if n_bytes > MOST_PATH_BYTES:
        made.rmdir()
        raise StartRefused(
            f"The path of a socket in {made.parent} (ATTEND_RUN_DIRECTORY) has {n_bytes} bytes; "
            f"the limit is {MOST_PATH_BYTES}"
        )
    return made
