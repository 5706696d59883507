"""The loop of a worker: it steps the engines of many models, and answers requests.

Every accepted request is answered exactly once, with a result or with a named error, even if a forward pass raises.
Engines share the loop's time, not its steps: a step of one model may take as long as a hundred steps of another. A loop
has no thread and no lock. The main function of a worker drives it.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from service.base.backlog import Backlog
from service.base.contract import Answer, EngineState, Event, QueueWait, is_in_background, model_of
from service.base.errors import Broken, DeadlinePassed, InferenceFailed, QueueFull, RequestError, Starting
from service.engine.engine import Engine, Failed, Finished, OnOutcome, Outcome, Ran
from service.engine.rate import Rate
from service.engine.scheduler import Scheduler, Sequence

logger = logging.getLogger(__name__)

BACKGROUND_COST = 8
"""A background step is charged eight times its duration, so background engines get one ninth of the time when there is
other work."""
RETRY_S = 1.0
"""Seconds after a failed probe until an engine is probed again, and after the last step until idle ones are."""
_IN_TURN = attrgetter("virtual_s", "is_background")

RecordEvent = Callable[[str, Event], None]
"""Takes the name of an engine and an event that is counted in the metrics."""


@dataclass(eq=False)
class _AcceptedRequest:
    """A request that is accepted and not answered."""

    served: "_ServedEngine"
    sequences: list[Sequence[Any]]
    work: int
    n_unfinished: int
    deadline: float
    submitted_at: float
    future: Future[Answer[Any]] = field(default_factory=Future)
    admitted_at: float | None = None
    encode_s: float = 0.0
    unfinished_work: int = 0
    """Work of the sequences that its engine has and that are not finished."""


@dataclass(eq=False)
class _ServedEngine:
    name: str
    engine: Engine[Any] | None
    """None while the model is not loaded."""
    model: str = field(init=False)
    is_background: bool = field(init=False)
    on_outcome: OnOutcome[Any] = field(init=False)
    virtual_s: float = 0.0
    """Virtual run time, for fair scheduling."""
    succeeded_at: float | None = None
    failure: str | None = None
    """The error of the last forward pass, if that was a probe. Readiness follows it: a live process or thread proves
    too little, and an input that fails says nothing about the model."""
    probe_at: float = -math.inf
    """When the next probe is due; if there is no engine, when a failure is forgotten."""
    disabled_reason: str | None = None
    """Why the engine is never stepped again; None if it is in use."""
    rate: Rate = field(default_factory=Rate)
    unfinished_work: int = 0
    """Unfinished work of all its requests."""

    def __post_init__(self) -> None:
        self.model, self.is_background = model_of(self.name), is_in_background(self.name)

    def backlog(self, n_before: int) -> Backlog:
        """Return the backlog ahead of a sequence that has `n_before` waiting sequences in front."""
        assert self.engine is not None
        n_running, n_waiting = self.engine.n_running, len(self.engine.scheduler.waiting)
        share = (n_running + n_before) / max(1, n_running + n_waiting)
        return Backlog(n_before, share * self.unfinished_work, self.rate.work_per_s)


class Loop:
    """Engines by name. Whoever drives the loop calls `warm_up` once, and then `advance` again and again. Between two
    calls it may submit and cancel requests, and may wait for `pause_s`.

    Args:
        engines: the engines; None for those of models that are loaded later, when there are requests for them.
        record_event: takes the events that are counted in the metrics.
        probe_interval_s: an engine that has been idle this long is probed by a forward pass.
        on_compute: is called with the name of a model before its engines compute, and with None before a pause.
        clock: returns monotonic seconds; deadlines are on this clock.
    """

    def __init__(
        self,
        engines: Mapping[str, Engine[Any] | None],
        record_event: RecordEvent,
        probe_interval_s: float,
        on_compute: Callable[[str | None], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._served = {name: _ServedEngine(name, engine) for name, engine in engines.items()}
        for served in self._served.values():
            served.on_outcome = partial(self._handle_outcome, served)
        self._busy: list[_ServedEngine] = []
        """Engines with work; kept up to date, since every step needs them."""
        self._virtual_s = 0.0
        """Greatest virtual run time at which an engine ran out of work. After a pause all engines begin from it."""
        self._probe_at = -math.inf
        """When the next probe may be due."""
        self._stepped_at = -math.inf
        """When the last step ended."""
        self._record_event = record_event
        self._probe_interval_s = probe_interval_s
        self._on_compute = on_compute
        self._computing: str | None = None
        self._succeeded_at = -math.inf
        """When a forward pass of any engine succeeded last."""
        self._requests: dict[_AcceptedRequest, None] = {}
        self._awaiting_load: dict[_AcceptedRequest, None] = {}
        """Requests whose model is not loaded, the oldest first."""
        self._failing: list[tuple[Future[Answer[Any]], RequestError]] = []
        """Errors of a failed step. They are sent after the probe that shows whether the engine still works."""
        self._request_of: dict[Sequence[Any], _AcceptedRequest] = {}
        self._next_deadline = math.inf
        self._has_cancelled = False
        """Whether a request was cancelled since the loop last checked."""

    @property
    def awaited_model(self) -> str | None:
        """The unloaded model for which a request has waited longest."""
        return next((request.served.model for request in self._awaiting_load), None)

    @property
    def pause_s(self) -> float:
        """Seconds until there is something to do; 0 while there are requests for loaded models."""
        if len(self._requests) > len(self._awaiting_load):
            return 0.0
        return max(0.0, self._probe_at - self.clock())

    def warm_up(self) -> None:
        """Probe every engine by a forward pass."""
        for served in self._enabled():
            self._probe(served)
        self._compute_for(None)

    def advance(self) -> None:
        """Drop requests that are cancelled or late, probe an engine if that is due, and run a step of a busy one."""
        now = self.clock()
        if self._has_cancelled or now >= self._next_deadline:
            self._drop_abandoned(now)
        if now >= self._probe_at:
            self._probe_one()
        if self._busy:
            self._step()
        if len(self._requests) == len(self._awaiting_load):
            self._compute_for(None)

    def submit(self, name: str, sequences: list[Sequence[Any]], deadline: float) -> Future[Answer[Any]]:
        """Queue the sequences of one request in the engine of this name. Cancelling the future frees the rows of the
        request before the next step. Raises Unavailable: the engine is starting or broken. The future raises if a queue
        is full."""
        served = self._served[name]
        self._refuse_if_unavailable(served)
        work = sum([sequence.work for sequence in sequences])
        request = _AcceptedRequest(served, sequences, work, len(sequences), deadline, submitted_at=self.clock())
        self._requests[request] = None
        request.future.add_done_callback(self._notice_cancellation)
        self._queue(request)
        return request.future

    def disable(self, model: str, reason: str) -> None:
        """Never step the engines of a model again."""
        for served in self._engines_of(model):
            if served.disabled_reason is None:
                served.disabled_reason = reason
                if served in self._busy:
                    self._busy.remove(served)
                self._refuse_requests(served, reason, retry_after_s=30)

    def add_engines(self, engines: Mapping[str, Engine[Any]]) -> None:
        """Take engines that have just been loaded and probed, and queue the requests that waited for them."""
        for name, engine in engines.items():
            self._served[name].engine = engine
            self._note_success(self._served[name])
        for request in [request for request in self._awaiting_load if request.served.engine is not None]:
            del self._awaiting_load[request]
            self._queue(request)

    def remove_engines(self, model: str) -> bool:
        """Forget the engines of a model until they are added again. Return False if there are requests for them."""
        if any(request.served.model == model for request in self._requests):
            return False
        for served in self._engines_of(model):
            served.engine, served.succeeded_at, served.failure = None, None, None
            if served in self._busy:  # cancelled sequences were still to be released
                self._busy.remove(served)
        return True

    def fail_loading(self, model: str, failure: str, retry_s: float) -> None:
        """Answer the requests for a model that cannot be loaded with an error, and refuse others for `retry_s`."""
        for served in self._engines_of(model):
            served.failure, served.probe_at = failure, self.clock() + retry_s
            self._refuse_requests(served, failure, retry_after_s=math.ceil(retry_s))

    def is_full(self, name: str) -> bool:
        """Whether sequences wait for a place in an engine."""
        engine = self._served[name].engine
        return engine is not None and engine.is_full

    def states(self) -> dict[str, EngineState]:
        """Return the state of each engine by name."""
        return {name: self._state(served) for name, served in self._served.items()}

    def _state(self, served: _ServedEngine) -> EngineState:
        engine, unready_reason = served.engine, self._unready_reason(served)
        if engine is None:
            n_waiting = sum(len(request.sequences) for request in self._awaiting_load if request.served is served)
            return EngineState(unready_reason, n_waiting, n_running=0, max_rows=0)
        scheduler = engine.scheduler
        n_waiting = len(scheduler.waiting)
        backlogs = served.backlog(scheduler.n_before()), served.backlog(n_waiting)
        return EngineState(
            unready_reason, n_waiting, engine.n_running, scheduler.max_rows, *backlogs, proved_at=served.succeeded_at
        )

    def _unready_reason(self, served: _ServedEngine) -> str | None:
        if served.disabled_reason is not None:
            return served.disabled_reason
        if served.engine is None:
            return served.failure if self.clock() < served.probe_at else None
        if served.failure is not None:
            return f"the last forward pass failed ({served.failure})"
        if served.succeeded_at is None:
            return "starting"
        age_s = self.clock() - self._succeeded_at
        return f"the last forward pass ended {age_s:.0f} s ago" if age_s > 3 * self._probe_interval_s else None

    def _refuse_if_unavailable(self, served: _ServedEngine) -> None:
        if served.disabled_reason is not None or served.failure is not None:
            reason = self._unready_reason(served)
            if reason is not None:
                raise Broken(f"Model {served.name} is broken: {reason}", retry_after_s=5)
        if served.succeeded_at is None and served.engine is not None:
            raise Starting(f"Model {served.name} is starting")

    def _queue(self, request: _AcceptedRequest) -> None:
        """A request waits if its engine is not loaded."""
        served = request.served
        self._next_deadline = min(self._next_deadline, request.deadline)
        if served.engine is None:
            self._awaiting_load[request] = None
            return
        try:
            self._add(request, served.engine.scheduler)
        except QueueFull as refusal:
            refusal.state = self._state(served)
            self._leave(request, refusal)
            return
        if served not in self._busy:  # idle time earns no credit, or others would have to wait
            least_s = min([other.virtual_s for other in self._busy], default=self._virtual_s)
            served.virtual_s = max(served.virtual_s, least_s)
            self._busy.append(served)
        self._request_of.update(dict.fromkeys(request.sequences, request))

    def _add(self, request: _AcceptedRequest, scheduler: Scheduler[Any]) -> None:
        """Queue a request. Raises QueueFull: too much is before it, for the queue or for its deadline."""
        served = request.served

        def backlog_of(n_before: int) -> Backlog:
            backlog = served.backlog(n_before)
            backlog.refuse_late(request.deadline - self.clock(), request.work)
            return backlog

        scheduler.add(request.sequences, backlog_of)
        request.unfinished_work = request.work
        served.unfinished_work += request.work

    def _step(self) -> None:
        """The busy engine that has had least time runs."""
        served = self._busy[0] if len(self._busy) == 1 else min(self._busy, key=_IN_TURN)
        assert served.engine is not None
        self._compute_for(served.model)
        began = self.clock()
        try:
            has_work = served.engine.step(served.on_outcome)
            if self._failing and not has_work:  # was the input to blame, or the model?
                self._probe(served)
        finally:
            for future, error in self._failing:
                future.set_exception(error)
            self._failing.clear()
        now = self._stepped_at = self.clock()
        if not served.engine.scheduler.waiting:
            served.rate.pause(now)
        served.virtual_s += (now - began) * (BACKGROUND_COST if served.is_background else 1)
        if not has_work:
            self._busy.remove(served)
            self._virtual_s = max(self._virtual_s, served.virtual_s)

    def _probe_one(self) -> None:
        """Probe the engine that has been idle longest, if its probe is due.

        While other engines have requests, or had some a moment ago, only broken ones are probed: each pass that
        succeeds proves the process too, and the next request would wait for the probe.
        """
        retry_s = min(RETRY_S, self._probe_interval_s)
        is_in_use = bool(self._busy) or self.clock() < self._stepped_at + retry_s
        idle = [served for served in self._enabled() if served not in self._busy]
        candidates = [served for served in idle if served.failure is not None] if is_in_use else idle
        due = min(candidates, key=lambda served: served.probe_at, default=None)
        if due is not None and due.probe_at <= self.clock():
            self._probe(due)
        self._probe_at = min([served.probe_at for served in candidates], default=self.clock() + retry_s)

    def _enabled(self) -> list[_ServedEngine]:
        return [
            served for served in self._served.values() if served.engine is not None and served.disabled_reason is None
        ]

    def _engines_of(self, model: str) -> list[_ServedEngine]:
        return [served for served in self._served.values() if served.model == model]

    def _refuse_requests(self, served: _ServedEngine, reason: str, retry_after_s: int) -> None:
        for request in [request for request in self._requests if request.served is served]:
            self._leave(request, Broken(f"Model {served.name} is broken: {reason}", retry_after_s))

    def _probe(self, served: _ServedEngine) -> None:
        assert served.engine is not None
        self._compute_for(served.model)
        try:
            forward_pass = served.engine.probe()
        except Exception as error:
            logger.exception("%s: the probe failed", served.name)
            served.failure = type(error).__name__
            served.probe_at = self.clock() + min(RETRY_S, self._probe_interval_s)
            self._probe_at = min(self._probe_at, served.probe_at)
        else:
            self._note_success(served)
            self._record_event(served.name, forward_pass)

    def _compute_for(self, model: str | None) -> None:
        if model != self._computing:
            self._computing = model
            self._on_compute(model)

    def _note_success(self, served: _ServedEngine) -> None:
        self._succeeded_at = served.succeeded_at = self.clock()
        served.failure, served.probe_at = None, served.succeeded_at + self._probe_interval_s

    def _handle_outcome(self, served: _ServedEngine, outcome: Outcome[Any]) -> None:
        if isinstance(outcome, Ran):
            forward_pass, sequences = outcome
            self._note_success(served)
            self._record_event(served.name, forward_pass)
            if forward_pass.phase == "encode":
                for request in {self._request_of[s] for s in sequences if s in self._request_of}:
                    request.encode_s += forward_pass.seconds
            return
        if isinstance(outcome, Finished):
            assert served.engine is not None
            served.rate.finished(outcome.sequences, served.engine.n_running, self.clock())
        for sequence in outcome.sequences:
            unanswered = self._request_of.get(sequence)
            if unanswered is None:
                continue
            if isinstance(outcome, Finished):
                served.unfinished_work -= sequence.work
                unanswered.unfinished_work -= sequence.work
                unanswered.n_unfinished -= 1
                if unanswered.n_unfinished == 0:
                    self._answer(unanswered)
            elif isinstance(outcome, Failed):
                self._fail(unanswered, outcome.error)
            elif unanswered.admitted_at is None:
                unanswered.admitted_at = self.clock()
                self._record_event(served.name, QueueWait(unanswered.admitted_at - unanswered.submitted_at))

    def _fail(self, request: _AcceptedRequest, error: Exception) -> None:
        """A request whose forward pass failed leaves its engine; it is answered after the step."""
        served = request.served
        assert served.engine is not None
        if self._take(request):
            reason = f"a forward pass of {served.name} failed ({type(error).__name__})"
            self._failing.append((request.future, InferenceFailed(f"{reason}; the log has the reason")))
        served.engine.cancel(request.sequences)

    def _notice_cancellation(self, future: Future[Answer[Any]]) -> None:
        if future.cancelled():
            self._has_cancelled = True

    def _drop_abandoned(self, now: float) -> None:
        """Release requests that were cancelled or whose deadline has passed."""
        self._has_cancelled = False
        requests = list(self._requests)
        self._next_deadline = min((r.deadline for r in requests if r.deadline > now), default=math.inf)
        for request in requests:
            if request.future.cancelled():
                self._leave(request, None)
            elif now >= request.deadline:
                waited_s = now - request.submitted_at
                where = request.served.name
                self._leave(request, DeadlinePassed(f"The deadline passed after {waited_s:.1f} s in {where}"))

    def _answer(self, request: _AcceptedRequest) -> None:
        assert request.admitted_at is not None
        outputs = [sequence.output for sequence in request.sequences]
        queue_s = request.admitted_at - request.submitted_at
        decode_s = self.clock() - request.admitted_at - request.encode_s
        if self._take(request):
            request.future.set_result(Answer(outputs, queue_s, request.encode_s, decode_s))

    def _leave(self, request: _AcceptedRequest, error: RequestError | None) -> None:
        """Answer with an error, unless the client has left, and free the request's rows."""
        if self._take(request) and error is not None:
            request.future.set_exception(error)
        if request.served.engine is not None:
            request.served.engine.cancel(request.sequences)

    def _take(self, request: _AcceptedRequest) -> bool:
        """Return True to the one caller that may answer this request; False if it is answered or cancelled."""
        for sequence in request.sequences:
            self._request_of.pop(sequence, None)
        if request not in self._requests:
            return False
        del self._requests[request]
        self._awaiting_load.pop(request, None)
        request.served.unfinished_work -= request.unfinished_work
        return request.future.set_running_or_notify_cancel()
