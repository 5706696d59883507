"""The process that loads models, and from which workers are forked.

ONNX Runtime lays out weights for each session anew. Workers that are forked from the process that loaded the models
share that memory, and a worker that dies is replaced within milliseconds. So this process has no threads and no event
loop. Models that cannot be forked, such as those that use CUDA or threads, are loaded by each worker after the fork.
"""

import logging
import os
import pkgutil
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from service.base.errors import StartRefused
from service.base.garbage import keep_objects
from service.engine.engine import Engine
from service.engine.loop import Loop
from service.passes.plan import HUNG_S, LOADING_S, Plan
from service.passes.wire import Unpacker, messages_of, packed
from service.worker.budget import Budget
from service.worker.on_demand import Engines, OnDemand
from service.worker.source import Source
from service.worker.worker_process import SharedStatus, serve

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

CHECK_INTERVAL_S = 1.0
"""How often workers are checked for that."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.5, 60.0
"""Pauses before a worker that never gave an answer is replaced; each is twice as long as the one before."""
DEATHS_TO_DISABLE, DEATH_WINDOW_S = 2, 600.0
"""A model for which this many processes died while they computed for it, within this time, is disabled."""
NICENESS = 5
"""Workers run at a lower priority, because a server that has to wait for a core sends its refusals too late, and it
needs little. Workers also give way to other programs of the machine, so the priority is no lower than servers need."""
SLOW_S = 0.02
"""A model whose probe takes longer has a worker of its own: no pass may hold up a shared worker for longer."""


@dataclass
class _Worker:
    """A worker, whichever process runs it now; it has none while `process_id` is 0."""

    number: int
    listener: socket.socket
    models: list[str]
    alone: bool = False
    """Whether it runs a single slow model, which it loads itself."""
    process_id: int = 0
    silent_s: float = 0.0
    pause_s: float = 0.0
    restart_at: float = 0.0


class _LoaderProcess:
    def __init__(self, plan: Plan, server: socket.socket) -> None:
        self._plan = plan
        self._server = server
        self._lifeline, self._life = os.pipe()
        self._woken, self._wake = socket.socketpair()
        self._loaded: dict[str, Engines] = {}
        self._budget: Budget | None = None
        self._workers: list[_Worker] = []
        self._on_device = f" on device {plan.device}" if plan.device else ""
        self._deaths: dict[str, list[float]] = {}
        """When processes died that computed for a model."""

    def run(self) -> None:
        """Load models, fork workers, report to the server, and replace workers that die until the server has ended."""
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        plan = self._plan
        self._source: Source = _run_in_child(lambda: pkgutil.resolve_name(plan.source)(*plan.arguments).resolved())
        slow = self._load_models()
        self._add_workers(slow)
        self._status = SharedStatus(len(self._workers), self._source.models)
        keep_objects()
        for pipe in [self._fork(worker) for worker in self._workers]:
            _read_result(pipe)
        self._server.sendall(packed(None, len(self._workers), slow, self._model_infos))
        self._supervise()

    def end(self) -> None:
        """Kill all workers: their requests have been answered, or nobody is left to read answers."""
        signal.set_wakeup_fd(-1)
        for worker in self._workers:
            if worker.process_id:
                with suppress(ProcessLookupError):
                    os.kill(worker.process_id, signal.SIGKILL)

    def _load_models(self) -> list[str]:
        """Return the slow models, which the workers do not share."""
        source, slow = self._source, self._plan.slow or []
        self._model_infos = {model: source.model_info(model) for model in source.models}
        if source.model_memory is not None:
            self._budget = self._budget_of(source.model_memory)
        elif source.forks:
            for model in source.models:
                if model not in slow:
                    self._loaded[model] = source.load(model, alone=False)
                    if self._is_slow(model) and self._plan.slow is None:
                        del self._loaded[model]
                        slow.append(model)
                        source.trim()  # or all workers would be forked with the memory that it took
        return slow

    def _add_workers(self, slow: list[str]) -> None:
        shared = [model for model in self._source.models if model not in slow]
        for number in range(self._source.n_workers if shared else 0):
            # Under a budget each model belongs to one worker.
            models = shared if self._budget is None else self._budget.models(number)
            self._workers.append(_Worker(number, self._listener(number), models))
        for number, model in enumerate(slow, start=len(self._workers)):
            self._workers.append(_Worker(number, self._listener(number), [model], alone=True))

    def _supervise(self) -> None:
        """Replace workers that die or hang, until the server has ended."""
        poll = select.poll()
        for watched in (self._server, self._woken):
            poll.register(watched, select.POLLIN)
        checked_at = time.monotonic()
        while True:
            all_run = all(worker.process_id for worker in self._workers)
            for file, _ in poll.poll(1000 * CHECK_INTERVAL_S if all_run else 20):
                if file == self._server.fileno():
                    return
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
            self._reap()
            for worker in self._workers:
                if worker.process_id == 0 and time.monotonic() >= worker.restart_at:
                    self._restart(worker)
            if time.monotonic() - checked_at >= CHECK_INTERVAL_S:
                self._kill_hung()
                checked_at = time.monotonic()

    def _listener(self, number: int) -> socket.socket:
        """The socket stays open in this process, so that servers which connect while the worker is replaced wait and
        are not refused."""
        path = self._plan.directory / f"{number}.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(64)
        return listener

    def _is_slow(self, model: str) -> bool:
        """The first probe of an engine allocates memory. Of the next two the faster counts: others may use the core."""
        seconds = 0.0
        for engine in self._loaded[model].values():
            engine.probe()
            seconds = max(seconds, min(engine.probe().seconds for _ in range(2)))
        return seconds > SLOW_S

    def _restart(self, worker: _Worker) -> None:
        """If the system has no room for another process now, the worker starts later."""
        try:
            os.close(self._fork(worker))
        except OSError as error:
            logger.critical("worker %d cannot be started now: %s", worker.number, error)
            self._delay_restart(worker)

    def _fork(self, worker: _Worker) -> int:
        """Return a file descriptor from which the result can be read when the worker has loaded its models. Raises
        OSError: the system has no room for another process."""
        reading, writing = os.pipe()
        self._status.reset(worker.number)
        if self._budget is not None:
            self._budget.reset(worker.number)
        try:
            worker.process_id = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if worker.process_id:
            os.close(writing)
            return reading
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._life)
            os.close(reading)
            self._server.close()
            for other in self._workers:
                if other is not worker:  # servers that connect there must not wait for this worker
                    other.listener.close()
            self._run_worker(worker, writing)
        except BaseException:
            logger.critical("a worker dies", exc_info=True)
        finally:
            os._exit(1)

    def _run_worker(self, worker: _Worker, writing: int) -> None:
        """Load the worker's models in this process, write into the pipe whether that succeeded, and serve."""
        refusal: str | None = None
        engines: dict[str, Engine[Any] | None] = {}
        try:
            for model in worker.models:
                engines |= self._loaded.get(model) or self._engines(model, worker.alone)
        except StartRefused as error:
            logger.critical("worker %d cannot load: %s", worker.number, error)
            refusal = str(error)
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:  # for a replacement nobody reads it
            pipe.write(packed(refusal, None))
        if refusal is not None:
            return
        keep_objects()
        os.nice(NICENESS)
        on_demand = partial(self._on_demand, worker) if self._budget else None
        serve(
            engines,
            self._plan.probe_interval_s,
            worker.number,
            self._status,
            worker.listener,
            self._lifeline,
            on_demand,
        )

    def _engines(self, model: str, alone: bool) -> Mapping[str, Engine[Any] | None]:
        """None stands for each engine of a model that is loaded on demand."""
        if self._budget is not None:
            return dict.fromkeys(self._model_infos[model].engines)
        engines = self._source.load(model, alone)
        self._source.trim()  # the content of the files, which were read whole
        return engines

    def _on_demand(self, worker: _Worker, loop: Loop) -> OnDemand:
        assert self._budget is not None
        load, note_loading = partial(self._source.load, alone=False), partial(self._status.set_loading, worker.number)
        return OnDemand(loop, worker.number, self._budget, load, self._source.trim, note_loading)

    def _budget_of(self, n_bytes: int) -> Budget:
        """Raises StartRefused: a model alone needs more."""
        file_bytes = {model: info.file_bytes for model, info in self._model_infos.items()}
        budget = Budget(n_bytes, self._source.n_workers, file_bytes)
        for model in self._model_infos:
            if budget.size(model) > n_bytes:
                raise StartRefused(
                    f"Model {model} needs about {budget.size(model) / 1e6:.0f} MB; "
                    f"ATTEND_MODEL_MEMORY is {n_bytes / 1e6:.0f} MB"
                )
        return budget

    def _reap(self) -> None:
        """Find the workers that have died, and for which model they computed."""
        for worker in self._workers:
            if worker.process_id == 0:
                continue
            ended, wait_status = os.waitpid(worker.process_id, os.WNOHANG)
            if ended == 0:
                continue
            now, cause = time.monotonic(), _exit_cause(wait_status)
            model = self._status.current_model(worker.number)
            at_work = f" while it worked for {model}" if model else ""
            logger.critical("worker %d%s has died of %s%s", worker.number, self._on_device, cause, at_work)
            with suppress(OSError):
                self._server.sendall(packed(cause))
            if model is not None:
                recent = [at for at in self._deaths.get(model, []) if now - at < DEATH_WINDOW_S]
                self._deaths[model] = [*recent, now]
                if len(self._deaths[model]) >= DEATHS_TO_DISABLE:
                    logger.critical("%s is disabled%s", model, self._on_device)
                    self._status.disable(model)
            worker.process_id = 0
            if self._status.has_answered(worker.number) or model is not None:
                worker.pause_s, worker.restart_at = 0.0, now
            else:
                self._delay_restart(worker)

    def _delay_restart(self, worker: _Worker) -> None:
        """Each pause is twice as long as the one before."""
        worker.pause_s = min(max(MIN_PAUSE_S, 2 * worker.pause_s), MAX_PAUSE_S)
        worker.restart_at = time.monotonic() + worker.pause_s

    def _kill_hung(self) -> None:
        """Silence is counted in checks, not by the clock: a worker is not to blame if the whole service was paused."""
        for worker in self._workers:
            heartbeat = self._status.last_heartbeat(worker.number)
            is_late = heartbeat == 0 or time.monotonic() - heartbeat > 2 * CHECK_INTERVAL_S
            is_silent = worker.process_id != 0 and is_late
            worker.silent_s = worker.silent_s + CHECK_INTERVAL_S if is_silent else 0.0
            if worker.silent_s >= (HUNG_S if heartbeat else LOADING_S):
                logger.critical("worker %d hangs and is killed", worker.number)
                os.kill(worker.process_id, signal.SIGKILL)
                worker.silent_s = 0.0


