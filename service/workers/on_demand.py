"""Models that a loop loads when there are requests for them, and unloads when others need the memory."""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.engine.engine import Engine
from service.engine.loop import Loop, model_of
from service.workers.budget import Budget

logger = logging.getLogger(__name__)

Engines = Mapping[str, Engine[Any]]
"""Of a model, by name."""

RETRY_S = 5.0
"""A model that cannot be loaded refuses requests for so long; the next one lets it be tried again."""


MEASURES = sys.platform == "linux"
"""Whether the system tells how much memory a process takes. Elsewhere models take what they count as."""


@dataclass(frozen=True)
class _LoadedModel:
    engines: Engines
    n_bytes: int
    """By which this process has grown meanwhile."""


class OnDemand:
    """Loads one model after the other in a thread, while the loop goes on with those that are loaded: ONNX Runtime
    lets other threads run Python while it loads.

    Args:
        number: of the loop.
        load: a model, by name; what it raises is answered.
        trim: returns memory that is free to the system.
        note: is told which model is being loaded, and None afterwards.
    """

    def __init__(
        self,
        loop: Loop,
        number: int,
        budget: Budget,
        load: Callable[[str], Engines],
        trim: Callable[[], None],
        note: Callable[[str | None], None],
    ) -> None:
        self._loop = loop
        self._number = number
        self._budget = budget
        self._load = load
        self._trim = trim
        self._note = note
        self._thread = ThreadPoolExecutor(1, "loading")
        self._loading: tuple[str, Future[_LoadedModel]] | None = None
        self._is_rung = False
        self._bytes_without_models = _bytes_of_this_process()

    @property
    def bell(self) -> int:
        """A file descriptor that can be read when something is to be unloaded: call `hear` then."""
        return self._budget.bell(self._number)

    def hear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.bell, 4096)
        self._is_rung = True

    def use(self, engine: str) -> None:
        """There is a request for this engine."""
        self._budget.use(model_of(engine))

    def measure(self) -> None:
        """Tell others how much memory this loop takes."""
        if self._loading is None:  # which is counted as a whole
            grown = _bytes_of_this_process() - self._bytes_without_models
            self._budget.grow(self._number, grown if MEASURES else None)

    def look(self) -> None:
        """Begin or end what there is to load or to unload; called between two steps."""
        if self._loading is not None:
            if not self._loading[1].done():
                return  # nor is anything unloaded now: the growth of memory is measured
            self._end_loading(*self._loading)
        if self._is_rung:
            self._is_rung = False
            for model in self._budget.asked(self._number):
                self._unload(model)
        awaited = self._loop.awaited
        if awaited is not None and self._budget.reserve(awaited):
            self._note(awaited)
            self._loading = awaited, self._thread.submit(self._loaded, awaited)

    def _loaded(self, model: str) -> _LoadedModel:
        began, before = time.monotonic(), _bytes_of_this_process()
        engines = self._load(model)
        for engine in engines.values():
            engine.probe()
        grown = max(0, _bytes_of_this_process() - before)
        logger.info("%s: loaded in %.2f s, %.1f MB", model, time.monotonic() - began, grown / 1e6)
        return _LoadedModel(engines, grown)

    def _end_loading(self, model: str, loading: "Future[_LoadedModel]") -> None:
        self._note(None)
        self._loading = None
        error = loading.exception()
        if error is not None:
            logger.error("%s cannot be loaded", model, exc_info=error)
            self._loop.fail(model, f"it cannot be loaded ({type(error).__name__}); the log has the reason", RETRY_S)
            self._budget.end_loading(model, None)
        else:
            self._loop.put_in(loading.result().engines)
            self._budget.end_loading(model, loading.result().n_bytes)
        self.measure()

    def _unload(self, model: str) -> None:
        if not self._loop.take_away(model):
            self._budget.keep(model)
            return
        self._trim()
        self._budget.unload(model)
        self.measure()
        logger.info("%s: unloaded", model)


def _bytes_of_this_process() -> int:
    """Those that are not of files, which the system may forget; 0 where it does not tell."""
    if not MEASURES:
        return 0
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
