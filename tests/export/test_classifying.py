"""The classifier graph against PyTorch, and against itself."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from export.classifying import Classifier
from export.examination import TOLERANCES
from export.padding import pad
from manifest.file import read_manifest
from manifest.schema import Precision, Provider
from model.checkpoint import load_checkpoint
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint

RANDOM = np.random.default_rng(7)
SEQUENCES = [RANDOM.integers(4, 300, length).tolist() for length in (9, 1, 30, 4, 17, 60)]
CASES = [
    ("mean_classifier", "fp32", "cpu"),
    ("max_classifier", "fp32", "cpu"),
    ("first_classifier", "fp32", "cpu"),
    ("first_classifier", "int8", "cpu"),
    ("first_classifier", "fp16", "cuda"),
    ("disentangled_classifier", "fp32", "cpu"),
    ("disentangled_classifier", "fp16", "cuda"),
    ("mean_classifier", "int8", "cpu"),
    ("mean_classifier", "fp16", "cuda"),
    ("max_classifier", "fp16", "cuda"),
]


@pytest.mark.parametrize(("kind", "precision", "provider"), CASES)
def test_logits_are_pytorchs(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind, precision: Precision, provider: Provider
) -> None:
    model = load_checkpoint(checkpoint(kind)).model
    directory = artifact(kind, precision)
    results = Classifier(directory, read_manifest(directory), provider).classify(SEQUENCES)
    with torch.inference_mode():
        expected = [model(torch.tensor([sequence]), torch.tensor([len(sequence)])) for sequence in SEQUENCES]
    error = relative_error([r.logits for r in results], [logits for logits, _ in expected])
    assert error <= TOLERANCES[precision]
    of_tokens = [result.token_logits for result in results if result.token_logits is not None]
    if kind in ("first_classifier", "disentangled_classifier"):
        assert not of_tokens
    else:
        assert relative_error(of_tokens, [each for _, each in expected]) <= TOLERANCES[precision]


def relative_error(found: Sequence[NDArray[np.float32]], expected: Sequence[torch.Tensor]) -> float:
    """Return the error in Euclidean norms over all arrays, as the proof measures it."""
    actual = np.concatenate([array.ravel() for array in found])
    wanted = np.concatenate([tensor.numpy().ravel() for tensor in expected])
    return float(np.linalg.norm(actual - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize(("kind", "precision", "provider"), CASES)
def test_neither_neighbours_nor_padding_change_an_answer(
    artifact: MakeArtifact, kind: Kind, precision: Precision, provider: Provider
) -> None:
    directory = artifact(kind, precision)
    classifier = Classifier(directory, read_manifest(directory), provider)
    ids, lengths = pad(SEQUENCES, padding=299)
    logits, token_logits = classifier.run(ids, lengths)
    for row, sequence in enumerate(SEQUENCES):
        alone = classifier.classify([sequence])[0]
        assert logits[row] == pytest.approx(alone.logits, abs=1e-4)
        if token_logits is None or alone.token_logits is None:
            continue
        assert token_logits[row, : len(sequence)] == pytest.approx(alone.token_logits, abs=1e-4)
        assert not token_logits[row, len(sequence) :].any()


@pytest.mark.parametrize(
    ("kind", "precision"),
    [("first_classifier", "fp32"), ("first_classifier", "int8"), ("disentangled_classifier", "fp32")],
)
def test_logits_of_one_state_are_the_same_bits_alone_and_together(
    artifact: MakeArtifact, kind: Kind, precision: Precision
) -> None:
    directory = artifact(kind, precision)
    classifier = Classifier(directory, read_manifest(directory))
    for n_sequences in (1, 2, 3, 8, 33):
        together = classifier.classify(SEQUENCES * n_sequences)
        for sequence, found in zip(SEQUENCES, together, strict=False):
            assert found.logits.tolist() == classifier.classify([sequence])[0].logits.tolist()
