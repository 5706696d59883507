"""Searches in fixed places with a tiny artifact; main memory stands for a device's memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import Artifact, read_artifact
from service.engine.fixed_engine import FixedEngine
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.runner.arrays import GraphArrays
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs
from tests.service.engine.fixed_rows import KINDS, fixed_engine, search_all, searched_by
from tests.service.runner.test_runner import assert_as_alone, long_source, random_sequence, random_source
from tests.service.tiny_artifacts import BOS, EOS, PAD, TinyTranslator

N_ROWS = 24
CPU = Provider("cpu", threads=1)


def runner_of(artifact: Artifact, provider: Provider = CPU) -> DeviceTranslationRunner:
    graphs = TranslationGraphs(artifact, provider)
    return DeviceTranslationRunner(graphs, DeviceEncoder(graphs, N_ROWS, 512), N_ROWS, N_ROWS)


def engine_of(kind: str, runner: DeviceTranslationRunner) -> FixedEngine[Search]:
    return fixed_engine(kind, runner, N_ROWS, (BOS, EOS, PAD), prefill_padded_tokens=512)


def some_sequences(kind: str, rng: np.random.Generator, n: int = 14) -> list[Sequence[Search]]:
    return searched_by(kind, [random_sequence(rng) for _ in range(n)])


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("leaving", [0.0, 0.05])
def test_every_sequence_gets_the_answer_of_the_oracle_whoever_comes_and_goes(
    kind: str, translator_artifact: Artifact, tiny_translator: TinyTranslator, seed: int, leaving: float
) -> None:
    rng = np.random.default_rng(seed)
    everybody = some_sequences(kind, rng)
    engine = engine_of(kind, runner_of(translator_artifact))
    engine.probe()
    gone = search_all(engine, everybody, rng, leaving)
    assert_as_alone([sequence for sequence in everybody if sequence not in gone], tiny_translator)


def test_neighbours_change_no_bit_of_an_answer(kind: str, translator_artifact: Artifact) -> None:
    rng = np.random.default_rng(6)
    engine = engine_of(kind, runner_of(translator_artifact))
    sizes = rng.choice([2, 3, MAX_BEAM_SIZE], 24).tolist() if kind.startswith("beam") else [1] * 24
    together = [Sequence(random_source(rng, 2 + i), Search(30, size), n_rows=size) for i, size in enumerate(sizes)]
    search_all(engine, together, rng)
    for sequence in together:
        alone = replace(sequence, output=replace(sequence.output, finished=[]), finished=False)
        search_all(engine, [alone], rng)
        assert alone.output.best() == sequence.output.best(), "log-probabilities are compared to the last bit"


def test_steps_as_cuda_captures_them_change_nothing(
    kind: str, translator_artifact: Artifact, tiny_translator: TinyTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captured steps copy their arrays, and are given the length of the whole cache, not of its content."""
    monkeypatch.setattr(Provider, "arrays", lambda self, **fields: GraphArrays("cpu", **fields))
    rng = np.random.default_rng(1)
    everybody = some_sequences(kind, rng)
    runner = runner_of(translator_artifact, replace(CPU, captures=True))
    search_all(engine_of(kind, runner), everybody, rng)
    assert_as_alone(everybody, tiny_translator)
    assert {int(step.total_length[0]) for step in runner._steps._steps.values()} <= {32, 64}


