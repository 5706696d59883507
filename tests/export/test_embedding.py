"""The graphs of an encoder of texts against PyTorch, and against themselves."""

import numpy as np
import pytest
import torch

from export.examination import TOLERANCES
from export.session import open_session
from manifest.file import read_manifest
from manifest.layout import WEIGHTS
from manifest.schema import Precision, Provider
from model.checkpoint import load_checkpoint
from model.networks.transformer import TransformerEncoder
from model.weights import read_weights
from service.base.artifact import read_artifact
from service.runner.one_pass import EmbeddingRunner, project
from service.runner.provider import Provider as ServingProvider
from service.runner.weights import load_session
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint

RANDOM = np.random.default_rng(7)
SEQUENCES = [RANDOM.integers(4, 300, length).tolist() for length in (9, 1, 30, 4, 17, 60)]
POOLED = RANDOM.standard_normal((7, 48)).astype(np.float32)


@pytest.mark.parametrize(("precision", "provider"), [("fp32", "cpu"), ("int8", "cpu"), ("fp16", "cuda")])
@torch.inference_mode()
def test_dense_layers_are_pytorchs(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, precision: Precision, provider: Provider
) -> None:
    model = load_checkpoint(checkpoint("embedder")).model
    assert isinstance(model, TransformerEncoder)
    directory = artifact("embedder", precision)
    session = open_session(directory, read_manifest(directory), f"{provider}/dense.onnx")
    (projected,) = session.run(None, {"pooled": POOLED})
    tolerance = 1e-5 if provider == "cpu" else TOLERANCES[precision]
    np.testing.assert_allclose(projected, model.project(torch.from_numpy(POOLED)), atol=tolerance)


def test_dense_layers_are_never_made_bytes_of(artifact: MakeArtifact) -> None:
    stored = read_weights(artifact("embedder", "int8") / WEIGHTS)
    assert stored["dense.0.weight"].dtype == torch.float32
    assert stored["encoder.layers.0.feed_forward.hidden.weight"].dtype == torch.int8


@pytest.mark.parametrize(
    ("kind", "precision"), [("embedder", "fp32"), ("embedder", "int8"), ("local_embedder", "fp32")]
)
def test_the_service_gets_the_same_bits_alone_and_together(
    artifact: MakeArtifact, kind: Kind, precision: Precision
) -> None:
    found, cpu = read_artifact(artifact(kind, precision)), ServingProvider("cpu", 1)
    encoder = EmbeddingRunner(found, load_session(found, cpu, "encoder.onnx"))
    for sequence, states in zip(SEQUENCES, encoder.embed(SEQUENCES), strict=True):
        assert states.tolist() == encoder.embed([sequence])[0].tolist()
    if not found.manifest.has_dense:
        return
    dense = load_session(found, cpu, "dense.onnx")
    assert project(dense, POOLED).tolist() == [project(dense, row[None])[0].tolist() for row in POOLED]
