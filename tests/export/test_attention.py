"""The attention graph against PyTorch, and against itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray

from export.attention_proof import run_classifier, run_translation
from export.examination import TOLERANCES
from export.session import open_session
from manifest.file import read_manifest
from manifest.schema import Precision, Provider
from model.networks.matrices import classification_matrices, translation_matrices
from tests.export.tiny_checkpoints import GRAPHS, Kind, MakeArtifact, MakeCheckpoint, classifier_of, translator_of

RANDOM = np.random.default_rng(7)
SOURCES = [RANDOM.integers(4, 300, length).tolist() for length in (9, 1, 30, 4, 17, 60)]
TARGETS = [[2, *RANDOM.integers(4, 300, length).tolist()] for length in (11, 5, 0, 40, 1, 29)]
TRANSLATORS: list[tuple[Kind, Precision, Provider]] = [
    ("translation", "fp32", "cpu"),
    ("translation", "int8", "cpu"),
    ("translation", "fp16", "cuda"),
    ("translation_post_norm", "fp32", "cpu"),
    ("translation_post_norm", "int8", "cpu"),
    ("translation_rotary", "fp16", "cuda"),
    ("translation_ssru", "fp32", "cpu"),
    ("translation_ssru", "int8", "cpu"),
]
CLASSIFIERS: list[tuple[Kind, Precision, Provider]] = [
    ("mean_classifier", "fp32", "cpu"),
    ("max_classifier", "int8", "cpu"),
    ("max_classifier", "fp16", "cuda"),
]
PADDING = 299


def session(artifact: MakeArtifact, kind: Kind, precision: Precision, provider: Provider) -> ort.InferenceSession:
    directory = artifact(kind, precision)
    return open_session(directory, read_manifest(directory), f"{provider}/attention.onnx")


@pytest.mark.parametrize(("kind", "precision", "provider"), TRANSLATORS)
def test_a_padded_batch_has_pytorchs_matrices_of_each_pair_alone(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind, precision: Precision, provider: Provider
) -> None:
    model = translator_of(checkpoint(kind))
    found = run_translation(session(artifact, kind, precision, provider), SOURCES, TARGETS, PADDING)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        S, T = len(source), len(target)
        with torch.inference_mode():
            expected = translation_matrices(model, torch.tensor([source]), torch.tensor([S]), torch.tensor([target]))
        assert_close(found["encoder"][row, ..., :S, :S], expected.encoder[0].numpy(), precision)
        if kind == "translation_ssru":
            assert found.keys() == {"encoder", "cross"}
        else:
            assert_close(found["decoder"][row, ..., :T, :T], expected.decoder[0].numpy(), precision)
        assert_close(found["cross"][row, ..., :T, :S], expected.cross[0].numpy(), precision)


@pytest.mark.parametrize(("kind", "precision", "provider"), CLASSIFIERS)
def test_a_padded_batch_has_pytorchs_matrices_of_each_text_alone(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind, precision: Precision, provider: Provider
) -> None:
    model = classifier_of(checkpoint(kind))
    found = run_classifier(session(artifact, kind, precision, provider), SOURCES, PADDING)
    for row, source in enumerate(SOURCES):
        S = len(source)
        with torch.inference_mode():
            expected = classification_matrices(model, torch.tensor([source]), torch.tensor([S]))
        assert_close(found[row, ..., :S, :S], expected[0].numpy(), precision)


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
def test_rows_sum_to_one_and_nothing_is_given_to_padding_or_to_the_future(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    found = run_translation(session(artifact, "translation", precision, provider), SOURCES, TARGETS, PADDING)
    for matrices in found.values():
        assert matrices.dtype == np.float32
        np.testing.assert_allclose(matrices.sum(axis=-1), 1, atol=1e-5)
    for row, source in enumerate(SOURCES):
        assert not found["encoder"][row, ..., len(source) :].any()
        assert not found["cross"][row, ..., len(source) :].any()
    future = np.triu(np.ones(found["decoder"].shape[-2:], dtype=bool), 1)
    assert not found["decoder"][..., future].any()


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
def test_neither_neighbours_nor_what_is_in_the_padding_change_a_matrix(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    graph = session(artifact, "translation", precision, provider)
    rubbish = run_translation(graph, SOURCES, TARGETS, PADDING)
    zeros = run_translation(graph, SOURCES, TARGETS, 0)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = run_translation(graph, [source], [target], PADDING)
        S, T = len(source), len(target)
        for kind, (rows, columns) in {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}.items():
            matrices = rubbish[kind][row, ..., :rows, :columns]
            np.testing.assert_array_equal(zeros[kind][row, ..., :rows, :columns], matrices)
            np.testing.assert_allclose(alone[kind][0, ..., :rows, :columns], matrices, atol=1e-6)


def test_a_target_token_changes_no_row_before_it(artifact: MakeArtifact) -> None:
    graph = session(artifact, "translation", "int8", "cpu")
    longer: Sequence[list[int]] = [[*target, 7, 8] for target in TARGETS]
    before, after = (run_translation(graph, SOURCES, targets, PADDING) for targets in (TARGETS, longer))
    for row, target in enumerate(TARGETS):
        for kind in ("decoder", "cross"):
            columns = len(target) if kind == "decoder" else None
            rows = np.s_[row, ..., : len(target), :columns]
            np.testing.assert_allclose(after[kind][rows], before[kind][rows], atol=1e-6)


def assert_close(actual: NDArray[Any], expected: NDArray[Any], precision: Precision) -> None:
    """Assert at most three times the tolerance of the proof, which is over all sequences, for a single one."""
    error = np.linalg.norm(actual - expected) / np.linalg.norm(expected)
    assert error <= 3 * TOLERANCES[precision]
