"""benchmarks/gpu/simulate.py: a GPU that computes nothing and takes its time on a clock of its own."""

import json

import numpy as np
import pytest

from benchmarks.engines import Work
from benchmarks.engines.attend import sequences_of
from benchmarks.gpu import simulate
from benchmarks.gpu.driving import Constants, drive
from benchmarks.gpu.simulation import Clock
from service.engine import fixed_engine
from service.engine.engine import Outcome, Ran
from service.engine.search import Search


def test_the_device_works_while_the_host_goes_on_and_a_wait_ends_when_it_is_done() -> None:
    clock = Clock()
    began = clock.now()
    clock.launch(5.0)
    clock.launch(2.0)
    assert clock.now() - began < 1
    clock.add(3.0)
    clock.wait()
    assert 7 <= clock.now() - began < 8
    clock.wait()
    assert clock.now() - began < 8
    with clock.stopped():
        clock.add(1.0)
    assert clock.now() - began < 8


def test_a_simulation_tells_speed_beside_ctranslate2_and_latency(capsys: pytest.CaptureFixture[str]) -> None:
    simulate.measure(None, Constants(newcomers_share=0.5), n_works=8, repetitions=1)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    cells = {(line["beam_size"], line["batch"]): line for line in lines if "batch" in line}
    assert set(cells) == {(beam_size, batch) for beam_size in (1, 4) for batch in (1, 8, 64, 256)}
    assert all(line["ratio"] > 0 and 0 < line["device_ms"] < line["ms"] for line in cells.values())
    assert all(line["newcomers_share"] == 0.5 for line in lines)
    assert cells[1, 1]["encoder"] == 8, "one for each sentence"
    arrivals = [line for line in lines if "arrivals_per_s" in line]
    assert all(0 < line["p50_ms"] <= line["p95_ms"] for line in arrivals)


def test_constants_are_changed_for_a_while() -> None:
    before = fixed_engine.MAX_STEPS_WAITED
    with Constants(steps_waited=7).changed():
        assert fixed_engine.MAX_STEPS_WAITED == 7
    assert before == fixed_engine.MAX_STEPS_WAITED


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("once_tokens", [(), (5, 6)])
def test_no_step_has_a_new_shape_after_the_start(beam_size: int, once_tokens: tuple[int, ...]) -> None:
    """Each new shape would be captured in the middle of service."""
    draw = np.random.default_rng(1)
    works = [Work([*draw.integers(4, 99, n).tolist(), 3], 60) for n in draw.integers(2, 60, 40).tolist()]
    lengths = {tuple(work.source_ids): len(work.source_ids) for work in works}
    engine = simulate.SimulatedEngine(lengths, Constants(), beam_size, rows=64)
    engine.engine.probe()
    steps = engine.graphs.decoder_step
    beforehand = set(steps.shapes)
    sequences = sequences_of(works, engine.graphs.manifest, beam_size)
    for sequence in sequences:
        sequence.output.once_tokens = once_tokens
    drive(engine.engine, [sequences], clock=engine.clock.now)
    assert steps.shapes == beforehand


@pytest.mark.parametrize(("decoder_self", "is_repeated"), [("attention", True), ("ssru", False)])
def test_a_step_that_newcomers_join_is_run_again_only_if_the_decoder_keeps_no_state(
    decoder_self: str, is_repeated: bool
) -> None:
    works = [Work([4 + i, 5, 3], 60) for i in range(24)]
    lengths = {tuple(work.source_ids): 3 + i for i, work in enumerate(works)}
    engine = simulate.SimulatedEngine(lengths, Constants(), 4, rows=16, decoder_self=decoder_self)
    n_steps = 0

    def count(outcome: Outcome[Search]) -> None:
        nonlocal n_steps
        n_steps += isinstance(outcome, Ran) and outcome.forward_pass.phase == "decode"

    engine.engine.probe()
    engine.runs.clear()
    engine.engine.scheduler.add(sequences_of(works, engine.graphs.manifest, 4))
    while engine.engine.step(count):
        pass
    assert (engine.runs["step"] > n_steps) == is_repeated
