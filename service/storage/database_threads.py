"""The threads that use the database."""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from service.base.errors import NotStored

N_THREADS = 4
"""Most threads of a server that use the database, each with a connection."""
TIMEOUT_S = 20.0
"""How long a request waits for an answer."""
T = TypeVar("T")


class _Threads:
    """Threads for which the end of the process does not wait, as a database may hang."""

    def __init__(self) -> None:
        self._futures: SimpleQueue[Future[Any]] = SimpleQueue()
        self._calls: dict[Future[Any], Callable[[], Any]] = {}
        """The call of each future. A call is dropped when nobody waits for it any more, such as for a document."""
        self._began: dict[Future[Any], float] = {}
        self._n_threads = 0

    @property
    def hang(self) -> bool:
        """Whether no thread has come back for so long that requests were given up."""
        began = [*self._began.copy().values()]
        return len(began) == N_THREADS and time.monotonic() - max(began) > TIMEOUT_S

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        while self._n_threads < N_THREADS:
            self._n_threads += 1
            Thread(target=self._work, name="database", daemon=True).start()
        future: Future[T] = Future()
        self._calls[future] = call
        future.add_done_callback(lambda _: self._calls.pop(future, None))
        self._futures.put(future)
        return future

    def _work(self) -> None:
        while True:
            future = self._futures.get()
            if future.set_running_or_notify_cancel():
                self._began[future] = time.monotonic()
                try:
                    future.set_result(self._calls.pop(future)())
                except BaseException as error:
                    future.set_exception(error)
                del self._began[future]
            del future


_THREADS = _Threads()


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that uses a database. Its threads are its own, so that a database that hangs holds up nothing
    else. Raises NotStored: the database does not answer. The call may still take effect."""
    with suppress(TimeoutError):
        if not _THREADS.hang:
            call = _THREADS.submit(partial(contextvars.copy_context().run, function, *arguments))
            async with asyncio.timeout(TIMEOUT_S):
                return await asyncio.wrap_future(call)
    raise NotStored("The database does not answer", retry_after_s=5)
