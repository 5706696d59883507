"""Models in this process: a loop that a thread drives, where the service has workers. Most tests need no more."""

import asyncio
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from service.base.backlog import NO_BACKLOG, Backlog
from service.base.contract import Answer, EngineState, is_in_background
from service.base.errors import Broken, Draining, Starting, WorkerEnded
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.loop import Loop
from service.engine.scheduler import Sequence
from service.front.assembly import catalog_of
from service.front.catalog import Catalog
from service.pool.loader import LoadedModels, configured_artifacts, read_tokenizer_files
from service.pool.sentence_cache import SentenceCache
from service.worker.artifact_source import ArtifactSource


@dataclass(eq=False)
class _Request:
    """A request that is not answered.

    Attributes:
        submit: submits it to the loop.
        inner: what the loop will answer, once it has the request.
    """

    engine: str
    submit: Callable[[], Future[Answer[Any]]]
    answer: Future[Answer[Any]] = field(default_factory=Future)
    inner: Future[Answer[Any]] | None = None


def load_in_process(settings: Settings, metrics: Metrics, cache: SentenceCache | None = None) -> Catalog:
    """Load the models that the settings name, as `load_catalog` does with workers. Raises StartRefused."""
    artifacts = configured_artifacts(settings)
    source = ArtifactSource(artifacts, settings).resolved()
    engines = {name: engine for model in artifacts for name, engine in source.load(model, alone=True).items()}
    worker = LoopThread(Loop(engines, metrics.count, settings.probe_interval_s))
    infos = {model: source.model_info(model) for model in artifacts}
    loaded = LoadedModels(artifacts, infos, {}, read_tokenizer_files(artifacts))
    return catalog_of(loaded, settings, metrics, cache=cache, workers=[worker])


class LoopThread:
    """A `Worker`: a thread that drives a loop. Requests come from any thread, and reach the loop between two steps.

    Attributes:
        warm: set when the first forward pass of every engine has been tried.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.device: str | None = None
        self.load = self.background_load = 0
        self.awaited_at = -math.inf
        self.warm = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        # The lock guards what follows, and the load.
        self._wake = threading.Condition()
        self._arrived: list[_Request] = []
        self._unanswered: dict[_Request, None] = {}
        self._is_stopping = self._has_ended = False

    def start(self) -> None:
        self._thread.start()

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> "asyncio.Future[Answer[Any]]":
        """Submit a request from an event loop."""
        return asyncio.wrap_future(self.request(name, sequences, deadline))

    def request(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> Future[Answer[Any]]:
        """Submit a request from any thread. Raises Unavailable."""
        state = self.state(name)
        if state is None or state.unready_reason == "starting":
            raise Starting(f"Model {name} is starting")
        if state.unready_reason is not None:
            raise Broken(f"Model {name} is broken: {state.unready_reason}", retry_after_s=5)
        request = _Request(name, partial(self.loop.submit, name, sequences, deadline))
        work = sum([sequence.work for sequence in sequences])
        with self._wake:
            self._unanswered[request] = None
            self._arrived.append(request)
            self._add_load(name, work)
            self._wake.notify()
        request.answer.add_done_callback(partial(self._forget, name, work))
        return request.answer

    def state(self, name: str) -> EngineState | None:
        return None if self._has_ended else self.loop.states().get(name)

    def backlog(self, name: str, is_whole: bool) -> Backlog:
        state = self.state(name)
        return NO_BACKLOG if state is None else state.whole_backlog if is_whole else state.backlog

    def stop(self, timeout_s: float) -> None:
        """Answer what was accepted, and fail what is not answered after `timeout_s`."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._fail_all(Draining, "stopped before this request was answered")

    def _run(self) -> None:
        try:
            self.loop.warm_up()
            self.warm.set()
            while not self._is_stopping or self._unanswered:
                self._listen(self.loop.pause_s)
                self.loop.advance()
        except BaseException:  # a process would end
            self._has_ended = True
            self._fail_all(WorkerEnded, "its worker has ended")

    def _listen(self, pause_s: float) -> None:
        with self._wake:
            if pause_s:
                self._wake.wait_for(lambda: self._arrived or self._is_stopping, min(pause_s, threading.TIMEOUT_MAX))
            arrived, self._arrived = self._arrived, []
            cancelled = [request for request in self._unanswered if request.answer.cancelled()]
            for request in cancelled:
                del self._unanswered[request]
        for request in cancelled:
            if request.inner is not None:
                request.inner.cancel()
        for request in arrived:
            if request in cancelled:
                continue
            try:
                request.inner = request.submit()
            except Exception as refusal:
                self._resolve(request, partial(request.answer.set_exception, refusal))
            else:
                request.inner.add_done_callback(partial(self._copy, request))

    def _copy(self, request: _Request, inner: Future[Answer[Any]]) -> None:
        if inner.cancelled():
            return
        if (error := inner.exception()) is not None:
            self._resolve(request, partial(request.answer.set_exception, error))
        else:
            self._resolve(request, partial(request.answer.set_result, inner.result()))

    def _resolve(self, request: _Request, resolve: Callable[[], None]) -> None:
        with self._wake:
            if request not in self._unanswered:
                return
            del self._unanswered[request]
        if request.answer.set_running_or_notify_cancel():
            resolve()

    def _forget(self, name: str, work: int, answer: Future[Answer[Any]]) -> None:
        with self._wake:
            self._add_load(name, -work)
            self._wake.notify()

    def _add_load(self, name: str, work: int) -> None:
        if is_in_background(name):
            self.background_load += work
        else:
            self.load += work
            self.awaited_at = self.loop.clock()

    def _fail_all(self, error: type[Draining] | type[Broken], reason: str) -> None:
        for request in list(self._unanswered):
            refusal = error(f"{request.engine} is broken: {reason}", retry_after_s=5)
            self._resolve(request, partial(request.answer.set_exception, refusal))
