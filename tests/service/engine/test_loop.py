"""The promises of a loop and its engine, with a computation that the test drives."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from service.base.contract import EngineState
from service.base.errors import Broken, DeadlinePassed, Draining, InferenceFailed, QueueFull, Starting
from service.engine.loop import RETRY_S
from service.engine.scheduler import Sequence
from tests.service.fakes import NAME, PATIENCE_S, FakeClock, Harness, Tally, TickingClock, sequences
from tests.waiting import wait_until

Make = Callable[..., Harness]


@pytest.fixture
def make() -> Iterator[Make]:
    """make(**options) is a harness, whose loop is stopped in the end."""
    made: list[Harness] = []

    def make(**options: Any) -> Harness:
        made.append(Harness(**options))
        return made[-1]

    yield make
    for harness in made:
        harness.computation.release()
        harness.loop.stop(PATIENCE_S)


@pytest.fixture
def harness(make: Make) -> Harness:
    return make().start()


def outcome(future: "Future[Any]") -> Any:
    return future.result(PATIENCE_S)


def test_a_request_is_answered_with_its_outputs_in_order(harness: Harness) -> None:
    answer = outcome(harness.submit(3, 1, 2))
    assert [tally.steps for tally in answer.outputs] == [3, 1, 2]
    assert [len(tally.places) for tally in answer.outputs] == [3, 1, 2]


def test_newcomers_enter_while_others_run_and_each_keeps_what_is_in_its_place(harness: Harness) -> None:
    harness.computation.hold()
    long = harness.submit(5)
    harness.computation.await_arrival()  # prefill of the first
    harness.computation.allow()
    harness.computation.await_arrival()  # its first step
    short = harness.submit(2)
    harness.computation.release()
    assert outcome(short).outputs[0].neighbours == [1, 1]
    assert outcome(long).outputs[0].neighbours == [0, 1, 1, 0, 0]


def test_a_finished_row_frees_its_slot_at_once_for_one_that_waits(make: Make) -> None:
    harness = make(max_rows=1).start()
    futures = [harness.submit(2) for _ in range(5)]
    assert all(outcome(future).outputs[0].places == [0, 0] for future in futures)


def test_a_failed_step_answers_every_member_and_the_next_request_succeeds(harness: Harness) -> None:
    harness.computation.failing = lambda call, running: call == "step" and len(running) == 3
    harness.computation.hold()
    first = harness.submit(2, 2)
    harness.computation.await_arrival()
    second = harness.submit(2)  # joins before the next step
    harness.computation.release()
    for future in (first, second):
        with pytest.raises(InferenceFailed, match="fake/greedy failed"):
            outcome(future)
    assert harness.unready_reason is None, "a probe has shown before that the model is not to blame"
    assert len(outcome(harness.submit(2)).outputs[0].places) == 2


def test_a_loop_tells_for_which_model_it_computes_until_it_waits(harness: Harness) -> None:
    told: list[str | None] = []
    harness.loop._on_compute = told.append
    outcome(harness.submit(5))
    wait_until(lambda: told == ["fake", None])


def test_engines_with_requests_are_not_taken_away(harness: Harness) -> None:
    harness.computation.hold()
    future = harness.submit(2)
    harness.computation.await_arrival()
    assert not harness.loop.remove_engines("fake")
    harness.computation.release()
    outcome(future)
    assert harness.loop.remove_engines("fake")
    assert harness.loop.state("fake/greedy") == EngineState(None, n_waiting=0, n_running=0, max_rows=0)


def test_places_that_cannot_be_moved_are_given_up_and_the_next_request_succeeds(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: call == "move"
    harness.computation.hold()
    futures = [harness.submit(1, 3), harness.submit(3)]
    harness.computation.release()
    for future in futures:
        with pytest.raises(InferenceFailed):
            outcome(future)
    assert len(outcome(harness.submit(2)).outputs[0].places) == 2


def test_a_step_that_fails_before_anyone_is_admitted_answers_those_that_wait_and_the_next_request_succeeds(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyError("told to fail")

    with monkeypatch.context() as patch:
        patch.setattr(harness.scheduler, "admit", fail)
        for future in (harness.submit(1), harness.submit(2)):
            with pytest.raises(InferenceFailed, match="KeyError"):
                outcome(future)
    assert len(outcome(harness.submit(2)).outputs[0].places) == 2
    assert harness.unready_reason is None
    assert harness.is_idle


def test_one_bad_request_fails_alone(harness: Harness) -> None:
    def is_bad(call: str, batch: list[Sequence[Tally]]) -> bool:
        return call == "encode" and any(len(sequence.source_ids) == 13 for sequence in batch)

    harness.computation.failing = is_bad
    harness.computation.hold()
    harness.submit(1)
    harness.computation.await_arrival()  # the three below will be read in one batch
    good, bad, also_good = harness.submit(2), harness.submit(2, tokens=13), harness.submit(1)
    harness.computation.release()
    with pytest.raises(InferenceFailed):
        outcome(bad)
    assert [len(outcome(future).outputs[0].places) for future in (good, also_good)] == [2, 1]


def test_a_request_fails_as_a_whole_and_its_other_sequences_leave(harness: Harness) -> None:
    harness.computation.failing = lambda call, batch: call == "encode" and any(s.output.steps == 7 for s in batch)
    request = sequences(1000, 7, 1000)
    with pytest.raises(InferenceFailed):
        outcome(harness.submit_all(request))
    outcome(harness.submit(1))
    assert not harness.scheduler.running
    assert not harness.scheduler.waiting


def lengths_read_together(harness: Harness) -> list[list[int]]:
    """Record the lengths of the sources of each pass from now on."""
    read: list[list[int]] = []
    encode = harness.computation.encode

    def recorded(batch: list[Sequence[Tally]]) -> None:
        read.append([len(sequence.source_ids) for sequence in batch])
        encode(batch)

    harness.computation.encode = recorded  # type: ignore[method-assign]
    return read


def test_newcomers_of_unlike_lengths_are_read_in_several_passes(make: Make) -> None:
    harness = make(max_rows=8, max_padding=4).start()
    read = lengths_read_together(harness)
    request = [sequence for tokens in (9, 3, 4, 10) for sequence in sequences(2, tokens=tokens)]
    outcome(harness.submit_all(request))
    assert read == [[3, 4], [9, 10]]
    assert harness.metric("padding_tokens_total") == 2
    assert harness.metric("tokens_total", side="source") == 26
    assert {len(sequence.output.places) for sequence in request} == {2}


def test_a_request_that_fails_in_one_pass_is_not_read_in_the_next(make: Make) -> None:
    harness = make(max_rows=8, max_padding=0).start()
    read = lengths_read_together(harness)
    harness.computation.failing = lambda call, batch: call == "encode" and len(batch[0].source_ids) == 3
    request = [*sequences(1000, tokens=3), *sequences(1000, tokens=9)]
    with pytest.raises(InferenceFailed):
        outcome(harness.submit_all(request))
    outcome(harness.submit(1, tokens=5))
    assert read == [[3], [5]]
    assert harness.is_idle


def test_who_is_encoded_and_whoever_runs_is_answered_when_entering_fails(make: Make) -> None:
    harness = make(max_rows=8, max_padding=0).start()
    harness.computation.hold()
    running = harness.submit(1000, tokens=3)
    harness.computation.await_arrival()
    first, second = harness.submit(0, 1000, tokens=4), harness.submit(1, tokens=9)
    harness.computation.failing = lambda call, batch: call == "enter"
    harness.computation.release()
    for future in (running, first, second):
        with pytest.raises(InferenceFailed):
            outcome(future)
    harness.computation.failing = lambda call, batch: False
    outcome(harness.submit(1))
    assert harness.is_idle


def test_a_client_that_left_frees_its_rows_within_one_step(harness: Harness) -> None:
    harness.computation.hold()
    leaving = harness.submit(1000, 1000)
    harness.computation.await_arrival()
    harness.computation.allow()
    harness.computation.await_arrival()  # inside the first step
    staying = harness.submit(2)
    assert leaving.cancel()
    harness.computation.release()
    assert outcome(staying).outputs[0].neighbours == [0, 0]
    with pytest.raises(CancelledError):
        outcome(leaving)


def test_a_client_that_left_while_waiting_is_never_read(make: Make) -> None:
    harness = make(max_rows=1).start()
    harness.computation.hold()
    running = harness.submit(2)
    harness.computation.await_arrival()
    waiting = harness.submit(1000)
    waiting.cancel()
    harness.computation.release()
    outcome(running)
    outcome(harness.submit(1))
    assert [call for call, _ in harness.computation.calls].count("encode") == 2


def test_a_passed_deadline_answers_and_frees_the_rows_within_one_step(harness: Harness) -> None:
    harness.computation.hold()
    late = harness.submit(1000, timeout_s=5)
    harness.computation.await_arrival()
    staying = harness.submit(2, timeout_s=500)
    harness.clock.now += 6
    harness.computation.release()
    with pytest.raises(DeadlinePassed, match=r"6\.0 s in fake/greedy"):
        outcome(late)
    assert len(outcome(staying).outputs[0].places) == 2
    assert not harness.scheduler.running


def test_a_full_queue_refuses_at_once_and_says_when_to_retry(make: Make) -> None:
    harness = make(max_rows=1, max_waiting=1).start()
    harness.computation.hold()
    running = harness.submit(1)
    harness.computation.await_arrival()
    waiting = harness.submit(1)
    harness.computation.allow()
    harness.computation.await_arrival()
    refused = harness.submit(1)
    harness.computation.allow()
    with pytest.raises(QueueFull) as refusal:
        outcome(refused)
    assert int(refusal.value.headers["Retry-After"]) > 0
    harness.computation.release()
    assert outcome(running).outputs
    assert outcome(waiting).outputs


@pytest.fixture
def measured(make: Make) -> Harness:
    """A harness whose rate is known: 4 rows of 3 tokens in a step of one second are 12 a second. Its rows are full."""
    harness = make(max_rows=4).start()
    step = harness.computation.step

    def slow_step(running: list[Sequence[Tally]]) -> int:
        harness.clock.now += 1
        return step(running)

    harness.computation.step = slow_step  # type: ignore[method-assign]
    outcome(harness.submit(*[1] * 16))
    harness.computation.hold()
    harness.submit(*[3] * 4)
    harness.computation.await_arrival()
    return harness


def test_who_would_be_late_is_refused_at_once_and_never_computed(measured: Harness) -> None:
    waiting = measured.submit(*[1] * 4)
    late, in_time = measured.submit(1, timeout_s=3), measured.submit(1, timeout_s=5)
    measured.computation.allow(2)  # the encoder and a step, after which requests are queued
    with pytest.raises(QueueFull, match=r"about 2\.\d s") as refusal:
        outcome(late)
    assert refusal.value.retry_after_s == 2, "8 sequences of 3 tokens, at 12 tokens a second"
    state = refusal.value.state
    assert state.backlog.wait_s() == pytest.approx(2, rel=0.2)
    assert (state.backlog.n_waiting, state.whole_backlog.n_waiting) == (4, 4)
    measured.computation.release()
    assert [len(outcome(future).outputs) for future in (waiting, in_time)] == [4, 1]
    assert sum(n for call, n in measured.computation.calls if call == "encode") == 16 + 4 + 4 + 1


def test_who_waits_behind_nobody_is_never_refused(measured: Harness) -> None:
    alone = measured.submit(*[1] * 40, timeout_s=4.5)
    measured.computation.release()
    with pytest.raises(DeadlinePassed):
        outcome(alone)


def test_a_part_of_a_request_that_was_accepted_is_not_refused_for_its_deadline(measured: Harness) -> None:
    crowd = measured.submit(*[1] * 8)
    part = sequences(1)
    part[0].accepted = True
    future = measured.submit_all(part, timeout_s=1.5)
    measured.computation.release()
    with pytest.raises(DeadlinePassed):
        outcome(future)
    outcome(crowd)


def test_what_is_before_a_newcomer_is_forgotten_with_the_requests_that_left(measured: Harness) -> None:
    crowd = measured.submit(*[1] * 8)
    measured.computation.allow(2)
    wait_until(lambda: measured.loop.backlog(NAME, is_whole=True).n_waiting == 8)
    assert measured.loop.backlog(NAME, is_whole=True).work == pytest.approx(24, abs=12)
    crowd.cancel()
    measured.computation.release()
    wait_until(lambda: measured.loop.backlog(NAME, is_whole=True).work == 0)


def test_readiness_and_requests_wait_for_the_first_forward_pass(make: Make) -> None:
    harness = make()
    harness.computation.hold()
    harness.loop.start()
    harness.computation.await_arrival()
    assert harness.unready_reason == "starting"
    with pytest.raises(Starting):
        harness.submit(1)
    harness.computation.release()
    assert harness.loop.warm.wait(PATIENCE_S)
    assert harness.unready_reason is None


def test_a_failing_probe_is_told_by_readiness_and_refuses_requests_until_one_succeeds(make: Make) -> None:
    harness = make()
    harness.computation.failing = lambda call, _: call == "warm_up"
    harness.start()
    assert harness.unready_reason == "the last forward pass failed (RuntimeError)"
    with pytest.raises(Broken, match=r"fake/greedy .*forward pass failed"):
        harness.submit(1)
    harness.computation.failing = lambda call, _: False
    harness.computation.hold()
    harness.clock.now += RETRY_S
    harness.computation.await_arrival()
    harness.computation.release()
    harness.await_ready()
    outcome(harness.submit(1))


def test_an_input_that_fails_does_not_make_its_model_unready(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: call == "encode"
    with pytest.raises(InferenceFailed):
        outcome(harness.submit(1))
    assert harness.unready_reason is None


def test_a_model_that_fails_whatever_it_reads_is_unready_before_the_error_is_answered(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: True
    with pytest.raises(InferenceFailed):
        outcome(harness.submit(1))
    assert harness.unready_reason == "the last forward pass failed (RuntimeError)"


def test_readiness_ends_when_the_last_forward_pass_is_long_ago(make: Make) -> None:
    harness = make(probe_interval_s=3600).start()
    harness.clock.now += 3 * 3600 + 1
    assert harness.unready_reason == "the last forward pass ended 10801 s ago"
    outcome(harness.submit(1))
    assert harness.unready_reason is None


def test_an_idle_engine_proves_itself_again_and_again(make: Make) -> None:
    harness = make(probe_interval_s=0.001, clock=TickingClock())
    harness.computation.hold()
    harness.loop.start()
    for _ in range(4):
        harness.computation.await_arrival()
        harness.computation.allow()
    harness.computation.release()
    assert {call for call, _ in harness.computation.calls} == {"warm_up"}


@pytest.mark.parametrize("dying_call", ["encode", "step", "warm_up"])
def test_a_dying_worker_answers_everybody_and_readiness_says_so(dying_call: str) -> None:
    class Death(BaseException):
        """No subclass of Exception: the loop must not catch it as a failed pass."""

    harness = Harness(
        max_rows=1, probe_interval_s=0.001 if dying_call == "warm_up" else 3600, clock=TickingClock()
    ).start()

    def die(call: str, batch: list[Sequence[Tally]]) -> bool:
        if call == dying_call:
            raise Death
        return False

    harness.computation.hold()
    futures = []
    if dying_call != "warm_up":
        futures = [harness.submit(3), harness.submit(3)]
    harness.computation.failing = die
    harness.computation.release()
    for future in futures:
        with pytest.raises(Broken, match="the loop's thread died"):
            outcome(future)
    harness.loop._thread.join(PATIENCE_S)
    assert harness.unready_reason == "the loop has ended"
    with pytest.raises(Broken):
        harness.submit(1)


def test_who_is_let_in_as_draining_begins_is_answered() -> None:
    harness = Harness()
    accepted: list[Future[Any]] = []

    def listen(timeout_s: float) -> None:
        """Submit a request and drain, just after the loop has seen that there are no requests."""
        if not accepted:
            accepted.append(harness.submit(1))
            harness.loop.drain()

    harness.loop.run(listen)
    assert outcome(accepted[0]).outputs[0].places == [0]


def test_draining_answers_what_was_accepted_and_refuses_the_rest(harness: Harness) -> None:
    harness.computation.hold()
    accepted = harness.submit(3)
    harness.computation.await_arrival()
    harness.loop.drain()
    assert harness.unready_reason == "draining"
    with pytest.raises(Draining):
        harness.submit(1)
    harness.computation.release()
    assert len(outcome(accepted).outputs[0].places) == 3
    harness.loop._thread.join(PATIENCE_S)
    assert not harness.loop._thread.is_alive()


def test_stopping_fails_what_is_not_answered_in_time(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness().start()
    harness.computation.hold()
    stuck = harness.submit(3)
    harness.computation.await_arrival()
    harness.loop.stop(timeout_s=0)
    with pytest.raises(Draining):
        outcome(stuck)
    harness.computation.release()
    harness.loop._thread.join(PATIENCE_S)
    assert not harness.loop._thread.is_alive()
    assert "dies" not in caplog.text


def test_the_answer_tells_where_the_time_went(make: Make) -> None:
    clock = FakeClock()
    harness = make(clock=clock).start()

    def pass_time(call: str, batch: list[Sequence[Tally]]) -> bool:
        clock.now += {"encode": 2, "step": 5}.get(call, 0)
        return False

    harness.computation.failing = pass_time
    answer = outcome(harness.submit(3))
    assert (answer.queue_s, answer.encode_s, answer.decode_s) == (0, 2, 15)


def test_under_a_storm_every_request_is_resolved_exactly_once(harness: Harness) -> None:
    """Clients submit from many threads, some cancel, some batches fail; every request has an outcome."""
    failures = iter(range(10**9))
    harness.computation.failing = lambda call, _: call != "warm_up" and next(failures) % 17 == 0
    outcomes: list[str] = []

    def client(number: int) -> None:
        for i in range(25):
            future = harness.submit(*[1 + (number + i) % 5] * (1 + i % 3), tokens=1 + i % 7)
            if (number + i) % 6 == 0:
                future.cancel()
            try:
                outcomes.append(f"{len(outcome(future).outputs) > 0}")
            except (InferenceFailed, CancelledError) as error:
                outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(6 * PATIENCE_S)
    assert len(outcomes) == 8 * 25
    assert {"True", "InferenceFailed", "CancelledError"} == set(outcomes)
    harness.computation.failing = lambda call, _: False
    outcome(harness.submit(1))
    assert not harness.scheduler.running
    assert not harness.loop._requests
    assert not harness.loop._request_of
