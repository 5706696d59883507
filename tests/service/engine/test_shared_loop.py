"""Several engines in one loop: they share its time, and fail alone."""

from collections.abc import Callable

import pytest

from service.base.errors import Broken, InferenceFailed
from service.base.metrics import Metrics
from service.engine.engine import ContinuousEngine
from service.engine.loop import RETRY_S, Loop
from service.engine.scheduler import Scheduler, Sequence
from tests.service.fakes import FakeClock, FakeComputation, Tally, answer, sequences

Two = tuple[Loop, FakeComputation, FakeComputation]


@pytest.fixture
def beam_name() -> str:
    return "m/beam"


@pytest.fixture
def two(beam_name: str) -> Two:
    """A loop with a greedy and a beam engine whose passes take 1 and 10 seconds."""
    clock, computations = FakeClock(), (FakeComputation(), FakeComputation())
    engines = {}
    for name, computation in zip(("m/greedy", beam_name), computations, strict=True):
        engines[name] = ContinuousEngine(computation, Scheduler[Tally](4, 100, 100), clock)
    loop = Loop(engines, Metrics().count, probe_interval_s=3600, clock=clock)

    def pass_time(seconds: float) -> Callable[[str, list[Sequence[Tally]]], bool]:
        def failing(call: str, batch: list[Sequence[Tally]]) -> bool:
            clock.now += seconds
            return False

        return failing

    for computation, seconds in zip(computations, (1, 10), strict=True):
        computation.failing = pass_time(seconds)
    return loop, *computations


def test_a_failed_step_of_one_engine_leaves_the_others_alone(
    two: tuple[Loop, FakeComputation, FakeComputation],
) -> None:
    loop, _, beam = two
    beam.failing = lambda call, batch: call == "step"
    loop.warm_up()
    whole, failed = (loop.submit(name, sequences(50), loop.clock() + 10_000) for name in ("m/greedy", "m/beam"))
    with pytest.raises(InferenceFailed, match="m/beam"):
        answer(loop, failed)
    assert len(answer(loop, whole).outputs[0].places) == 50


def test_an_idle_engine_proves_nothing_while_another_works_and_stays_ready(two: Two) -> None:
    loop, greedy, _ = two
    clock = loop.clock
    assert isinstance(clock, FakeClock)
    loop.warm_up()
    busy = loop.submit("m/beam", sequences(2000), loop.clock() + 100_000)
    answer(loop, busy)
    assert loop.clock() > 4 * 3600, "four intervals without a pass of the other"
    assert [call for call, _ in greedy.calls] == ["warm_up"]
    assert loop.states()["m/greedy"].unready_reason is None
    assert loop.pause_s <= RETRY_S
    for _ in range(3):  # requests come one by one, and none waits for a probe
        clock.now += RETRY_S / 2
        loop.advance()
        answer(loop, loop.submit("m/beam", sequences(1), loop.clock() + 10_000))
    assert [call for call, _ in greedy.calls] == ["warm_up"]
    clock.now += RETRY_S
    loop.advance()
    assert [call for call, _ in greedy.calls] == ["warm_up"] * 2, "it proves itself when there is time"


def test_a_broken_engine_is_tried_again_while_another_works(two: Two) -> None:
    loop, greedy, beam = two
    pass_time = greedy.failing
    greedy.failing = lambda call, batch: call == "warm_up"
    loop.warm_up()
    greedy.failing = pass_time
    answer(loop, loop.submit("m/beam", sequences(20), loop.clock() + 10_000))
    assert loop.states()["m/greedy"].unready_reason is None
    assert [call for call, _ in beam.calls].count("step") == 20


def test_engines_share_time_and_not_steps(two: Two) -> None:
    loop, _, beam = two
    loop.warm_up()
    fast, slow = (loop.submit(name, sequences(40), loop.clock() + 10_000) for name in ("m/greedy", "m/beam"))
    slow_steps = []
    fast.add_done_callback(lambda _: slow_steps.append([call for call, _ in beam.calls].count("step")))
    for future, steps in ((fast, 40), (slow, 40)):
        assert len(answer(loop, future).outputs[0].places) == steps
    assert 2 <= slow_steps[0] <= 6, "ten steps of one take as long as one of the other"


@pytest.mark.parametrize("beam_name", ["m/background_greedy"])
def test_the_background_gives_way_and_does_not_starve(two: Two) -> None:
    loop, _, background = two
    loop.warm_up()
    documents = loop.submit("m/background_greedy", sequences(40), loop.clock() + 10_000)
    loop.advance()
    first, later = (loop.submit("m/greedy", sequences(n), loop.clock() + 10_000) for n in (40, 400))
    steps = []
    for future in (first, later):
        future.add_done_callback(lambda _: steps.append([call for call, _ in background.calls].count("step")))
    for future, n in ((documents, 40), (first, 40), (later, 400)):
        assert len(answer(loop, future).outputs[0].places) == n
    assert steps[0] <= 2, "a single sentence waits for the step that runs, and for no more than one other"
    assert 4 <= steps[1] <= 8, "a step of ten seconds after eighty seconds of other work"


@pytest.mark.parametrize("beam_name", ["m/background_greedy"])
def test_time_that_nobody_else_wanted_is_no_debt(two: Two) -> None:
    loop, *_ = two
    loop.warm_up()
    answer(loop, loop.submit("m/background_greedy", sequences(40), loop.clock() + 10_000))
    others = loop.submit("m/greedy", sequences(400), loop.clock() + 10_000)
    loop.advance()
    document = loop.submit("m/background_greedy", sequences(2), loop.clock() + 10_000)
    finished = []
    for future in (others, document):
        future.add_done_callback(finished.append)
    for future in (others, document):
        answer(loop, future)
    assert finished == [document, others], "a document alone took a long time, and the next one waits as long"


def test_a_model_that_is_disabled_is_never_stepped_again_not_even_for_a_new_request(two: Two) -> None:
    loop, greedy, beam = two
    loop.warm_up()
    poison = loop.submit("m/greedy", sequences(1), loop.clock() + 10_000)
    loop.disable("m", "it is disabled")
    with pytest.raises(Broken, match=r"m/greedy .*disabled"):
        answer(loop, poison)
    loop.advance()
    assert {call for call, _ in [*greedy.calls, *beam.calls]} == {"warm_up"}