def main(server_file: int) -> None:
    """Load models and fork workers, as planned by the server that started this process. `server_file` is the file
    descriptor of a socket to that server."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # the whole group gets them; the server says when to stop
        signal.signal(signal_number, signal.SIG_IGN)
    server = socket.socket(fileno=server_file)
    message = next(messages_of(server), None)
    if message is None:
        return
    plan: Plan = message[0]
    plan.log.configure()
    loader = _LoaderProcess(plan, server)
    try:
        loader.run()
        shutil.rmtree(plan.directory, ignore_errors=True)  # the server may have been killed
    except Exception as error:
        refusal = f"{error}" if isinstance(error, StartRefused) else f"{type(error).__name__}: {error}"
        try:
            server.sendall(packed(refusal, 0, [], {}))
        except OSError:
            shutil.rmtree(plan.directory, ignore_errors=True)  # the server was killed while models were loaded
    finally:
        loader.end()


def _exit_cause(wait_status: int) -> str:
    """Return the signal that ended a process, such as SIGKILL if memory is short, or "exit 1"."""
    code = os.waitstatus_to_exitcode(wait_status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _run_in_child(call: Callable[[], Result]) -> Result:
    """Raises StartRefused: the function raised this, or the process died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            try:
                message = packed(None, call())
            except StartRefused as refusal:
                message = packed(str(refusal), None)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(message)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        result: Result = _read_result(reading)
    finally:
        os.waitpid(child, 0)
    return result


def _read_result(file: int) -> Any:
    """Raises StartRefused: the process wrote a refusal, or nothing."""
    with os.fdopen(file, "rb") as pipe:
        messages = list(Unpacker().feed(pipe.read()))
    if not messages:
        raise StartRefused("A process ended while it was loading models")
    [(refusal, result)] = messages
    if refusal is not None:
        raise StartRefused(refusal)
    return result
