"""The contract between `export`, which writes an artifact, and `service`, which reads it and refuses a changed one.

Beam search of the service in exported graphs finds what that of the model finds in the checkpoint, and the service
reads the encoder states that the model computes.
"""

from itertools import product

import numpy as np
import pytest
import torch

from export.examination import TOLERANCES
from manifest.layout import WEIGHTS
from manifest.schema import Precision
from model.checkpoint import load_checkpoint
from model.decoding import search
from model.embedding import states_of
from model.weights import dequantize, read_weights
from service.base.artifact import read_artifact
from service.base.settings import Settings
from service.engine import beam_search as decoding
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Sequence
from service.runner.one_pass import EmbeddingRunner
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from service.runner.weights import load_session
from service.runner.weights import read_weights as served_weights
from service.worker.artifact_source import compact_engines, fixed_engines
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, translator_of
from tests.service.fakes import search_all
from tests.service.runner.test_runner import random_sequence

SLOTS = 24


@pytest.mark.parametrize(
    ("kind", "precision"), list(product(["translation", "max_classifier"], ["fp32", "fp16", "int8"]))
)
def test_the_service_gives_a_graph_the_tensors_with_which_export_proves_it(
    artifact: MakeArtifact, kind: Kind, precision: Precision
) -> None:
    found = read_artifact(artifact(kind, precision))
    weights, stored = served_weights(found), read_weights(found.path(WEIGHTS))
    for graph, declared in found.manifest.graphs.items():
        for dtype, names in declared.items():
            for name in names:
                wanted: torch.dtype = getattr(torch, dtype)
                proved = stored[name] if stored[name].dtype == wanted else dequantize(name, stored).to(wanted)
                given = weights.tensor(name, np.dtype(dtype), graph)
                assert given.dtype == dtype
                np.testing.assert_array_equal(given, proved.numpy())


@pytest.mark.parametrize(
    "kind",
    [
        "translation",
        "translation_post_norm",
        "translation_rotary",
        "translation_hard",
        "translation_relative",
        "translation_ssru",
    ],
)
@pytest.mark.parametrize("as_on_cuda", [False, True])
@torch.inference_mode()
def test_the_service_searches_an_artifact_as_the_model_searches_its_checkpoint(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind, as_on_cuda: bool
) -> None:
    rng = np.random.default_rng(3)
    everybody = [random_sequence(rng, vocabulary_size=300) for _ in range(16)]
    graphs = TranslationGraphs(read_artifact(artifact(kind, "fp32")), Provider("cpu", 1))
    make = fixed_engines if as_on_cuda else compact_engines
    for name, engine in make(graphs, Settings(rows=SLOTS)).items():
        engine.scheduler.add([sequence for sequence in everybody if (sequence.n_rows == 1) == (name == "greedy")])
        while engine.scheduler.waiting or engine.n_running:
            engine.step(lambda _: None)
    model = translator_of(checkpoint(kind))
    for sequence in everybody:
        asked = sequence.output
        source = torch.tensor(sequence.source_ids)
        expected = search.beam_search(
            model,
            source,
            asked.max_target_tokens,
            asked.beam_size,
            asked.length_penalty,
            asked.n_best,
            asked.beam_threshold,
        )
        found = asked.best()
        assert [(h.token_ids, h.finish_reason) for h in found] == [(c.ids, c.finish_reason) for c in expected]
        assert [h.log_prob for h in found] == pytest.approx([c.log_prob for c in expected], abs=1e-3)


def test_shortlists_of_others_never_change_an_answer(artifact: MakeArtifact) -> None:
    """To the last bit, though all lists are padded to the longest."""
    graphs = TranslationGraphs(read_artifact(artifact("translation_ssru", "fp32")), Provider("cpu", 1))
    rng = np.random.default_rng(5)
    lengths = [2, 3, 5, 40, 4, 55]
    sources = [[*rng.integers(4, 300, length).tolist(), 3] for length in lengths]

    def found(together: list[list[int]]) -> list[decoding.Hypothesis]:
        sequences = [Sequence(source, decoding.Search(30)) for source in together]
        search_all(GreedySearch(TranslationRunner(graphs, 8, min_queries=1), 2, 3), 8, sequences, rng)
        return [sequence.output.best()[0] for sequence in sequences]

    alone = [found([source])[0] for source in sources]
    assert found(sources) == alone
    assert len({tuple(hypothesis.token_ids) for hypothesis in alone}) > 3


@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        *product(["translation", "mean_classifier", "max_classifier"], ["fp32", "int8", "fp16"]),
        ("translation_post_norm", "fp32"),
        ("translation_post_norm", "int8"),
        ("translation_rotary", "fp32"),
    ],
)
@torch.inference_mode()
def test_the_service_reads_the_states_that_the_model_makes(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind, precision: Precision
) -> None:
    rng = np.random.default_rng(6)
    sources = [rng.integers(4, 300, int(length)).tolist() for length in (1, 9, 30, 2, 60)]
    read = read_artifact(artifact(kind, precision))
    graph = "encoder.onnx" if read.manifest.task == "translation" else "classifier.onnx"
    runner = EmbeddingRunner(read, load_session(read, Provider("cpu", 1), graph))
    states = states_of(load_checkpoint(checkpoint(kind)), sources)
    embedded = runner.embed(sources)
    for source, found, expected in zip(sources, embedded, states, strict=True):
        assert found.shape == (len(source), read.manifest.dimensions.d_states) == expected.shape
        assert found.dtype == np.float32
        np.testing.assert_array_equal(runner.embed([source])[0], found)
    # Over all of them, as export proves it: rounded activations of a single token may be off by more.
    expected_states = np.concatenate([expected.numpy() for expected in states])
    error = np.linalg.norm(np.concatenate(embedded) - expected_states) / np.linalg.norm(expected_states)
    assert error <= TOLERANCES[precision]


def test_both_searches_know_a_runaway_by_the_same_rule() -> None:
    rng = np.random.default_rng(4)
    runaways = 0
    for _ in range(2000):
        circle = rng.integers(4, 6, int(rng.integers(1, 12))).tolist()
        token_ids = [*rng.integers(4, 6, int(rng.integers(0, 9))).tolist(), *circle * 80][: 8 * int(rng.integers(1, 9))]
        n_source = int(rng.integers(1, 50))
        assert decoding.is_runaway(token_ids, n_source) == search.is_runaway(token_ids, n_source)
        runaways += search.is_runaway(token_ids, n_source)
    assert 100 < runaways < 1900
