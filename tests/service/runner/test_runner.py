"""ONNX Runtime compared with the same model in numpy: each row gets the answer that it gets alone."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import Artifact, read_artifact
from service.base.contract import AttentionKinds
from service.engine.beam_search import BeamSearch
from service.engine.engine import ContinuousEngine, Failed, Finished
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Scheduler, Sequence
from service.engine.search import Search
from service.passes.pooling import Pooling, WindowLogits, read_logits
from service.runner import provider, translation
from service.runner.one_pass import AttentionRunner, classify
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from service.runner.weights import load_session
from tests.service.fakes import prefill, search_all
from tests.service.tiny_artifacts import BOS, EOS, MAX_TARGET_TOKENS, TinyTranslator, V
from tests.service.tiny_classifier import TinyClassifier

WARNINGS_TOO = 2
CPU = Provider("cpu", threads=1)


def random_source(rng: np.random.Generator, length: int, vocabulary_size: int = V) -> list[int]:
    return [*rng.integers(4, vocabulary_size, length - 1).tolist(), EOS]


def runner_of(artifact: Artifact, n_rows: int = 16) -> TranslationRunner:
    return TranslationRunner(TranslationGraphs(artifact, CPU), n_rows)


def long_source(translator: TinyTranslator) -> list[int]:
    """Return a source whose translation needs more than one bucket of a cache."""
    rng = np.random.default_rng(0)
    sources = (random_source(rng, 40) for _ in range(1000))
    return next(source for source in sources if len(translator.translate(source, MAX_TARGET_TOKENS)[0]) > 32)


def random_sequence(rng: np.random.Generator, vocabulary_size: int = V) -> Sequence[Search]:
    beam_size = int(rng.integers(1, MAX_BEAM_SIZE + 1))
    search = Search(
        max_target_tokens=int(rng.integers(1, 50)),
        beam_size=beam_size,
        length_penalty=float(rng.choice([0, 0.6, 1])),
        n_best=int(rng.integers(1, beam_size + 1)),
        beam_threshold=float(rng.choice([0, 0.5, 2, math.inf])),
    )
    return Sequence(random_source(rng, int(rng.integers(1, 40)), vocabulary_size), search, n_rows=beam_size)


def assert_as_alone(everybody: list[Sequence[Search]], translator: TinyTranslator) -> None:
    """Check that each sequence has the result of the oracle."""
    for sequence in everybody:
        search = sequence.output
        expected = translator.search(
            sequence.source_ids,
            search.max_target_tokens,
            search.beam_size,
            search.length_penalty,
            search.n_best,
            search.beam_threshold,
        )
        found = search.best()
        assert [(h.token_ids, h.finish_reason) for h in found] == [(h.token_ids, h.finish_reason) for h in expected]
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected], abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("leaving", [0.0, 0.05])
def test_neighbours_never_change_an_answer(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, seed: int, leaving: float
) -> None:
    rng = np.random.default_rng(seed)
    everybody = [random_sequence(rng) for _ in range(12)]
    beams = BeamSearch(runner_of(translator_artifact), BOS, EOS)
    abandoned = search_all(beams, 16, everybody, rng, leaving)
    assert_as_alone([sequence for sequence in everybody if sequence not in abandoned], tiny_translator)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_one_is_greedy_search(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    limits = rng.integers(1, MAX_TARGET_TOKENS, 20).tolist()
    everybody = [Sequence(random_source(rng, int(rng.integers(2, 40))), Search(limit)) for limit in limits]
    search_all(BeamSearch(runner_of(translator_artifact), BOS, EOS), 16, everybody, rng)
    for sequence, limit in zip(everybody, limits, strict=True):
        (found,) = sequence.output.best()
        target, log_prob = tiny_translator.translate(sequence.source_ids, limit)
        assert found.token_ids == target
        assert found.log_prob == pytest.approx(log_prob, abs=1e-3)
    assert {"eos", "length"} <= {sequence.output.best()[0].finish_reason for sequence in everybody}


@pytest.mark.parametrize(
    ("search_of", "beam_size"), [(GreedySearch, 1), (BeamSearch, 1), (BeamSearch, 3), (BeamSearch, MAX_BEAM_SIZE)]
)
def test_a_translation_is_never_empty(tmp_path: Path, search_of: type, beam_size: int) -> None:
    translator = TinyTranslator(seed=1)
    first = translator.weights["embedding"][BOS] + translator.weights["positions_table"][0]
    translator.weights["vocabulary"][:, EOS] = first  # who has written nothing wants to end
    rng = np.random.default_rng(0)
    sources = [random_source(rng, 6) for _ in range(12)]
    assert sum(translator.next_log_probs(source, []).argmax() == EOS for source in sources) > 6
    runner = runner_of(read_artifact(translator.save(tmp_path / "eager")), 96)
    everybody = [Sequence(source, Search(9, beam_size, n_best=beam_size), n_rows=beam_size) for source in sources]
    search_all(search_of(runner, BOS, EOS), 96, everybody, rng)
    assert_as_alone(everybody, translator)
    assert all(hypothesis.token_ids[0] != EOS for sequence in everybody for hypothesis in sequence.output.finished)


def test_runners_that_share_their_graphs_do_not_share_their_memory(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    rng = np.random.default_rng(5)
    graphs = TranslationGraphs(translator_artifact, CPU)
    both = [BeamSearch(TranslationRunner(graphs, 8), BOS, EOS) for _ in range(2)]
    everybody = [Sequence(random_source(rng, 9), Search(20, 4), n_rows=4) for _ in both]
    for beams, sequence in zip(both, everybody, strict=True):
        prefill(beams, 0, [sequence])
    while running := [pair for pair in zip(both, everybody, strict=True) if not pair[1].finished]:
        for beams, sequence in running:
            beams.step([sequence])
    assert_as_alone(everybody, tiny_translator)


def test_caches_grow_with_long_rows_and_shrink_back(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    long = long_source(tiny_translator)
    runner = runner_of(translator_artifact)
    beams = BeamSearch(runner, BOS, EOS)
    lengths = set()
    sequence = Sequence(long, Search(max_target_tokens=60))
    prefill(beams, 0, [sequence])
    while not sequence.finished:
        beams.step([sequence])
        lengths.add(runner._self_attention.length)
    assert lengths == {32, 64}
    assert runner._cross_attention.length >= 40
    beams.warm_up()
    assert runner._self_attention.length == 32
    assert runner._cross_attention.length < 40


@pytest.mark.parametrize("attention", ["self", "cross"])
def test_after_memory_ran_out_for_some_caches_the_next_answers_are_right(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    long = long_source(tiny_translator)
    runner = runner_of(translator_artifact)
    beams = BeamSearch(runner, BOS, EOS)
    search_all(beams, 16, [Sequence(random_source(rng, 5), Search(9))], rng)

    def fail(*_: object) -> None:
        raise MemoryError

    group = runner._self_attention if attention == "self" else runner._cross_attention
    with monkeypatch.context() as patch:
        patch.setattr(group.caches, "resize", fail)
        with pytest.raises(MemoryError):
            search_all(beams, 16, [Sequence(long, Search(60))], rng)
    everybody = [Sequence(random_source(rng, n), Search(20, 3), n_rows=3) for n in (7, 5, 6)]
    search_all(beams, 16, everybody, rng)
    assert_as_alone(everybody, tiny_translator)


def test_a_step_writes_one_key_in_place(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """ONNX Runtime copies a whole cache, and warns, if its input and output are not one buffer."""
    monkeypatch.setattr(provider, "ERRORS_ONLY", WARNINGS_TOO)
    runner = runner_of(translator_artifact, n_rows=2)
    runner.enter(0, runner.encode([[5, EOS]]))
    runner.step([BOS], [0], length=1, k=1)
    assert "copying past_cache" not in capfd.readouterr().err
    cache = runner._self_attention.caches._rows[0]
    assert np.any(cache[0, :, 0])
    assert not np.any(cache[0, :, 1:])
    assert not np.any(cache[1])


@pytest.mark.parametrize(("search_of", "beam_size"), [(GreedySearch, 1), (BeamSearch, 1), (BeamSearch, 4)])
def test_log_probabilities_that_are_no_numbers_are_an_error(tmp_path: Path, search_of: type, beam_size: int) -> None:
    translator = TinyTranslator(seed=1)
    translator.weights["vocabulary"][:] = np.nan
    computation = search_of(runner_of(read_artifact(translator.save(tmp_path / "broken"))), BOS, EOS)
    with pytest.raises(FloatingPointError, match="not numbers"):
        computation.warm_up()
    sequence = Sequence([5, 6, EOS], Search(99, beam_size), n_rows=beam_size)
    prefill(computation, 0, [sequence])
    computation.step([sequence])
    assert sequence.finished
    assert isinstance(sequence.failure, FloatingPointError)
    assert sequence.output.finished == []


@pytest.mark.parametrize("search_of", [GreedySearch, BeamSearch])
@pytest.mark.parametrize("table", ["embedding", "positions_table"])
def test_a_source_or_a_target_without_numbers_fails_alone_and_leaves_nothing_to_others(
    tmp_path: Path, search_of: type, table: str
) -> None:
    """A model gives no numbers for a word, or from a position on. What stays in the caches harmed all who came next."""
    translator = TinyTranslator(seed=3)
    healthy = TinyTranslator(seed=3)
    bad_word, bad_position = 7, 9
    translator.weights[table][bad_word if table == "embedding" else bad_position] = np.nan
    if table == "embedding":  # it is never written
        translator.weights["vocabulary"][:, bad_word] = healthy.weights["vocabulary"][:, bad_word] = 0
    runner = runner_of(read_artifact(translator.save(tmp_path / "bad")))
    engine = ContinuousEngine(search_of(runner, BOS, EOS), Scheduler(16, 1000, 200))
    rng = np.random.default_rng(5)
    outcomes: dict[Sequence[Search], type] = {}
    everybody = []
    for _ in range(40):
        n_rows = 1 if search_of is GreedySearch else int(rng.integers(1, 5))
        everybody.append(
            Sequence(
                random_source(rng, int(rng.integers(1, 30))), Search(int(rng.integers(1, 20)), n_rows), n_rows=n_rows
            )
        )
    for start in range(0, 40, 10):
        engine.scheduler.add(everybody[start : start + 10])
        while engine.step(lambda outcome: outcomes.update(dict.fromkeys(outcome.sequences, type(outcome)))):
            pass
        engine.probe()
    failed = [sequence for sequence in everybody if outcomes[sequence] is Failed]
    finished = [sequence for sequence in everybody if outcomes[sequence] is Finished]
    assert len(failed) + len(finished) == len(everybody)
    assert failed
    assert finished
    assert_as_alone(finished, healthy)
    if table == "embedding":
        assert failed == [sequence for sequence in everybody if bad_word in sequence.source_ids]


def test_the_step_that_was_not_used_for_the_longest_time_is_forgotten(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "MAX_STEPS", 2)
    runner = runner_of(translator_artifact)
    runner.enter(0, runner.encode([[5, EOS]] * 3))
    for n_sources in (1, 2, 1, 3):
        runner.step([BOS] * n_sources, [0] * n_sources, length=1, k=1)
    assert [n_sources for _, _, n_sources, _, _ in runner._steps._steps] == [1, 3]


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_batch_of_different_lengths_is_classified_as_each_text_alone(tmp_path: Path, pooling: Pooling) -> None:
    classifier = TinyClassifier(seed=2, pooling=pooling)
    artifact = read_artifact(classifier.save(tmp_path / "classifier"))
    run = partial(classify, artifact, load_session(artifact, CPU, "classifier.onnx"))
    rng = np.random.default_rng(3)
    sources = [rng.integers(4, V, length).tolist() for length in (1, 7, 3, 2)]
    for source, found in zip(sources, run(sources), strict=True):
        np.testing.assert_array_equal(found, classifier.weights["token_logits_table"][source])
    sequences = [Sequence(source, WindowLogits()) for source in sources]
    read_logits(run, pooling, sequences)
    for sequence in sequences:
        np.testing.assert_allclose(sequence.output.logits, classifier.logits(sequence.source_ids), rtol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_neighbours_change_no_bit_of_a_prediction(tmp_path: Path, pooling: Pooling) -> None:
    classifier = TinyClassifier(seed=2, pooling=pooling)
    artifact = read_artifact(classifier.save(tmp_path / "classifier"))
    run = partial(classify, artifact, load_session(artifact, CPU, "classifier.onnx"))
    rng = np.random.default_rng(3)
    together = [Sequence(rng.integers(4, V, n).tolist(), WindowLogits()) for n in (1, 7, 30, 11, 60, 19, 5)]
    read_logits(run, pooling, together)
    for sequence in together:
        alone = Sequence(sequence.source_ids, WindowLogits())
        read_logits(run, pooling, [alone])
        np.testing.assert_array_equal(alone.output.logits, sequence.output.logits)


def test_neighbours_change_no_bit_of_what_was_attended_to(translator_artifact: Artifact) -> None:
    """A single target of one token is a single query, and would be multiplied with another kernel."""
    rng = np.random.default_rng(3)
    runner = AttentionRunner(translator_artifact, CPU)
    sources = [random_source(rng, n) for n in (2, 9, 30, 5, 17, 3)]
    targets = [random_source(rng, n) for n in (1, 12, 1, 25, 2, 1)]
    kinds: AttentionKinds = frozenset({"encoder", "decoder", "cross"})
    for source, target, found in zip(sources, targets, runner.attend(sources, targets, kinds), strict=True):
        (alone,) = runner.attend([source], [target], kinds)
        for kind in kinds:
            np.testing.assert_array_equal(alone[kind], found[kind])
