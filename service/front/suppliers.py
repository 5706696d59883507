"""The source of a server's models: it loads them, at first and for each reload, or is given them."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeVar

from service.base.errors import ReloadRefused, StartRefused
from service.pool.loader import Loader

logger = logging.getLogger(__name__)

READY = "attend is ready"

Loaded = TypeVar("Loaded")
Result = TypeVar("Result")


class Supplier(Protocol):
    """The source of a server's models."""

    async def may_listen(self) -> None:
        """Wait until the server may be asked."""

    async def run(self) -> None:
        """Give the server its models. Raises StartRefused: they cannot be loaded."""

    def report(self, state: Literal["listening", "ready"]) -> None:
        """Note that the server listens, or is ready for the first time."""

    async def reload(self) -> None:
        """Load the models anew, and replace the models that serve. Raises ReloadRefused: they cannot be loaded, or are
        being loaded."""


class LoadingSupplier(Generic[Loaded]):
    """Loads models, and lets them serve.

    Args:
        load: loads the models that the settings name, with this loader or a new one; called in a thread.
        take: lets loaded models serve in place of the former ones; raises StartRefused where they cannot.
        loader: the process that loads the first models already; None if none does yet.
    """

    def __init__(
        self,
        load: Callable[[Loader | None], Loaded],
        take: Callable[[Loaded], Coroutine[Any, Any, object]],
        loader: Loader | None,
    ) -> None:
        self._load = load
        self._take = take
        self._loader = loader
        self._loading: asyncio.Task[None] | None = None

    async def may_listen(self) -> None:
        """Return immediately: requests are told that the service is starting."""

    def report(self, state: Literal["listening", "ready"]) -> None:
        """Log that the only server is ready. That it listens was logged before its models were loaded."""
        if state == "ready":
            logger.info(READY)

    async def run(self) -> None:
        """Raises StartRefused: the first models cannot be loaded."""
        self._loading = asyncio.create_task(self._replace(self._loader))
        await self._loading

    async def reload(self) -> None:
        """Load the models anew. Cancelling the call does not stop it."""
        if self._loading is not None and not self._loading.done():
            logger.warning("models are being loaded already")
            raise ReloadRefused("Models are being loaded already")
        logger.info("loading the models anew")
        self._loading = asyncio.create_task(self._replace_or_keep())
        await asyncio.shield(self._loading)

    async def _replace_or_keep(self) -> None:
        """Raises ReloadRefused. The log has it too, as the client may have left."""
        try:
            await self._replace(None)
        except StartRefused as error:
            logger.error("the models stay as they are: %s", error)
            raise ReloadRefused(f"The models stay as they are: {error}") from None
        except Exception:
            logger.exception("the models stay as they are")
            raise ReloadRefused("The models stay as they are: unexpected error; the log has it") from None

    async def _replace(self, loader: Loader | None) -> None:
        await self._take(await in_daemon_thread(partial(self._load, loader)))


def begin(work: Coroutine[Any, Any, Result], tasks: "set[asyncio.Task[Any]]") -> "asyncio.Task[Result]":
    """Run work as a task of the running event loop, which alone might forget it. `tasks` has it until it is done."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def in_daemon_thread(call: Callable[[], Result]) -> "asyncio.Future[Result]":
    """Call a function that may take long, in a thread for which the end of the process does not wait."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def answer(take: Callable[[Any], None], result: object) -> None:
        if not future.done():
            take(result)

    def run() -> None:
        try:
            done = partial(answer, future.set_result, call())
        except BaseException as error:
            done = partial(answer, future.set_exception, error)
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(done)

    threading.Thread(target=run, name="loading", daemon=True).start()
    return future
