"""One thread that steps the engines of many models, and answers requests.

Every accepted request is answered exactly once, with a result or with a named error, even if a forward pass raises or
the thread dies. Engines share the loop's time, not its steps: a step of one model may take as long as a hundred of
another.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from service.base.contract import Answer, EngineState, Event, Queued
from service.base.errors import Broken, DeadlinePassed, Draining, InferenceFailed, QueueFull, RequestError, Starting
from service.engine.engine import Admitted, Engine, Failed, Finished, Outcome, Ran, Tell
from service.engine.scheduler import Sequence

logger = logging.getLogger(__name__)

RETRY_S = 1.0
"""How often an engine that has failed, and failed to prove itself, is tried again."""

Count = Callable[[str, Event], None]
"""Takes what an engine tells metrics."""


def model_of(engine: str) -> str:
    """Engines are named MODEL/KIND."""
    return engine.rpartition("/")[0]


@dataclass(eq=False)
class _Request:
    """A request that is accepted and not answered."""

    served: "_Served"
    sequences: list[Sequence[Any]]
    work: int
    n_unfinished: int
    deadline: float
    submitted_at: float
    future: Future[Answer[Any]] = field(default_factory=Future)
    admitted_at: float | None = None
    encode_s: float = 0.0


@dataclass(eq=False)
class _Served:
    """An engine, and how it does."""

    name: str
    engine: Engine[Any] | None
    """None while its model is not loaded."""
    tell: Tell[Any] = field(init=False)
    """Takes what happens in a step."""
    used_s: float = 0.0
    """The time that it has had, or what makes up for it where it had nothing to do."""
    succeeded_at: float | None = None
    failure: str | None = None
    """Of the last forward pass, where it was a probe. Readiness follows it: neither a live process nor a live thread is
    proof enough, nor does an input that fails speak against the model."""
    probe_at: float = -math.inf
    """Where there is no engine, a failure is forgotten then."""
    out: str | None = None
    """Why it is never stepped again, if so."""

    @property
    def has_work(self) -> bool:
        return self.engine is not None and self.engine.n_waiting + self.engine.n_running > 0


class Loop:
    """Engines by name, and one thread for all of them.

    Args:
        engines: None where the model is to be loaded later, when there are requests for it.
        count: takes what engines tell metrics.
        probe_interval_s: an engine that idles this long proves itself by a forward pass.
        enter: is called with the name of each engine before it computes, and with None afterwards.
        clock: monotonic seconds; deadlines are on this clock.
    """

    def __init__(
        self,
        engines: Mapping[str, Engine[Any] | None],
        count: Count,
        probe_interval_s: float,
        enter: Callable[[str | None], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.warm = threading.Event()
        """Set when the first forward pass of every engine has been tried."""
        self.load = 0
        """Work of the requests that are accepted and not answered."""
        self._served = {name: _Served(name, engine) for name, engine in engines.items()}
        for served in self._served.values():
            served.tell = partial(self._take_outcome, served)
        self._busy: list[_Served] = []
        """Those with something to do; kept, since they are asked for at every step."""
        self._probe_at = -math.inf
        """When the next probe may be due."""
        self._count = count
        self._probe_interval_s = probe_interval_s
        self._enter = enter
        self._thread = threading.Thread(target=self.run, args=(self._wait,), name="loop", daemon=True)
        # The lock guards what callers' threads touch too: the requests, those submitted, and load.
        self._wake = threading.Condition()
        self._requests: dict[_Request, None] = {}
        self._submitted: list[_Request] = []
        """Those that no engine knows yet."""
        self._absent: dict[_Request, None] = {}
        """Those that wait for their model to be loaded, the longest first."""
        self._refused: list[tuple[Future[Answer[Any]], RequestError]] = []
        """Answers of a failed step, which wait for the probe that tells whether the engine still works."""
        self._request_of: dict[Sequence[Any], _Request] = {}
        self._next_deadline = math.inf
        self._somebody_left = False
        self._draining = False
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether there are requests to work on."""
        return len(self._requests) > len(self._absent)

    @property
    def awaited(self) -> str | None:
        """The model that is not loaded and for which a request has waited longest."""
        return next((model_of(request.served.name) for request in self._absent), None)

    def start(self) -> None:
        """Run in a thread of its own."""
        self._thread.start()

    def run(self, listen: Callable[[float], None]) -> None:
        """Prove every engine by a forward pass, and work until drained.

        Args:
            listen: is called between two steps, and may submit and cancel. While there are no requests, it may wait for
                so many seconds.
        """
        ending = "the loop has stopped"
        try:
            for served in self._working():
                self._probe(served)
            self.warm.set()
            while not self._draining or self._requests:  # in this order: once it drains, none is added
                listen(max(0.0, self._probe_at - self.clock()))
                self._take_in()
                self._drop_abandoned()
                self._step()
        except BaseException as error:
            logger.critical("the loop's thread dies", exc_info=True)
            ending = f"the loop's thread died ({type(error).__name__})"
        finally:
            self._close(ending, Broken)

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> Future[Answer[Any]]:
        """Queue the sequences of one request in the engine of this name. Cancelling the future frees its rows within
        one step.

        Raises:
            Unavailable: starting, draining or broken. That the queue is full comes as the future's error.
        """
        served = self._served[name]
        work = sum([sequence.work for sequence in sequences])
        request = _Request(served, sequences, work, len(sequences), deadline, submitted_at=self.clock())
        with self._wake:
            self._refuse_if_unavailable(served)
            self._requests[request] = None
            self._submitted.append(request)
            self.load += work
            self._wake.notify()
        request.future.add_done_callback(self._notice_cancellation)
        return request.future

    # These are called between two steps.

    def take_out(self, model: str, reason: str) -> None:
        """Never again step the engines of a model."""
        for served in self._of(model):
            if served.out is None:
                served.out = reason
                if served in self._busy:
                    self._busy.remove(served)
                self._refuse_requests(served, reason, retry_after_s=30)

    def put_in(self, engines: Mapping[str, Engine[Any]]) -> None:
        """Take engines that have just been loaded and have proved themselves, and the requests that waited for them."""
        for name, engine in engines.items():
            self._served[name].engine = engine
            self._succeed(self._served[name])
        with self._wake:
            arrived = [request for request in self._absent if request.served.engine is not None]
            for request in arrived:
                del self._absent[request]
            self._submitted[:0] = arrived

    def take_away(self, model: str) -> bool:
        """Forget the engines of a model until they are put in again, if there are no requests for it."""
        with self._wake:
            if any(model_of(request.served.name) == model for request in self._requests):
                return False
        for served in self._of(model):
            served.engine, served.succeeded_at, served.failure = None, None, None
            if served in self._busy:  # it was still to free what had been cancelled
                self._busy.remove(served)
        return True

    def fail(self, model: str, failure: str, retry_s: float) -> None:
        """A model that was awaited cannot be loaded: answer its requests, and refuse others for so many seconds."""
        for served in self._of(model):
            served.failure, served.probe_at = failure, self.clock() + retry_s
            self._refuse_requests(served, failure, retry_after_s=math.ceil(retry_s))

    def states(self) -> dict[str, EngineState]:
        """How each engine does."""
        return {name: self._state(served) for name, served in self._served.items()}

    def state(self, name: str) -> EngineState | None:
        """How an engine does; None where it is not here."""
        return self._state(self._served[name]) if name in self._served else None

    def drain(self) -> None:
        """Take no new requests; it ends when those accepted are answered."""
        with self._wake:
            self._draining = True
            self._wake.notify()

    def stop(self, timeout_s: float) -> None:
        """Drain, and fail what is not answered after `timeout_s`."""
        self.drain()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._close("stopped before this request was answered", Draining)

    def _state(self, served: _Served) -> EngineState:
        engine, unready_reason = served.engine, self._unready_reason(served)
        if engine is None:
            n_waiting = sum(len(request.sequences) for request in self._absent if request.served is served)
            return EngineState(unready_reason, n_waiting, 0, 0)
        return EngineState(unready_reason, engine.n_waiting, engine.n_running, engine.slots)

    def _unready_reason(self, served: _Served) -> str | None:
        if served.out is not None:
            return served.out
        if self._draining:
            return "draining"
        if self._closed:
            return "the loop has ended"
        if served.engine is None:
            return served.failure if self.clock() < served.probe_at else None
        if served.failure is not None:
            return f"the last forward pass failed ({served.failure})"
        if served.succeeded_at is None:
            return "starting"
        age_s = self.clock() - served.succeeded_at
        return f"the last forward pass ended {age_s:.0f} s ago" if age_s > 3 * self._probe_interval_s else None

    def _refuse_if_unavailable(self, served: _Served) -> None:
        if self._draining:
            raise Draining(f"Model {served.name} is draining and takes no new requests", retry_after_s=5)
        if self._closed:
            raise Broken(f"Model {served.name} is broken: the loop has ended", retry_after_s=30)
        if served.out is not None or served.failure is not None:
            reason = self._unready_reason(served)
            if reason is not None:
                raise Broken(f"Model {served.name} is broken: {reason}", retry_after_s=5)
        if served.succeeded_at is None and served.engine is not None:
            raise Starting(f"Model {served.name} is starting")

    def _wait(self, timeout_s: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._requests or self._draining, timeout_s)

    def _take_in(self) -> None:
        """Hand the requests that have come to their engines."""
        if not self._submitted:
            return
        with self._wake:
            submitted, self._submitted = self._submitted, []
        for request in submitted:
            served = request.served
            if request not in self._requests:
                continue  # it was answered before it came so far: its model has been taken out
            self._next_deadline = min(self._next_deadline, request.deadline)
            if served.engine is None:
                with self._wake:
                    self._absent[request] = None
                continue
            try:
                served.engine.add(request.sequences)
            except QueueFull as refusal:
                self._leave(request, refusal)
                continue
            if served not in self._busy:  # what it did not use is no credit: others would have to wait for it
                served.used_s = max(served.used_s, min([other.used_s for other in self._busy], default=0.0))
                self._busy.append(served)
            self._request_of.update(dict.fromkeys(request.sequences, request))

    def _step(self) -> None:
        """A probe that is due, and then a step of the engine that has had least time of those with work."""
        if self._probe_at <= self.clock():
            self._probe_one()
        if not self._busy:
            return
        served = self._busy[0] if len(self._busy) == 1 else min(self._busy, key=attrgetter("used_s"))
        assert served.engine is not None
        began = self.clock()
        self._enter(served.name)
        try:
            served.engine.step(served.tell)
            if self._refused and not served.has_work:  # was the input to blame, or the model?
                self._probe(served)
        finally:
            for future, error in self._refused:
                future.set_exception(error)
            self._refused.clear()
        self._enter(None)
        served.used_s += self.clock() - began
        if not served.has_work:
            self._busy.remove(served)

    def _probe_one(self) -> None:
        """Probe the engine that has been idle for longest, if it is time."""
        idle = [served for served in self._working() if served not in self._busy]
        due = min(idle, key=lambda served: served.probe_at, default=None)
        if due is not None and due.probe_at <= self.clock() and not self._draining:
            self._probe(due)
        self._probe_at = min([served.probe_at for served in idle], default=self.clock() + self._probe_interval_s)

    def _working(self) -> list[_Served]:
        """Those that are loaded and not taken out."""
        return [served for served in self._served.values() if served.engine is not None and served.out is None]

    def _of(self, model: str) -> list[_Served]:
        return [served for served in self._served.values() if model_of(served.name) == model]

    def _refuse_requests(self, served: _Served, reason: str, retry_after_s: int) -> None:
        with self._wake:
            requests = [request for request in self._requests if request.served is served]
        for request in requests:
            self._leave(request, Broken(f"Model {served.name} is broken: {reason}", retry_after_s))

    def _probe(self, served: _Served) -> None:
        assert served.engine is not None
        self._enter(served.name)
        try:
            passed = served.engine.probe()
        except Exception as error:
            logger.exception("%s: the forward pass that proves readiness failed", served.name)
            served.failure = type(error).__name__
            served.probe_at = self.clock() + min(RETRY_S, self._probe_interval_s)
            self._probe_at = min(self._probe_at, served.probe_at)
        else:
            self._succeed(served)
            self._count(served.name, passed)
        finally:
            self._enter(None)

    def _succeed(self, served: _Served) -> None:
        served.succeeded_at, served.failure = self.clock(), None
        served.probe_at = served.succeeded_at + self._probe_interval_s

    def _take_outcome(self, served: _Served, outcome: Outcome[Any]) -> None:
        assert served.engine is not None
        match outcome:
            case Ran(passed, sequences):
                self._succeed(served)
                self._count(served.name, passed)
                if passed.phase == "encode":
                    for request in dict.fromkeys(self._requests_of(sequences)):
                        request.encode_s += passed.seconds
            case Admitted(sequences):
                self._note_admission(self._requests_of(sequences))
            case Finished(sequences):
                for request in self._requests_of(sequences):
                    request.n_unfinished -= 1
                    if request.n_unfinished == 0:
                        self._answer(request)
            case Failed(sequences, error):
                failure = f"A forward pass of {served.name} failed ({type(error).__name__}); the log has the reason"
                for request in dict.fromkeys(self._requests_of(sequences)):
                    if self._take(request):
                        self._refused.append((request.future, InferenceFailed(failure)))
                    served.engine.cancel(request.sequences)

    def _requests_of(self, sequences: list[Sequence[Any]]) -> list[_Request]:
        """Without those that are answered."""
        return [self._request_of[sequence] for sequence in sequences if sequence in self._request_of]

    def _note_admission(self, requests: Iterable[_Request]) -> None:
        now = self.clock()
        for request in requests:
            if request.admitted_at is None:
                request.admitted_at = now
                self._count(request.served.name, Queued(now - request.submitted_at))

    def _notice_cancellation(self, future: Future[Answer[Any]]) -> None:
        if future.cancelled():
            self._somebody_left = True

    def _drop_abandoned(self) -> None:
        now = self.clock()
        if not self._somebody_left and now < self._next_deadline:
            return
        with self._wake:
            self._somebody_left = False
            requests = list(self._requests)
            self._next_deadline = min((r.deadline for r in requests if r.deadline > now), default=math.inf)
        for request in requests:
            if request.future.cancelled():
                self._leave(request, None)
            elif now >= request.deadline:
                waited_s = now - request.submitted_at
                where = request.served.name
                self._leave(request, DeadlinePassed(f"The deadline passed after {waited_s:.1f} s in {where}"))

    def _answer(self, request: _Request) -> None:
        assert request.admitted_at is not None
        outputs = [sequence.output for sequence in request.sequences]
        queue_s = request.admitted_at - request.submitted_at
        decode_s = self.clock() - request.admitted_at - request.encode_s
        if self._take(request):
            request.future.set_result(Answer(outputs, queue_s, request.encode_s, decode_s))

    def _leave(self, request: _Request, error: RequestError | None) -> None:
        """Answer with an error, unless nobody waits for it, and free what the request holds."""
        if self._take(request) and error is not None:
            request.future.set_exception(error)
        if request.served.engine is not None:
            request.served.engine.cancel(request.sequences)

    def _take(self, request: _Request) -> bool:
        """True for the one caller that may answer this request; False if it is answered or its client has left."""
        with self._wake:
            for sequence in request.sequences:
                self._request_of.pop(sequence, None)
            if request not in self._requests:
                return False
            del self._requests[request]
            self._absent.pop(request, None)
            self.load -= request.work
        return request.future.set_running_or_notify_cancel()

    def _close(self, reason: str, kind: type[Broken] | type[Draining]) -> None:
        """No request is accepted or left unanswered after this."""
        with self._wake:
            self._closed = True
            requests = list(self._requests)
        for request in requests:
            if self._take(request):
                request.future.set_exception(kind(f"Model {request.served.name}: {reason}", retry_after_s=5))
