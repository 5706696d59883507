"""The models that serve now, and those that take their place while requests go on."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from service.base.errors import Draining, Starting, StartRefused
from service.base.metrics import ModelState
from service.models.catalog import Models

LOOK_S = 0.02
"""How often it is checked whether new models have proved themselves, and whether nobody uses the former ones."""

PROVEN_S = 120.0
"""In which every model must have done a forward pass."""

Result = TypeVar("Result")


class Serving:
    """Holds the models of one server; at first there may be none.

    Args:
        probe_interval_s: how often files are looked at.
    """

    def __init__(self, probe_interval_s: float, models: Models | None = None) -> None:
        self.draining = False
        self._probe_interval_s = probe_interval_s
        self.awaits_others = False
        """Whether other servers at the same port have no models yet: then this one is not ready either."""
        self._models = self._not_started = models
        self._retired: set[Models] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def use(self) -> "_Use":
        """The models for one request, which stay until it ends: `with serving.use() as models`.

        Raises:
            Unavailable: there are none yet. When the server drains, it is the models that refuse.
        """
        if self._models is None and self.draining:
            raise Draining("The service is draining and takes no new requests", retry_after_s=5)
        if self._models is None:
            raise Starting("The service is starting: its models are loading")
        return _Use(self._models)

    def start(self) -> None:
        """In the running event loop, from which all requests come."""
        if self._not_started is not None:
            self._not_started.start()
            self._not_started = None
        self._begin(self._look_at_files())

    async def replace(self, models: Models) -> "asyncio.Task[None]":
        """Serve with these from now on.

        Returns:
            A task that ends with the former models, when the last request that uses them is answered.

        Raises:
            StartRefused: they have not proved themselves by a forward pass each, and the former ones stay.
        """
        models.start()
        former = self._models
        if former is not None:
            await proven(models)
        self._models = models
        if self.draining:
            models.drain()
        return self._begin(self._retire(former))

    def drain(self) -> None:
        """Take no new requests; those accepted are still answered."""
        self.draining = True
        for models in self._all():
            models.drain()

    async def stop(self, timeout_s: float) -> None:
        """Answer the accepted requests, within `timeout_s`."""
        self.drain()
        for task in self._tasks:
            task.cancel()
        ends_at = time.monotonic() + timeout_s
        for models in list(self._all()):
            await asyncio.to_thread(models.stop, max(0.0, ends_at - time.monotonic()))

    def unready_reason(self) -> str | None:
        """Why this server should get no requests now; None if it should."""
        if self.draining:
            return "draining"
        if self._models is None or self.awaits_others:
            return "starting"
        return self._models.unready_reason()

    def states(self) -> list[ModelState]:
        """For the gauges."""
        return [] if self._models is None else self._models.states()

    def _all(self) -> Iterator[Models]:
        yield from self._retired
        if self._models is not None:
            yield self._models

    async def _retire(self, models: Models | None) -> None:
        if models is not None:
            self._retired.add(models)
            while models.n_users:
                await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(models.stop, 0.0)
            self._retired.discard(models)
            gc.unfreeze()
        gc.collect()
        gc.freeze()

    async def _look_at_files(self) -> None:
        while True:
            await asyncio.sleep(self._probe_interval_s)
            if self._models is not None:
                await asyncio.to_thread(self._models.look_at_files)

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Use:
    def __init__(self, models: Models) -> None:
        self._models = models

    def __enter__(self) -> Models:
        self._models.n_users += 1
        return self._models

    def __exit__(self, *_: object) -> None:
        self._models.n_users -= 1


async def proven(models: Models) -> None:
    """Wait until each model that has been started has done a forward pass; those that have not are stopped.

    Raises:
        StartRefused: one cannot.
    """
    try:
        async with asyncio.timeout(PROVEN_S):
            while "starting" in (reason := models.unready_reason() or ""):
                await asyncio.sleep(LOOK_S)
        if reason:
            raise StartRefused(reason)
    except BaseException as error:
        await asyncio.to_thread(models.stop, 0.0)
        if isinstance(error, TimeoutError):
            raise StartRefused(f"Models did no forward pass within {PROVEN_S:.0f} s: {reason}") from None
        raise


def in_daemon_thread(call: Callable[[], Result]) -> "asyncio.Future[Result]":
    """What a function returns that may take long, and for which no end of the process may wait."""
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