@pytest.mark.parametrize("table", ["embedding", "positions_table"])
@pytest.mark.parametrize("captures", [False, True])
def test_a_source_or_a_target_without_numbers_fails_alone_and_leaves_nothing_to_others(
    kind: str, tmp_path: Path, table: str, captures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stays in the caches of a place, and of rows, harmed all who came there next."""
    if captures:
        monkeypatch.setattr(Provider, "arrays", lambda self, **fields: GraphArrays("cpu", **fields))
    translator, healthy = TinyTranslator(seed=3), TinyTranslator(seed=3)
    bad_word, bad_position = 7, 9
    translator.weights[table][bad_word if table == "embedding" else bad_position] = np.nan
    if table == "embedding":  # it is never written
        translator.weights["vocabulary"][:, bad_word] = healthy.weights["vocabulary"][:, bad_word] = 0
    engine = engine_of(
        kind, runner_of(read_artifact(translator.save(tmp_path / "bad")), replace(CPU, captures=captures))
    )
    rng = np.random.default_rng(5)
    everybody = some_sequences(kind, rng, 40)
    failed = search_all(engine, everybody, rng)
    finished = [sequence for sequence in everybody if sequence not in failed]
    assert failed
    assert finished
    assert_as_alone(finished, healthy)
    if table == "embedding":
        assert failed == {sequence for sequence in everybody if bad_word in sequence.source_ids}


def test_caches_grow_with_long_rows_and_shrink_back(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    rng = np.random.default_rng(0)
    runner = runner_of(translator_artifact)
    engine = engine_of("greedy", runner)
    everybody = [Sequence(random_source(rng, 6), Search(50)) for _ in range(6)]
    long = Sequence(long_source(tiny_translator), Search(60))
    lengths = []
    engine.scheduler.add(everybody)
    while engine.n_running or engine.scheduler.waiting:
        engine.step(lambda outcome: None)
        lengths.append((runner._self_attention.length, runner._cross_attention.length))
        if len(lengths) == 2:
            engine.scheduler.add([long])
    assert lengths[:2] == [(32, 32)] * 2
    assert set(lengths[2:]) <= {(32, 32), (64, 64)}
    assert lengths[-1] == (64, 64), "all have one length"
    assert_as_alone([*everybody, long], tiny_translator)
    engine.probe()
    assert (runner._self_attention.length, runner._cross_attention.length) == (32, 32)


@pytest.mark.parametrize("attention", ["self", "cross"])
def test_after_memory_ran_out_for_some_caches_the_next_answers_are_right(
    kind: str,
    translator_artifact: Artifact,
    tiny_translator: TinyTranslator,
    attention: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    runner = runner_of(translator_artifact)
    engine = engine_of(kind, runner)
    search_all(engine, [Sequence(random_source(rng, 5), Search(9))], rng)

    def fail(*_: object) -> None:
        raise MemoryError

    long = Sequence(long_source(tiny_translator), Search(60))
    with monkeypatch.context() as patch:
        patch.setattr(runner._self_caches if attention == "self" else runner._cross_caches, "resize", fail)
        assert search_all(engine, [long], rng) == {long}
    everybody = some_sequences(kind, rng, 6)
    search_all(engine, everybody, rng)
    assert_as_alone(everybody, tiny_translator)


def counted(monkeypatch: pytest.MonkeyPatch, session: Any) -> list[None]:
    """Record each run of a session."""
    runs: list[None] = []
    run: Callable[..., None] = session.run_with_iobinding

    def counting(*arguments: object) -> None:
        runs.append(None)
        run(*arguments)

    monkeypatch.setattr(session, "run_with_iobinding", counting)
    return runs


def test_an_admission_is_two_runs_and_a_departure_none(
    kind: str, translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    runner = runner_of(translator_artifact)
    encoded, copied = (
        counted(monkeypatch, session) for session in (runner._encoder._graphs.encoder, runner._cross_caches._copier)
    )
    reordered = counted(monkeypatch, runner._self_caches._copier)
    engine = engine_of(kind, runner)
    engine.scheduler.add([Sequence(random_source(rng, 5 + i), Search(3 + 4 * i)) for i in range(6)])
    while engine.n_running or engine.scheduler.waiting:
        engine.step(lambda outcome: None)
    assert (len(encoded), len(copied), len(reordered)) == (1, 1, 0)


def test_usual_shapes_of_newcomers_are_seen_before(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(translator_artifact)
    shapes: set[tuple[int, ...]] = set()
    run = runner._encoder._run

    def running(shape: tuple[int, int], sources: list[list[int]]) -> int:
        shapes.add(shape)
        return run(shape, sources)

    monkeypatch.setattr(runner._encoder, "_run", running)
    runner.warm_up()
    assert shapes == {(8, 32), (16, 32), (32, 32), (8, 64), (16, 64)}
    seen = set(shapes)
    rng = np.random.default_rng(5)
    search_all(engine_of("greedy", runner), some_sequences("greedy", rng, 60), rng)
    assert shapes == seen


def test_states_are_not_captured(translator_artifact: Artifact) -> None:
    """A capture runs the pass more than once, which changes a state each time."""
    states = translator_artifact.manifest.model_copy(update={"decoder_self": "ssru"})
    for manifest, captures in ((translator_artifact.manifest, True), (states, False)):
        graphs = TranslationGraphs(replace(translator_artifact, manifest=manifest), replace(CPU, captures=True))
        assert graphs.provider.captures == captures
        assert (graphs.captures.new() is not None) == captures
