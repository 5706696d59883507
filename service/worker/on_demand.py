"""Models that a worker loads when there are requests for them, and unloads when others need the memory."""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from service.base.contract import model_of
from service.engine.engine import Engine
from service.engine.loop import Loop
from service.worker.budget import Budget

logger = logging.getLogger(__name__)

Engines = Mapping[str, Engine[Any]]
"""The engines of a model, by name."""
RETRY_S = 5.0
"""Seconds for which a model that could not be loaded refuses requests. The next request lets it be tried again."""
MEASURES_MEMORY = sys.platform == "linux"
"""Whether the system tells how much memory a process takes. Elsewhere the budget's estimates count."""
_LoadedModel = tuple[Engines, int]
"""The engines, and by how many bytes this process has grown while the model was loaded."""


class OnDemand:
    """Loads one model after the other in a thread, while the loop goes on with the loaded ones: ONNX Runtime lets other
    threads run Python while it loads.

    Args:
        number: the number of the worker.
        load: loads a model by name; what it raises is answered.
        trim: returns free memory to the system.
        note_loading: is called with the model that is being loaded, and with None afterwards.
    """

    def __init__(
        self,
        loop: Loop,
        number: int,
        budget: Budget,
        load: Callable[[str], Engines],
        trim: Callable[[], None],
        note_loading: Callable[[str | None], None],
    ) -> None:
        self._loop = loop
        self._number = number
        self._budget = budget
        self._load = load
        self._trim = trim
        self._note_loading = note_loading
        self._thread = ThreadPoolExecutor(1, "loading")
        self._loading: tuple[str, Future[_LoadedModel]] | None = None
        self._must_unload = False
        self._bytes_without_models = _bytes_of_this_process()

    @property
    def wakeup_fd(self) -> int:
        """A file descriptor that becomes readable when models are to be unloaded; `wake_up` must be called then."""
        return self._budget.wakeup_fd(self._number)

    def wake_up(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.wakeup_fd, 4096)
        self._must_unload = True

    def note_use(self, engine: str) -> None:
        """Record that there is a request for an engine."""
        self._budget.note_use(model_of(engine))

    def report_memory(self) -> None:
        """Tell other workers how much memory this one takes."""
        if self._loading is None:  # a model that is being loaded counts with its estimated size
            grown = _bytes_of_this_process() - self._bytes_without_models
            self._budget.set_growth(self._number, grown if MEASURES_MEMORY else None)

    def advance(self) -> bool:
        """Begin or end loading and unloading; called between two steps. Return whether a model has been loaded."""
        is_loaded = False
        if self._loading is not None:
            if not self._loading[1].done():
                return False  # nothing is unloaded now either: the growth of memory is being measured
            is_loaded = self._end_loading(*self._loading)
        if self._must_unload:
            self._must_unload = False
            for model in self._budget.models_to_unload(self._number):
                self._unload(model)
        awaited = self._loop.awaited_model
        if awaited is not None and self._budget.reserve(awaited):
            self._note_loading(awaited)
            self._loading = awaited, self._thread.submit(self._load_and_probe, awaited)
        return is_loaded

    def _load_and_probe(self, model: str) -> _LoadedModel:
        began, before = time.monotonic(), _bytes_of_this_process()
        engines = self._load(model)
        for engine in engines.values():
            engine.probe()
        grown = max(0, _bytes_of_this_process() - before)
        logger.info("%s: loaded in %.2f s, %.1f MB", model, time.monotonic() - began, grown / 1e6)
        return engines, grown

    def _end_loading(self, model: str, loading: "Future[_LoadedModel]") -> bool:
        """The loop gets the engines, or fails the requests for them. Return whether the model has been loaded."""
        self._note_loading(None)
        self._loading = None
        error = loading.exception()
        if error is not None:
            logger.error("%s cannot be loaded", model, exc_info=error)
            reason = f"it cannot be loaded ({type(error).__name__}); the log has the reason"
            self._loop.fail_loading(model, reason, RETRY_S)
            self._budget.end_loading(model, None)
        else:
            engines, n_bytes = loading.result()
            self._loop.add_engines(engines)
            self._budget.end_loading(model, n_bytes)
        self.report_memory()
        return error is None

    def _unload(self, model: str) -> None:
        if not self._loop.remove_engines(model):
            self._budget.keep(model)
            return
        self._trim()
        self._budget.end_unloading(model)
        self.report_memory()
        logger.info("%s: unloaded", model)


def _bytes_of_this_process() -> int:
    """Memory of mapped files does not count; 0 if the system does not tell."""
    if not MEASURES_MEMORY:
        return 0
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
