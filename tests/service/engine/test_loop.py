"""The promises of a loop and its engine, with a computation that the test drives."""

import random
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from service.base.contract import EngineState
from service.base.errors import Broken, DeadlinePassed, InferenceFailed, QueueFull, Starting
from service.engine.loop import RETRY_S
from service.engine.scheduler import Sequence
from tests.service.fakes import FakeClock, Harness, Tally, TickingClock, sequences

Make = Callable[..., Harness]


@pytest.fixture
def harness() -> Harness:
    return Harness().start()


def test_a_request_is_answered_with_its_outputs_in_order(harness: Harness) -> None:
    answer = harness.answer(harness.submit(3, 1, 2))
    assert [tally.steps for tally in answer.outputs] == [3, 1, 2]
    assert [len(tally.places) for tally in answer.outputs] == [3, 1, 2]


def test_newcomers_enter_while_others_run_and_each_keeps_what_is_in_its_place(harness: Harness) -> None:
    long = harness.submit(5)
    harness.loop.advance()
    short = harness.submit(2)
    assert harness.answer(short).outputs[0].neighbours == [1, 1]
    assert harness.answer(long).outputs[0].neighbours == [0, 1, 1, 0, 0]


def test_a_finished_row_frees_its_place_at_once_for_one_that_waits() -> None:
    harness = Harness(max_rows=1).start()
    futures = [harness.submit(2) for _ in range(5)]
    assert all(harness.answer(future).outputs[0].places == [0, 0] for future in futures)


def test_a_failed_step_answers_every_member_and_the_next_request_succeeds(harness: Harness) -> None:
    harness.computation.failing = lambda call, running: call == "step" and len(running) == 3
    first = harness.submit(2, 2)
    harness.loop.advance()
    second = harness.submit(2)  # joins before the next step
    for future in (first, second):
        with pytest.raises(InferenceFailed, match="fake/greedy failed"):
            harness.answer(future)
    assert harness.unready_reason is None, "a probe has shown before that the model is not to blame"
    assert len(harness.answer(harness.submit(2)).outputs[0].places) == 2


def test_a_loop_tells_for_which_model_it_computes_until_it_has_nothing_to_do(harness: Harness) -> None:
    told: list[str | None] = []
    harness.loop._on_compute = told.append
    harness.answer(harness.submit(5))
    assert told == ["fake", None]


def test_a_loop_may_pause_while_there_is_nothing_to_do_until_the_next_probe() -> None:
    harness = Harness(probe_interval_s=60).start()
    assert harness.loop.pause_s == 0, "it has not looked yet when the next probe is due"
    harness.loop.advance()
    assert harness.loop.pause_s == 60
    future = harness.submit(2)
    assert harness.loop.pause_s == 0
    harness.answer(future)
    assert harness.loop.pause_s == 60


def test_engines_with_requests_are_not_taken_away(harness: Harness) -> None:
    future = harness.submit(2)
    assert not harness.loop.remove_engines("fake")
    harness.answer(future)
    assert harness.loop.remove_engines("fake")
    assert harness.state == EngineState(None, n_waiting=0, n_running=0, max_rows=0)


