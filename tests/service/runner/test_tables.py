"""Large tables: a graph finds every row that it gathers, although none was in memory."""

import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from service.base.artifact import Artifact, read_artifact
from service.base.contract import AttentionKinds
from service.engine.beam_search import BeamSearch
from service.runner import weights
from service.runner.one_pass import AttentionRunner, EmbeddingRunner, classify
from service.runner.provider import Provider
from service.runner.weights import load_session
from tests.service.fakes import search_all
from tests.service.runner.test_runner import assert_as_alone, random_sequence, random_source, runner_of
from tests.service.tiny_artifacts import BOS, EOS, TinyTranslator, V
from tests.service.tiny_classifier import TinyClassifier
from tests.service.tiny_graph import Array

CPU = Provider("cpu", threads=1)
ALL_KINDS: AttentionKinds = frozenset({"encoder", "decoder", "cross"})

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tables are read as a whole")


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the tiny models, which have other names than those of real ones, are large."""
    monkeypatch.setattr(weights, "LARGE_BYTES", 0)
    monkeypatch.setattr(weights, "TOKENS", ("embedding", "token_logits_table"))
    monkeypatch.setattr(weights, "ROW_BY_ROW", "")


def test_a_translator_reads_the_rows_of_its_tokens(
    large_tables: None, tiny_translator: TinyTranslator, translator_artifact: Artifact
) -> None:
    runner = runner_of(translator_artifact)
    assert runner._encoder.tables
    assert runner._decoder_step.tables
    rng = np.random.default_rng(0)
    everybody = [random_sequence(rng) for _ in range(6)]
    search_all(BeamSearch(runner, BOS, EOS), 16, everybody, rng)
    assert_as_alone(everybody, tiny_translator)


def test_a_classifier_reads_the_rows_of_its_tokens(large_tables: None, tmp_path: Path) -> None:
    classifier = TinyClassifier(seed=2, pooling="mean")
    artifact = read_artifact(classifier.save(tmp_path / "classifier"))
    session = load_session(artifact, CPU, "classifier.onnx")
    assert session.tables
    (found,) = classify(artifact, session, [[7, 4, 9]])
    np.testing.assert_array_equal(found, classifier.weights["token_logits_table"][[7, 4, 9]])


def test_states_and_matrices_are_those_of_whole_tables(
    monkeypatch: pytest.MonkeyPatch, translator_artifact: Artifact, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(3)
    sources, targets = ([random_source(rng, n) for n in lengths] for lengths in ((2, 9, 5), (1, 12, 3)))

    def found() -> list[Array]:
        states = EmbeddingRunner(translator_artifact, load_session(translator_artifact, CPU, "encoder.onnx"))
        attended = AttentionRunner(translator_artifact, CPU).attend(sources, targets, ALL_KINDS)
        return [*states.embed(sources), *(matrices[kind] for matrices in attended for kind in sorted(ALL_KINDS))]

    expected = found()
    request.getfixturevalue("large_tables")
    for whole, rows in zip(expected, found(), strict=True):
        np.testing.assert_array_equal(whole, rows)


def test_attention_that_nobody_needs_is_unloaded_and_loaded_again(translator_artifact: Artifact) -> None:
    now = 0.0
    runner = AttentionRunner(translator_artifact, CPU, unload_after_s=60, clock=lambda: now)
    assert runner.is_resting()
    expected = AttentionRunner(translator_artifact, CPU).attend([[5, 6, 2]], [[1, V - 1]], ALL_KINDS)
    for began in (0.0, 1000.0):
        now = began
        found = runner.attend([[5, 6, 2]], [[1, V - 1]], ALL_KINDS)
        for kind in ALL_KINDS:
            np.testing.assert_array_equal(found[0][kind], expected[0][kind])
        session = weakref.ref(runner._session)
        now += 59
        assert not runner.is_resting()
        now += 1
        assert runner.is_resting()
        gc.collect()
        assert session() is None
