"""A graph in int8 reads pairs of texts as PyTorch does, and each as it does alone."""

import numpy as np
import torch

from export.classifying import Classifier
from export.examination import TOLERANCES
from export.proof import TEXTS
from manifest.file import read_manifest
from model.checkpoint import load_checkpoint
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, MakeArtifact, MakeCheckpoint, classifier_of


def test_pairs_in_int8_are_near_pytorchs_and_the_same_bits_alone_and_together(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint
) -> None:
    directory, loaded = artifact("pair_classifier", "int8"), load_checkpoint(checkpoint("pair_classifier"))
    manifest, model = read_manifest(directory), classifier_of(checkpoint("pair_classifier"))
    assert manifest.pairs
    pairs = loaded.encode([*loaded.pairs_of([text[:25] for text in TEXTS]), ("No.", "No.")])
    assert max(map(len, pairs)) <= MAX_SOURCE_TOKENS
    classifier = Classifier(directory, manifest)
    found = np.array([one.logits for one in classifier.classify(pairs)])
    with torch.inference_mode():
        expected = torch.cat([model(torch.tensor([ids]), torch.tensor([len(ids)]))[0] for ids in pairs]).numpy()
        assert model.embedding.second is not None
        model.embedding.second.zero_()
        without = torch.cat([model(torch.tensor([ids]), torch.tensor([len(ids)]))[0] for ids in pairs]).numpy()
    error, effect = (np.linalg.norm(other - expected) / np.linalg.norm(expected) for other in (found, without))
    assert error < TOLERANCES["int8"] < effect
    assert [classifier.classify([ids])[0].logits.tolist() for ids in pairs] == found.tolist()
