"""The process that loads models, and from which loops are forked.

ONNX Runtime lays out weights for each session anew. Where one process loads and others are forked from it, they share
that memory, and one that dies is replaced within milliseconds. So this process has no threads and no event loop. What
cannot be forked, such as what uses CUDA or threads, is loaded by the loop itself after it is forked.
"""

import gc
import logging
import os
import pkgutil
import select
import shutil
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from service.base.errors import StartRefused
from service.engine.engine import Engine
from service.engine.loop import Loop
from service.workers.budget import Budget
from service.workers.children import how_ended, in_a_child, what_is_said
from service.workers.on_demand import Engines, OnDemand
from service.workers.source import Plan, Source
from service.workers.wire import messages_of, packed
from service.workers.worker_process import Board, serve

logger = logging.getLogger(__name__)

HUNG_S, LOADING_S = 60.0, 600.0
"""A loop that has not gone on for HUNG_S, or has not begun after LOADING_S, is taken for dead and replaced."""

LOOK_S = 1.0
"""How often loops are checked for that."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
"""Pauses before a loop that never served is replaced; each is twice the one before."""

FATAL_DEATHS, MEMORY_S = 2, 600.0
"""A model for which so many processes died while they computed for it, within so many seconds, is taken out."""

SLOW_S = 0.02
"""A model whose probe takes longer has a loop of its own: no pass may hold a loop that others share for longer."""


@dataclass
class _Place:
    """A loop, whichever process it is now."""

    number: int
    listener: socket.socket
    models: list[str]
    alone: bool = False
    """Whether it is for a single slow model, which it loads itself."""
    process_id: int = 0
    silent_s: float = 0.0
    pause_s: float = 0.0
    begin_at: float = 0.0


class _Loader:
    def __init__(self, plan: Plan, server: socket.socket) -> None:
        self._plan = plan
        self._server = server
        self._lifeline, self._life = os.pipe()
        self._woken, self._wake = socket.socketpair()
        self._loaded: dict[str, Engines] = {}
        self._budget: Budget | None = None
        self._places: list[_Place] = []
        self._deaths: dict[str, list[float]] = {}

    def run(self) -> None:
        """Load, fork, say so, and replace what dies until the server has gone."""
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        source = self._source = in_a_child(self._settled_source)
        models, slow = source.models, self._plan.slow or []
        self._abouts = {model: source.about(model) for model in models}
        if source.model_memory is not None:
            self._budget = self._budget_of(source.model_memory)
        elif source.forks:
            for model in models:
                if model not in slow:
                    self._loaded[model] = source.load(model, alone=False)
                    if self._is_slow(model) and self._plan.slow is None:
                        del self._loaded[model]
                        slow.append(model)
                        source.trim()  # or else all loops are forked with what it took
        shared = [model for model in models if model not in slow]
        for number in range(source.n_loops if shared else 0):
            # Under a budget nothing is loaded twice.
            here = shared if self._budget is None else self._budget.models(number)
            self._places.append(_Place(number, self._listener(number), here))
        for number, model in enumerate(slow, start=len(self._places)):
            self._places.append(_Place(number, self._listener(number), [model], alone=True))
        self._board = Board(len(self._places), models)
        gc.collect()
        gc.freeze()
        for pipe in [self._fork(place) for place in self._places]:
            what_is_said(pipe)
        self._server.sendall(packed(None, len(self._places), slow, self._abouts))
        incoming = select.poll()
        for watched in (self._server, self._woken):
            incoming.register(watched, select.POLLIN)
        looked_at = time.monotonic()
        while True:
            for file, _ in incoming.poll(1000 * LOOK_S if all(p.process_id for p in self._places) else 20):
                if file == self._server.fileno():
                    return
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
            self._bury()
            for place in self._places:
                if place.process_id == 0 and time.monotonic() >= place.begin_at:
                    self._replace(place)
            if time.monotonic() - looked_at >= LOOK_S:
                self._end_what_hangs()
                looked_at = time.monotonic()

    def end(self) -> None:
        """Kill all loops: their requests have been answered, or nobody is left to read answers."""
        signal.set_wakeup_fd(-1)
        for place in self._places:
            if place.process_id:
                with suppress(ProcessLookupError):
                    os.kill(place.process_id, signal.SIGKILL)

    def _settled_source(self) -> Source:
        source: Source = pkgutil.resolve_name(self._plan.source)(*self._plan.arguments)
        return source.settled()

    def _listener(self, number: int) -> socket.socket:
        """It stays open here while a loop is replaced, so that who connects meanwhile waits and is not refused."""
        path = self._plan.directory / f"{number}.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(64)
        return listener

    def _is_slow(self, model: str) -> bool:
        """The first probe allocates and lays out; the second one tells."""
        seconds = 0.0
        for engine in self._loaded[model].values():
            engine.probe()
            seconds = max(seconds, engine.probe().seconds)
        return seconds > SLOW_S

    def _replace(self, place: _Place) -> None:
        """Begin another process for a loop; later, where the system has no room for one now."""
        try:
            os.close(self._fork(place))
        except OSError as error:
            logger.critical("loop %d cannot be begun now: %s", place.number, error)
            self._put_off(place)

    def _fork(self, place: _Place) -> int:
        """Begin a process for a loop.

        Returns:
            A file descriptor from which can be read when the loop has loaded.

        Raises:
            OSError: the system has no room for it.
        """
        reading, writing = os.pipe()
        self._board.begin(place.number)
        if self._budget is not None:
            self._budget.begin(place.number)
        try:
            place.process_id = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if place.process_id:
            os.close(writing)
            return reading
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._life)
            os.close(reading)
            self._server.close()
            for other in self._places:
                if other is not place:  # who connects there must not wait for this loop
                    other.listener.close()
            self._be(place, writing)
        except BaseException:
            logger.critical("a loop dies", exc_info=True)
        finally:
            os._exit(1)

    def _be(self, place: _Place, writing: int) -> None:
        refusal: str | None = None
        engines: dict[str, Engine[Any] | None] = {}
        try:
            for model in place.models:
                engines |= self._loaded.get(model) or self._engines(model, place.alone)
        except StartRefused as error:
            logger.critical("loop %d cannot load: %s", place.number, error)
            refusal = str(error)
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:  # nobody reads what a replacement says
            pipe.write(packed(refusal, None))
        if refusal is not None:
            return
        gc.collect()
        gc.freeze()
        on_demand = partial(self._on_demand, place) if self._budget else None
        serve(
            engines, self._plan.probe_interval_s, place.number, self._board, place.listener, self._lifeline, on_demand
        )

    def _engines(self, model: str, alone: bool) -> Mapping[str, Engine[Any] | None]:
        """Of a model that is not loaded here: None each where it is loaded on demand."""
        if self._budget is not None:
            return dict.fromkeys(self._abouts[model].engines)
        engines = self._source.load(model, alone)
        self._source.trim()  # of the file's content, which was read whole
        return engines

    def _on_demand(self, place: _Place, loop: Loop) -> OnDemand:
        assert self._budget is not None
        load, note = partial(self._source.load, alone=False), partial(self._board.load, place.number)
        return OnDemand(loop, place.number, self._budget, load, self._source.trim, note)

    def _budget_of(self, n_bytes: int) -> Budget:
        """Raises StartRefused: a model needs more."""
        file_bytes = {model: about.file_bytes for model, about in self._abouts.items()}
        budget = Budget(n_bytes, self._source.n_loops, file_bytes)
        for model in self._abouts:
            if budget.size(model) > n_bytes:
                raise StartRefused(
                    f"Model {model} needs about {budget.size(model) / 1e6:.0f} MB; "
                    f"ATTEND_MODEL_MEMORY is {n_bytes / 1e6:.0f} MB"
                )
        return budget

    def _bury(self) -> None:
        """Note which loops have died, and of what."""
        for place in self._places:
            if place.process_id == 0:
                continue
            ended, status = os.waitpid(place.process_id, os.WNOHANG)
            if ended == 0:
                continue
            now, how = time.monotonic(), how_ended(status)
            model = self._board.working_for(place.number)
            worked = f" while it worked for {model}" if model else ""
            logger.critical("loop %d has died of %s%s", place.number, how, worked)
            with suppress(OSError):
                self._server.sendall(packed(how))
            if model is not None:
                recent = [at for at in self._deaths.get(model, []) if now - at < MEMORY_S]
                self._deaths[model] = [*recent, now]
                if len(self._deaths[model]) >= FATAL_DEATHS:
                    logger.critical("%s is taken out", model)
                    self._board.take_out(model)
            place.process_id = 0
            if self._board.has_served(place.number) or model is not None:
                place.pause_s, place.begin_at = 0.0, now
            else:
                self._put_off(place)

    def _put_off(self, place: _Place) -> None:
        """Begin a loop later: after a pause that is longer each time."""
        place.pause_s = min(max(FIRST_PAUSE_S, 2 * place.pause_s), LONGEST_PAUSE_S)
        place.begin_at = time.monotonic() + place.pause_s

    def _end_what_hangs(self) -> None:
        """Silence is counted in looks, not by the clock: a loop is not to blame when the whole service was paused."""
        for place in self._places:
            beat = self._board.last_beat(place.number)
            is_silent = place.process_id != 0 and (beat == 0 or time.monotonic() - beat > 2 * LOOK_S)
            place.silent_s = place.silent_s + LOOK_S if is_silent else 0.0
            if place.silent_s >= (HUNG_S if beat else LOADING_S):
                logger.critical("loop %d hangs and is killed", place.number)
                os.kill(place.process_id, signal.SIGKILL)
                place.silent_s = 0.0


def main(server_file: int) -> None:
    """Load, and fork, as the server says that began this process.

    Args:
        server_file: the file descriptor of a socket to it.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # the whole group gets them; the server says when to stop
        signal.signal(signal_number, signal.SIG_IGN)
    server = socket.socket(fileno=server_file)
    message = next(messages_of(server), None)
    if message is None:
        return
    plan: Plan = message[0]
    plan.log.configure()
    loader = _Loader(plan, server)
    try:
        loader.run()
        shutil.rmtree(plan.directory, ignore_errors=True)  # the server may have been killed
    except Exception as error:
        refusal = f"{error}" if isinstance(error, StartRefused) else f"{type(error).__name__}: {error}"
        try:
            server.sendall(packed(refusal, 0, [], {}))
        except OSError:
            shutil.rmtree(plan.directory, ignore_errors=True)  # the server was killed while this one loaded
    finally:
        loader.end()
