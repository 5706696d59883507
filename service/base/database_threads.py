"""The threads that use the database."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, Future
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


class _Threads(Executor):
    """Threads for which the end of the process does not wait, as a database may hang."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._n_threads = 0

    def submit(self, function: Callable[..., T], /, *arguments: Any, **options: Any) -> "Future[T]":
        while self._n_threads < N_THREADS:
            self._n_threads += 1
            Thread(target=self._work, name="database", daemon=True).start()
        future: Future[T] = Future()
        self._calls.put((future, partial(function, *arguments, **options)))
        return future

    def _work(self) -> None:
        while True:
            future, call = self._calls.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del future, call  # and the documents that they have


_THREADS = _Threads()


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call what uses a database. Its threads are its own, so that a database that hangs holds up nothing else.

    Raises:
        NotStored: the database does not answer. What was asked for may still happen.
    """
    call = partial(contextvars.copy_context().run, function, *arguments)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
    except TimeoutError:
        raise NotStored("The database does not answer", retry_after_s=5) from None
