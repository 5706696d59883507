"""One queue, one thread that works, one future per request.

The engine repeats one step: drop what nobody waits for, admit newcomers, run a forward pass, finish. Every accepted
request is answered exactly once, with a result or with a named error, even if a forward pass raises or the thread dies.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from service.contract import Answer
from service.engine.computation import Computation
from service.engine.scheduler import Scheduler, Sequence
from service.errors import Broken, DeadlinePassed, Draining, InferenceFailed, RequestError, Starting
from service.metrics import TaskMetrics

logger = logging.getLogger(__name__)

Output = TypeVar("Output")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Accepted(Generic[Output]):
    """A request that is accepted and not answered."""

    sequences: list[Sequence[Output]]
    work: int
    n_unfinished: int
    deadline: float
    submitted_at: float
    future: Future[Answer[Output]] = field(default_factory=Future)
    admitted_at: float | None = None
    encode_s: float = 0.0


class Engine(Generic[Output]):
    """Runs many requests at a time through one computation.

    Args:
        name: of the model, for messages.
        probe_interval_s: an engine that idles this long proves itself by a forward pass.
        clock: monotonic seconds; deadlines are on this clock.
    """

    def __init__(
        self,
        name: str,
        computation: Computation[Output],
        scheduler: Scheduler[Output],
        metrics: TaskMetrics,
        probe_interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.scheduler = scheduler
        self.clock = clock
        self._computation = computation
        self._metrics = metrics
        self._probe_interval_s = probe_interval_s
        self._succeeded_at: float | None = None
        self._last_failure: str | None = None
        """Of the last forward pass. Readiness follows it: neither a live process nor a live thread is proof enough."""
        self.warm = threading.Event()
        """Set when the first forward pass has been tried; requests are refused before."""
        self.load = 0
        """Work of the requests that are accepted and not answered."""
        self._thread = threading.Thread(target=self.run, args=(self._wait,), name=f"engine-{name}", daemon=True)
        # The lock guards what callers' threads touch too: these, load and scheduler.waiting. Only the engine's thread
        # touches the rest.
        self._wake = threading.Condition()
        self._requests: dict[_Accepted[Output], None] = {}
        self._request_of: dict[Sequence[Output], _Accepted[Output]] = {}
        self._next_deadline = math.inf
        self._somebody_left = False
        self._draining = False
        self._closed = False

    @property
    def n_waiting(self) -> int:
        return len(self.scheduler.waiting)

    @property
    def n_running(self) -> int:
        return len(self.scheduler.running)

    @property
    def slots(self) -> int:
        return self.scheduler.slots

    @property
    def busy(self) -> bool:
        """Whether there are requests to work on."""
        return bool(self._requests)

    def start(self) -> None:
        """Run in a thread of its own."""
        self._thread.start()

    def run(self, listen: Callable[[float], None]) -> None:
        """Prove the computation by a forward pass, and work until drained.

        Args:
            listen: is called between two steps, and may submit and cancel. While the engine is not busy, it may wait
                for so many seconds.
        """
        ending: RequestError = Draining(f"{self.name} has stopped", retry_after_s=5)
        try:
            self._probe()
            self.warm.set()
            while not self._draining or self._requests:  # in this order: once it drains, none is added
                listen(self._probe_interval_s)
                if self._requests:
                    try:
                        self._step()
                    except Exception as error:
                        self._fail_step(error)
                elif not self._draining:
                    self._probe()
        except BaseException as error:
            logger.critical("%s: the worker thread dies", self.name, exc_info=True)
            ending = Broken(f"{self.name} is broken: the worker thread died ({type(error).__name__})", retry_after_s=30)
        finally:
            self._close(ending)

    def submit(self, sequences: list[Sequence[Output]], deadline: float) -> Future[Answer[Output]]:
        """Queue the sequences of one request. Cancelling the future frees its rows within one step.

        Raises:
            Unavailable: starting, draining, broken, or the queue is full.
        """
        work = sum([sequence.work for sequence in sequences])
        request = _Accepted(sequences, work, len(sequences), deadline, submitted_at=self.clock())
        with self._wake:
            self._refuse_if_unavailable()
            self.scheduler.add(sequences)
            self._requests[request] = None
            self._request_of.update(dict.fromkeys(sequences, request))
            self._next_deadline = min(self._next_deadline, deadline)
            self.load += request.work
            self._wake.notify()
        request.future.add_done_callback(self._notice_cancellation)
        return request.future

    def unready_reason(self) -> str | None:
        """Why this engine should get no requests now; None if it should."""
        if self._draining:
            return "draining"
        if self._closed:
            return "the worker thread has ended"
        succeeded_at, failure = self._succeeded_at, self._last_failure
        if failure is not None:
            return f"the last forward pass failed ({failure})"
        if succeeded_at is None:
            return "starting"
        age_s = self.clock() - succeeded_at
        return f"the last forward pass ended {age_s:.0f} s ago" if age_s > 3 * self._probe_interval_s else None

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
        self._close(Draining(f"{self.name} stopped before this request was answered", retry_after_s=5))

    def _refuse_if_unavailable(self) -> None:
        if self._draining:
            raise Draining(f"{self.name} is draining and takes no new requests", retry_after_s=5)
        if self._closed:
            raise Broken(f"{self.name} is broken: the worker thread has ended", retry_after_s=30)
        if not self.warm.is_set():
            raise Starting(f"{self.name} is starting")

    def _wait(self, timeout_s: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._requests or self._draining, timeout_s)

    def _probe(self) -> None:
        try:
            self._forward("probe", self._computation.warm_up)
        except Exception:
            logger.exception("%s: the forward pass that proves readiness failed", self.name)

    def _step(self) -> None:
        self._drop_abandoned()
        with self._wake:
            admitted = self.scheduler.admit()
        self._note_admission(admitted)
        for batch in self.scheduler.batches(admitted):
            self._prefill([sequence for sequence in batch if sequence in self._request_of])
        running = self.scheduler.running
        if running:
            n_running = len(running)
            rows = self._forward("decode", self._computation.step, running)
            self._metrics.stepped(n_running, rows)
            self._finish()

    def _notice_cancellation(self, future: Future[Answer[Output]]) -> None:
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
                self._leave(request, DeadlinePassed(f"the deadline passed after {waited_s:.1f} s in {self.name}"))

    def _note_admission(self, admitted: list[Sequence[Output]]) -> None:
        """Note when the first sequence of a request is admitted: from then on a failed step fails the request."""
        now = self.clock()
        for sequence in admitted:
            request = self._request_of[sequence]
            if request.admitted_at is None:
                request.admitted_at = now
                self._metrics.queued(now - request.submitted_at)

    def _prefill(self, sequences: list[Sequence[Output]]) -> None:
        """Start newcomers. A batch that fails is read again one by one, so that one bad request fails alone."""
        if not sequences:
            return  # their requests have failed with earlier sequences
        requests = {self._request_of[sequence]: None for sequence in sequences}
        began = self.clock()
        try:
            self._forward("encode", self._computation.prefill, len(self.scheduler.running), sequences)
        except Exception as error:
            logger.exception("%s: reading %d sequences failed", self.name, len(sequences))
            self._prefill_one_by_one(sequences, error)
            return
        for request in requests:
            request.encode_s += self.clock() - began
        self._metrics.prefilled([len(sequence.source_ids) for sequence in sequences])
        self.scheduler.start(sequences)
        self._finish()

    def _prefill_one_by_one(self, sequences: list[Sequence[Output]], error: Exception) -> None:
        if len(sequences) == 1:
            self._leave(self._request_of[sequences[0]], self._failure(error))
            return
        for sequence in sequences:
            if sequence in self._request_of:  # else its request has just failed with an earlier sequence
                self._prefill([sequence])

    def _forward(self, phase: str, run: Callable[..., Result], *arguments: object) -> Result:
        """The one place where a computation runs: timed, and its outcome kept for readiness."""
        began = self.clock()
        try:
            result = run(*arguments)
        except Exception as error:
            self._last_failure = type(error).__name__
            raise
        ended = self.clock()
        self._succeeded_at, self._last_failure = ended, None
        self._metrics.inferred(phase, ended - began)
        return result

    def _finish(self) -> None:
        """Free the places of finished sequences, and answer the requests that have no other left."""
        finished = [sequence for sequence in self.scheduler.running if sequence.finished]
        if not finished:
            return
        self._evict(finished)
        for sequence in finished:
            request = self._request_of[sequence]
            request.n_unfinished -= 1
            if request.n_unfinished == 0:
                self._answer(request)

    def _evict(self, sequences: Collection[Sequence[Output]]) -> None:
        for source_place, target_place in self.scheduler.evict(sequences):
            self._computation.move(source_place, target_place)

    def _answer(self, request: _Accepted[Output]) -> None:
        assert request.admitted_at is not None
        outputs = [sequence.output for sequence in request.sequences]
        queue_s = request.admitted_at - request.submitted_at
        decode_s = self.clock() - request.admitted_at - request.encode_s
        if self._take(request):
            request.future.set_result(Answer(outputs, queue_s, request.encode_s, decode_s))

    def _leave(self, request: _Accepted[Output], error: RequestError | None) -> None:
        """Answer with an error, unless nobody waits for it, and free what the request holds."""
        if self._take(request) and error is not None:
            request.future.set_exception(error)
        with self._wake:
            self.scheduler.withdraw(request.sequences)
        self._evict(request.sequences)

    def _take(self, request: _Accepted[Output]) -> bool:
        """True for the one caller that may answer this request; False if it is answered or its client has left."""
        with self._wake:
            for sequence in request.sequences:
                self._request_of.pop(sequence, None)
            if request not in self._requests:
                return False
            del self._requests[request]
            self.load -= request.work
        return request.future.set_running_or_notify_cancel()

    def _fail_step(self, error: Exception) -> None:
        """A step failed: answer the requests in it with an error, empty all places, and go on.

        If nothing ran, the requests that wait have failed: they would make the next step fail too.
        """
        with self._wake:
            requests = list(self._requests)
        if self._closed:
            return  # stopped by force, while this step ran on
        failed = [request for request in requests if request.admitted_at is not None] or requests
        logger.error("%s: a step failed for %d requests", self.name, len(failed), exc_info=error)
        self._last_failure = type(error).__name__
        self.scheduler.running.clear()
        for request in failed:
            self._leave(request, self._failure(error))

    def _failure(self, error: Exception) -> InferenceFailed:
        return InferenceFailed(f"a forward pass of {self.name} failed ({type(error).__name__}); the log has the reason")

    def _close(self, error: RequestError) -> None:
        """No request is accepted or left unanswered after this."""
        with self._wake:
            self._closed = True
            requests = list(self._requests)
        for request in requests:
            if self._take(request):
                request.future.set_exception(error)
