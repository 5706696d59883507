"""The models that serve now, and their replacement while requests go on."""

import asyncio
import gc
import time
from collections.abc import Iterator

from service.base.errors import Draining, Starting, StartRefused
from service.base.garbage import keep_objects
from service.base.metrics import ModelState
from service.front.catalog import Catalog
from service.front.suppliers import begin

LOOK_S = 0.02
"""Pause between two checks whether new models have proved themselves, or whether nobody uses the former models."""
PROVEN_S = 120.0
"""Time in which every model must have done a forward pass."""


class Serving:
    """Holds the models of one server; at first there may be none. Their files are looked at every
    `probe_interval_s`."""

    def __init__(self, probe_interval_s: float, catalog: Catalog | None = None) -> None:
        self.draining = False
        self._probe_interval_s = probe_interval_s
        self.awaits_others = False
        """Whether other servers at the same port have no models yet: then this one is not ready either."""
        self._catalog = self._not_started = catalog
        self._retired: set[Catalog] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def catalog(self) -> Catalog:
        """The models for a request that begins now. Raises Starting, Draining: there are no models yet. Where there are
        models and the server drains, the models refuse."""
        if self._catalog is None:
            if self.draining:
                raise Draining("The service is draining and takes no new requests", retry_after_s=5)
            raise Starting("The service is starting: its models are loading")
        return self._catalog

    def start(self) -> None:
        """Begin, in the running event loop, from which all requests come."""
        if self._not_started is not None:
            self._not_started.start()
            self._not_started = None
        begin(self._look_at_files(), self._tasks)

    async def replace(self, catalog: Catalog) -> "asyncio.Task[None]":
        """Serve with these models from now on. Return a task that ends when the last request that uses the former
        models is answered. Raises StartRefused: a model cannot do a forward pass; the former models stay."""
        catalog.start()
        former = self._catalog
        if former is not None:
            await proven(catalog)
        self._catalog = catalog
        if self.draining:
            catalog.drain()
        return begin(self._retire(former), self._tasks)

    def drain(self) -> None:
        """Take no new requests; accepted requests are still answered."""
        self.draining = True
        for catalog in self._all():
            catalog.drain()

    async def stop(self, timeout_s: float) -> None:
        """Answer the accepted requests, within `timeout_s`."""
        self.drain()
        for task in self._tasks:
            task.cancel()
        ends_at = time.monotonic() + timeout_s
        for catalog in list(self._all()):
            await asyncio.to_thread(catalog.stop, max(0.0, ends_at - time.monotonic()))

    def unready_reason(self) -> str | None:
        """Why this server should get no requests now; None if it should."""
        if self.draining:
            return "draining"
        if self._catalog is None or self.awaits_others:
            return "starting"
        return self._catalog.unready_reason()

    def states(self) -> list[ModelState]:
        """Return the state of each model, for the gauges."""
        return [] if self._catalog is None else self._catalog.states()

    def devices(self) -> dict[str, str | None]:
        """Return, for each GPU that the settings chose, why it takes no requests; None if it does."""
        return {} if self._catalog is None else self._catalog.devices()

    def _all(self) -> Iterator[Catalog]:
        yield from self._retired
        if self._catalog is not None:
            yield self._catalog

    async def _retire(self, catalog: Catalog | None) -> None:
        if catalog is not None:
            self._retired.add(catalog)
            while catalog.n_users:
                await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(catalog.stop, 0.0)
            self._retired.discard(catalog)
            gc.unfreeze()
        keep_objects()

    async def _look_at_files(self) -> None:
        while True:
            await asyncio.sleep(self._probe_interval_s)
            if self._catalog is not None:
                await asyncio.to_thread(self._catalog.look_at_files)


async def proven(catalog: Catalog) -> None:
    """Wait until each model has done a forward pass. Raises StartRefused: a model cannot, and all are stopped."""
    try:
        async with asyncio.timeout(PROVEN_S):
            while "starting" in (reason := catalog.unready_reason() or ""):
                await asyncio.sleep(LOOK_S)
        if reason:
            raise StartRefused(reason)
    except BaseException as error:
        await asyncio.to_thread(catalog.stop, 0.0)
        if isinstance(error, TimeoutError):
            raise StartRefused(f"Models did no forward pass within {PROVEN_S:.0f} s: {reason}") from None
        raise