def test_places_that_cannot_be_moved_are_given_up_and_the_next_request_succeeds(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: call == "move"
    for future in [harness.submit(1, 3), harness.submit(3)]:
        with pytest.raises(InferenceFailed):
            harness.answer(future)
    assert len(harness.answer(harness.submit(2)).outputs[0].places) == 2


def test_a_step_that_fails_before_anyone_is_admitted_answers_those_that_wait_and_the_next_request_succeeds(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyError("told to fail")

    with monkeypatch.context() as patch:
        patch.setattr(harness.scheduler, "admit", fail)
        for future in (harness.submit(1), harness.submit(2)):
            with pytest.raises(InferenceFailed, match="KeyError"):
                harness.answer(future)
    assert len(harness.answer(harness.submit(2)).outputs[0].places) == 2
    assert harness.unready_reason is None
    assert harness.is_idle


def test_one_bad_request_fails_alone(harness: Harness) -> None:
    def is_bad(call: str, batch: list[Sequence[Tally]]) -> bool:
        return call == "encode" and any(len(sequence.source_ids) == 13 for sequence in batch)

    harness.computation.failing = is_bad
    good, bad, also_good = harness.submit(2), harness.submit(2, tokens=13), harness.submit(1)  # read in one batch
    with pytest.raises(InferenceFailed):
        harness.answer(bad)
    assert [len(harness.answer(future).outputs[0].places) for future in (good, also_good)] == [2, 1]


def test_a_request_fails_as_a_whole_and_its_other_sequences_leave(harness: Harness) -> None:
    harness.computation.failing = lambda call, batch: call == "encode" and any(s.output.steps == 7 for s in batch)
    request = sequences(1000, 7, 1000)
    with pytest.raises(InferenceFailed):
        harness.answer(harness.submit_all(request))
    harness.answer(harness.submit(1))
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


def test_newcomers_of_unlike_lengths_are_read_in_several_passes() -> None:
    harness = Harness(max_rows=8, max_padding=4).start()
    read = lengths_read_together(harness)
    request = [sequence for tokens in (9, 3, 4, 10) for sequence in sequences(2, tokens=tokens)]
    harness.answer(harness.submit_all(request))
    assert read == [[3, 4], [9, 10]]
    assert harness.metric("padding_tokens_total") == 2
    assert harness.metric("tokens_total", side="source") == 26
    assert {len(sequence.output.places) for sequence in request} == {2}


def test_a_request_that_fails_in_one_pass_is_not_read_in_the_next() -> None:
    harness = Harness(max_rows=8, max_padding=0).start()
    read = lengths_read_together(harness)
    harness.computation.failing = lambda call, batch: call == "encode" and len(batch[0].source_ids) == 3
    request = [*sequences(1000, tokens=3), *sequences(1000, tokens=9)]
    with pytest.raises(InferenceFailed):
        harness.answer(harness.submit_all(request))
    harness.answer(harness.submit(1, tokens=5))
    assert read == [[3], [5]]
    assert harness.is_idle


def test_encoded_and_running_sequences_are_answered_when_entering_fails() -> None:
    harness = Harness(max_rows=8, max_padding=0).start()
    running = harness.submit(1000, tokens=3)
    harness.loop.advance()
    first, second = harness.submit(0, 1000, tokens=4), harness.submit(1, tokens=9)
    harness.computation.failing = lambda call, batch: call == "enter"
    for future in (running, first, second):
        with pytest.raises(InferenceFailed):
            harness.answer(future)
    harness.computation.failing = lambda call, batch: False
    harness.answer(harness.submit(1))
    assert harness.is_idle


def test_a_client_that_left_frees_its_rows_before_the_next_step(harness: Harness) -> None:
    leaving = harness.submit(1000, 1000)
    harness.loop.advance()
    staying = harness.submit(2)
    assert leaving.cancel()
    assert harness.answer(staying).outputs[0].neighbours == [0, 0]
    with pytest.raises(CancelledError):
        harness.answer(leaving)


def test_a_client_that_left_while_waiting_is_never_read() -> None:
    harness = Harness(max_rows=1).start()
    running = harness.submit(2)
    harness.loop.advance()
    harness.submit(1000).cancel()
    harness.answer(running)
    harness.answer(harness.submit(1))
    assert [call for call, _ in harness.computation.calls].count("encode") == 2


def test_a_passed_deadline_answers_and_frees_the_rows_before_the_next_step(harness: Harness) -> None:
    late = harness.submit(1000, timeout_s=5)
    harness.loop.advance()
    staying = harness.submit(2, timeout_s=500)
    harness.clock.now += 6
    with pytest.raises(DeadlinePassed, match=r"6\.0 s in fake/greedy"):
        harness.answer(late)
    assert len(harness.answer(staying).outputs[0].places) == 2
    assert not harness.scheduler.running


def test_a_full_queue_refuses_at_once_and_says_when_to_retry() -> None:
    harness = Harness(max_rows=1, max_waiting=1).start()
    running = harness.submit(2)
    harness.loop.advance()
    waiting, refused = harness.submit(1), harness.submit(1)
    with pytest.raises(QueueFull) as refusal:
        refused.result(0)
    assert int(refusal.value.headers["Retry-After"]) > 0
    assert harness.answer(running).outputs
    assert harness.answer(waiting).outputs


@pytest.fixture
def measured() -> Harness:
    """A harness whose rate is known: 4 rows of 3 tokens in a step of one second are 12 a second. Its rows are full."""
    harness = Harness(max_rows=4).start()
    step = harness.computation.step

    def slow_step(running: list[Sequence[Tally]]) -> int:
        harness.clock.now += 1
        return step(running)

    harness.computation.step = slow_step  # type: ignore[method-assign]
    harness.answer(harness.submit(*[1] * 16))
    harness.submit(*[3] * 4)
    harness.loop.advance()
    return harness


def test_a_late_request_is_refused_at_once_and_never_computed(measured: Harness) -> None:
    waiting = measured.submit(*[1] * 4)
    late, in_time = measured.submit(1, timeout_s=2), measured.submit(1, timeout_s=4)
    with pytest.raises(QueueFull, match=r"about 2\.\d s") as refusal:
        late.result(0)
    assert refusal.value.retry_after_s == 2, "8 sequences of 3 tokens, at 12 tokens a second"
    state = refusal.value.state
    assert state is not None
    assert state.backlog.wait_s() == pytest.approx(2, rel=0.2)
    assert (state.backlog.n_waiting, state.whole_backlog.n_waiting) == (4, 4)
    assert [len(measured.answer(future).outputs) for future in (waiting, in_time)] == [4, 1]
    assert sum(n for call, n in measured.computation.calls if call == "encode") == 16 + 4 + 4 + 1


def test_a_request_without_backlog_is_never_refused(measured: Harness) -> None:
    alone = measured.submit(*[1] * 40, timeout_s=4.5)
    with pytest.raises(DeadlinePassed):
        measured.answer(alone)


def test_a_part_of_a_request_that_was_accepted_is_not_refused_for_its_deadline(measured: Harness) -> None:
    crowd = measured.submit(*[1] * 8)
    part = sequences(1)
    part[0].accepted = True
    future = measured.submit_all(part, timeout_s=1.5)
    with pytest.raises(DeadlinePassed):
        measured.answer(future)
    measured.answer(crowd)


def test_the_backlog_shrinks_when_waiting_requests_are_cancelled(measured: Harness) -> None:
    crowd = measured.submit(*[1] * 8)
    backlog = measured.state.whole_backlog
    assert backlog.n_waiting == 8
    assert backlog.work == pytest.approx(24, abs=12)
    crowd.cancel()
    for _ in range(3):
        measured.loop.advance()
    assert measured.state.whole_backlog.work == 0


def test_readiness_and_requests_wait_for_the_first_forward_pass() -> None:
    harness = Harness()
    assert harness.unready_reason == "starting"
    with pytest.raises(Starting):
        harness.submit(1)
    harness.start()
    assert harness.unready_reason is None


def test_a_failing_probe_is_told_by_readiness_and_refuses_requests_until_one_succeeds() -> None:
    harness = Harness()
    harness.computation.failing = lambda call, _: call == "warm_up"
    harness.start()
    assert harness.unready_reason == "the last forward pass failed (RuntimeError)"
    with pytest.raises(Broken, match=r"fake/greedy .*forward pass failed"):
        harness.submit(1)
    harness.computation.failing = lambda call, _: False
    harness.loop.advance()
    assert harness.unready_reason is not None, "it is not probed again at once"
    harness.clock.now += RETRY_S
    harness.loop.advance()
    assert harness.unready_reason is None
    harness.answer(harness.submit(1))


def test_an_input_that_fails_does_not_make_its_model_unready(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: call == "encode"
    with pytest.raises(InferenceFailed):
        harness.answer(harness.submit(1))
    assert harness.unready_reason is None


def test_a_model_that_fails_whatever_it_reads_is_unready_before_the_error_is_answered(harness: Harness) -> None:
    harness.computation.failing = lambda call, _: True
    told: list[str | None] = []
    future = harness.submit(1)
    future.add_done_callback(lambda _: told.append(harness.unready_reason))
    with pytest.raises(InferenceFailed):
        harness.answer(future)
    assert told == ["the last forward pass failed (RuntimeError)"]


def test_readiness_ends_when_the_last_forward_pass_is_long_ago() -> None:
    harness = Harness(probe_interval_s=3600).start()
    harness.clock.now += 3 * 3600 + 1
    assert harness.unready_reason == "the last forward pass ended 10801 s ago"
    harness.answer(harness.submit(1))
    assert harness.unready_reason is None


def test_an_idle_engine_proves_itself_again_and_again() -> None:
    harness = Harness(probe_interval_s=0.001, clock=TickingClock()).start()
    for _ in range(3):
        harness.loop.advance()
    assert [call for call, _ in harness.computation.calls] == ["warm_up"] * 4


@pytest.mark.parametrize("dying_call", ["encode", "step", "warm_up"])
def test_what_is_no_failed_pass_ends_the_worker(dying_call: str) -> None:
    """Whoever drives the loop ends with it, and the server answers: no worker goes on in a state that nobody knows."""

    class Death(BaseException):
        """No subclass of Exception."""

    def die(call: str, batch: list[Sequence[Tally]]) -> bool:
        if call == dying_call:
            raise Death
        return False

    harness = Harness(probe_interval_s=0.001, clock=TickingClock()).start()
    harness.computation.failing = die
    if dying_call != "warm_up":
        harness.submit(3)
    with pytest.raises(Death):
        harness.loop.advance()


def test_the_answer_tells_where_the_time_went() -> None:
    clock = FakeClock()
    harness = Harness(clock=clock).start()

    def pass_time(call: str, batch: list[Sequence[Tally]]) -> bool:
        clock.now += {"encode": 2, "step": 5}.get(call, 0)
        return False

    harness.computation.failing = pass_time
    answer = harness.answer(harness.submit(3))
    assert (answer.queue_s, answer.encode_s, answer.decode_s) == (0, 2, 15)


def test_under_a_storm_every_request_is_resolved_exactly_once(harness: Harness) -> None:
    """Requests come between steps, some are cancelled, some batches fail; every request has one outcome."""
    failures = iter(range(10**9))
    harness.computation.failing = lambda call, _: call != "warm_up" and next(failures) % 17 == 0
    chance = random.Random(7)
    futures: list[Future[Any]] = []
    n_resolved = 0

    def resolved(_: "Future[Any]") -> None:
        nonlocal n_resolved
        n_resolved += 1

    while len(futures) < 200:
        for _ in range(chance.randrange(4)):
            i = len(futures)
            futures.append(harness.submit(*[1 + i % 5] * (1 + i % 3), tokens=1 + i % 7))
            futures[-1].add_done_callback(resolved)
        if chance.random() < 0.2 and futures:
            chance.choice(futures[-8:]).cancel()
        harness.loop.advance()
    outcomes = set()
    for future in futures:
        try:
            outcomes.add(f"{len(harness.answer(future).outputs) > 0}")
        except (InferenceFailed, CancelledError) as error:
            outcomes.add(type(error).__name__)
    assert n_resolved == len(futures)
    assert outcomes == {"True", "InferenceFailed", "CancelledError"}
    harness.computation.failing = lambda call, _: False
    harness.answer(harness.submit(1))
    assert not harness.scheduler.running
    assert not harness.loop._requests
    assert not harness.loop._request_of
