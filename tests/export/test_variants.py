"""Every variant of the lecture's Transformer: ONNX Runtime computes the same as PyTorch, attention included.

PyTorch reads each sequence alone and decodes without a cache; ONNX Runtime gets padded batches, and rows at different
positions.
"""

from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.artifact import export, served_models, write
from export.attention_proof import run_classifier, run_translation
from export.classifying import Classifier
from export.decoding import Translator
from export.session import open_session
from export.tracing import ExportError
from manifest.schema import Precision
from model.checkpoint import Checkpoint, load_checkpoint
from model.decoding.search import greedy_search_uncached
from model.networks.matrices import classification_matrices, translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier
from model.tokenizer import BOS_ID
from tests.export.tiny_checkpoints import CLASSIFICATION, LIKE_T5, TRANSLATION, write_model

pytestmark = pytest.mark.slow

Values = dict[str, Any]

POSITIONS: list[Values] = [{"positions": name} for name in ("none", "sinusoidal", "learned", "rotary")]
ACTIVATIONS: list[Values] = [{"activation": name} for name in ("relu", "gelu", "swiglu")]
ATTENTIONS: list[Values] = [{"attention": "soft"}, {"attention": "soft", "beta": 0.9}, {"attention": "hard"}]
NORMS: list[Values] = [{"norm": "post"}, {"norm": "pre"}]
WIDTHS: list[Values] = [{}, {"d_encoder": 36}, {"n_heads": 1}, {"n_heads": 12}]
COVER = [
    (positions, activation, ATTENTIONS[(i + j) % 3], NORMS[(i + (j > 0)) % 2], WIDTHS[(i + 3 * j) % 4])
    for i, positions in enumerate(POSITIONS)
    for j, activation in enumerate(ACTIVATIONS)
]
"""Combinations in which every pair of values of the first four kinds occurs, and every width."""
SMALL = {"n_encoder_layers": 1, "n_decoder_layers": 1}
RELATIVE: list[Values] = [
    LIKE_T5,
    LIKE_T5
    | {"relative_positions": {"buckets": 8, "max_distance": 9, "per_layer": True}, "head_dim": 5, "d_encoder": 36}
    | {"activation": "reglu", "n_decoder_layers": 2},
]
TRANSLATORS = [{name: value for values in row for name, value in values.items()} for row in COVER] + RELATIVE
CLASSIFIERS: list[Values] = [
    {"positions": "none", "activation": "gelu", "beta": 0.9},
    {"positions": "learned", "activation": "swiglu", "attention": "hard", "norm": "pre"},
    {"positions": "rotary", "activation": "swiglu", "n_heads": 1},
    {"activation": "geglu", "norm": "pre", "bias": False, "relative_positions": {"buckets": 8, "max_distance": 9}},
]

RANDOM = np.random.default_rng(7)
SEQUENCES = [RANDOM.integers(4, 300, length).tolist() for length in (9, 2, 30, 4, 17)]
PADDING = 299
MAX_TARGET_TOKENS = 16


@pytest.fixture(autouse=True)
def _graphs_of_the_cpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export no graphs for CUDA: other tests prove those of fewer models."""
    monkeypatch.setattr("export.artifact.served_models", lambda *given: {"cpu": served_models(*given)["cpu"]})


def name_of(values: Values) -> str:
    return "-".join(str(value) for value in values.values() if not isinstance(value, dict))


def test_the_cover_has_every_pair_of_values() -> None:
    kinds = [POSITIONS, ACTIVATIONS, ATTENTIONS, NORMS]
    assert all(any(row[4] == width for row in COVER) for width in WIDTHS)
    for (i, these), (j, those) in combinations(enumerate(kinds), 2):
        for one, other in product(these, those):
            assert any(row[i] == one and row[j] == other for row in COVER), (one, other)


@pytest.mark.parametrize("values", TRANSLATORS, ids=name_of)
@torch.inference_mode()
def test_a_translator_exports_to_what_it_is(tmp_path: Path, values: Values) -> None:
    model, manifest = written(tmp_path, TRANSLATION | SMALL | values)
    assert isinstance(model, Transformer)
    expected = [
        greedy_search_uncached(model, torch.tensor([s]), torch.tensor([len(s)]), MAX_TARGET_TOKENS)[0]
        for s in SEQUENCES
    ]
    translator = Translator(tmp_path / "out", manifest, n_rows=3)
    found = translator.greedy(SEQUENCES, MAX_TARGET_TOKENS, admit_per_step=1)
    assert [h.ids for h in found] == [h.ids for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)
    assert len({tuple(h.ids) for h in expected}) > 2, "a model that says one thing of everything shows nothing"

    targets = [[BOS_ID, *h.ids] for h in expected]
    matrices = run_translation(
        open_session(tmp_path / "out", manifest, "cpu/attention.onnx"), SEQUENCES, targets, PADDING
    )
    for row, (source, target) in enumerate(zip(SEQUENCES, targets, strict=True)):
        S, T = len(source), len(target)
        alone = translation_matrices(model, torch.tensor([source]), torch.tensor([S]), torch.tensor([target]))
        for kind, rows, columns in (("encoder", S, S), ("decoder", T, T), ("cross", T, S)):
            matrix = matrices[kind][row, ..., :rows, :columns]
            np.testing.assert_allclose(matrix, getattr(alone, kind)[0].numpy(), atol=1e-4)
            if values.get("attention") == "hard":
                assert set(np.unique(matrix)) <= {0, 1}


@pytest.mark.parametrize("values", CLASSIFIERS, ids=name_of)
@torch.inference_mode()
def test_a_classifier_exports_to_what_it_is(tmp_path: Path, values: Values) -> None:
    model, manifest = written(tmp_path, CLASSIFICATION | {"n_encoder_layers": 2} | values)
    assert isinstance(model, TransformerClassifier)
    found = Classifier(tmp_path / "out", manifest).classify(SEQUENCES)
    matrices = run_classifier(open_session(tmp_path / "out", manifest, "cpu/attention.onnx"), SEQUENCES, PADDING)
    for sequence, classification, matrix in zip(SEQUENCES, found, matrices, strict=True):
        S = len(sequence)
        logits, token_logits = model(torch.tensor([sequence]), torch.tensor([S]))
        np.testing.assert_allclose(classification.logits, logits[0].numpy(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(classification.token_logits, token_logits[0].numpy(), rtol=1e-3, atol=1e-4)
        alone = classification_matrices(model, torch.tensor([sequence]), torch.tensor([S]))[0].numpy()
        np.testing.assert_allclose(matrix[..., :S, :S], alone, atol=1e-4)


@pytest.mark.parametrize("precision", ["int8", "fp16"])
def test_hard_attention_is_never_rounded(tmp_path: Path, precision: Precision) -> None:
    write_model(tmp_path / "checkpoint", "variant", TRANSLATION | {"attention": "hard"})
    with pytest.raises(ExportError, match=f"only be exported as fp32: .* {precision} could choose"):
        export(tmp_path / "checkpoint", tmp_path / "out", precision)
    assert not (tmp_path / "out").exists()


def written(directory: Path, model: Values) -> tuple[Transformer | TransformerClassifier, Any]:
    """Return a model and the manifest of its float32 artifact, written to directory / "out"."""
    write_model(directory / "checkpoint", "variant", model, eos=2)
    checkpoint: Checkpoint = load_checkpoint(directory / "checkpoint")
    (directory / "out").mkdir()
    return checkpoint.model, write(directory / "checkpoint", checkpoint, "fp32", directory / "out")
