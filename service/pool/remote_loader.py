"""The loader process, as the process that started it sees it."""

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

from service.base.contract import ModelInfo
from service.base.errors import StartRefused
from service.base.log import Log
from service.passes.plan import LOADING_S, Plan
from service.passes.wire import messages_of, packed

logger = logging.getLogger(__name__)

RATES_SOCKET = "rates.sock"
"""The longest name of a socket in a folder of the service."""
MAX_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""Most bytes of a socket's path."""
RESTART_S = 1.0
"""Pause before a loader that has died is replaced."""


class RemoteLoader:
    """A process that loads models and forks workers; it is replaced if it dies.

    Attributes:
        directory: the folder of the sockets, which only this service may enter; it is removed at the end.
        paths: the sockets where the workers listen.
        model_infos: what is known about each model.
        on_worker_end: is called with the signal or status of a worker that has ended, in a thread of the loader.

    Args:
        source, arguments: see `Plan`.
        folder: where the folder of the sockets is created; None: where the system has temporary files.
        device: the only GPU that CUDA shows the process, as CUDA_VISIBLE_DEVICES names it; None changes nothing.

    Raises:
        StartRefused: no folder can be created there, or its path is too long.
    """

    def __init__(
        self,
        source: str,
        arguments: tuple[Any, ...],
        probe_interval_s: float,
        log: Log,
        folder: Path | None = None,
        device: str | None = None,
    ) -> None:
        self.directory = make_run_directory(folder)
        self._plan = Plan(source, arguments, self.directory, probe_interval_s, log, device=device)
        self._ending = threading.Event()
        self.paths: list[Path] = []
        self.model_infos: dict[str, ModelInfo] = {}
        self.on_worker_end: Callable[[str], None] = lambda _: None
        self._start()
        atexit.register(self.end)

    @property
    def slow(self) -> tuple[str, ...]:
        """The models that have workers of their own, once all are loaded."""
        return tuple(self._plan.slow or ())

    def wait_until_loaded(self) -> None:
        """Wait until all models are loaded. Raises StartRefused: a model cannot be loaded."""
        try:
            n_workers, slow = self._loaded()
        except StartRefused:
            self.end()
            raise
        self._plan = replace(self._plan, slow=slow)  # a replacement has the same workers, whatever it would measure
        self.paths = [self.directory / f"{number}.sock" for number in range(n_workers)]
        threading.Thread(target=self._supervise, name="loader", daemon=True).start()

    def end(self) -> None:
        """End all workers immediately: their requests have been answered."""
        atexit.unregister(self.end)
        self._ending.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # this also wakes the thread that waits for messages
        self._kill()
        self._socket.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair()
        begin = "import sys; from service.worker.loader_process import main; main(int(sys.argv[1]))"
        device = self._plan.device
        self._process = subprocess.Popen(  # noqa: S603  this Python, and words of our own
            [sys.executable, "-c", begin, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            process_group=0,  # for _kill; of the server's session, or Linux would not compare their priorities
            env=os.environ | ({} if device is None else {"CUDA_VISIBLE_DEVICES": device}),
        )
        theirs.close()
        self._socket.sendall(packed(self._plan))
        self._messages = messages_of(self._socket)

    def _kill(self) -> None:
        """A worker that hangs would survive the loader alone."""
        if self._process.returncode is None:  # else its id may belong to another process by now
            with suppress(ProcessLookupError, PermissionError):  # all have ended; macOS raises another error
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _loaded(self) -> tuple[int, list[str]]:
        """Return the number of workers, and the slow models, once all models are loaded."""
        self._socket.settimeout(LOADING_S)
        try:
            message = next(self._messages, None)
        except TimeoutError:
            raise StartRefused(f"Models were not loaded within {LOADING_S:.0f} s") from None
        except OSError:
            message = None
        if message is None:
            raise StartRefused("The process that loads models has ended")
        refusal, n_workers, slow, model_infos = message
        if refusal is not None:
            raise StartRefused(refusal)
        self._socket.settimeout(None)
        self.model_infos = model_infos
        return n_workers, slow

    def _supervise(self) -> None:
        """Report workers that have ended, and replace a loader that has died."""
        while True:
            with suppress(OSError):
                for cause, *others in self._messages:
                    if others:  # the loader reports why it ends
                        logger.critical("the process that loads models fails: %s", cause)
                        break
                    self.on_worker_end(cause)
            while not self._ending.wait(RESTART_S):
                logger.critical("The process that loads models has ended")
                try:
                    self._kill()
                    self._socket.close()
                    self._start()
                    self._loaded()
                    break
                except (OSError, StartRefused) as error:
                    logger.critical("models cannot be loaded now: %s", error)
            if self._ending.is_set():
                return


def make_run_directory(folder: Path | None) -> Path:
    """Create a folder that nobody else may enter, in `folder` or where the system has temporary files. Raises
    StartRefused: no folder can be created there, or its path is too long."""
    try:
        made = Path(tempfile.mkdtemp(prefix="attend-", dir=folder))
    except OSError as error:
        where = folder or "where the system has temporary files"
        raise StartRefused(f"No folder can be created in {where} (ATTEND_RUN_DIRECTORY): {error.strerror}") from error
    n_bytes = len(os.fsencode(made / RATES_SOCKET))
    if n_bytes > MAX_SOCKET_PATH_BYTES:
        made.rmdir()
        raise StartRefused(
            f"The path of a socket in {made.parent} (ATTEND_RUN_DIRECTORY) has {n_bytes} bytes; "
            f"the limit is {MAX_SOCKET_PATH_BYTES}"
        )
    return made
