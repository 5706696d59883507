"""Replaced tokens: what the detector learns, and what is drawn in their places."""

import numpy as np
import pytest
import torch

from model.batching import MaskedBatch, ReviewExample, collate_masked
from model.checkpoint import build_model
from model.networks.transformer import TransformerClassifier
from model.training import pretraining
from model.training.pretraining import ReplacedTokenDetection, _sampled
from tests.model.tiny_training import classifier_experiment

TEXTS = [[11, 12, 13, 14] * 6, [21, 22, 23, 24] * 6, [31, 32, 33] * 5]
WORDS = torch.tensor(sorted({word for text in TEXTS for word in text}))


def batch(seed: int) -> MaskedBatch:
    examples = [ReviewExample(np.array(text, dtype=np.int32), 0) for text in TEXTS]
    return collate_masked(examples, masked=0.3, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def pretrained(monkeypatch: pytest.MonkeyPatch) -> ReplacedTokenDetection:
    torch.manual_seed(1)
    # A generator knows these texts soon, and then replaces nothing.
    monkeypatch.setattr(pretraining, "_sampled", lambda hidden, _: WORDS[torch.randint(len(WORDS), hidden.shape[:1])])
    model = build_model(classifier_experiment())
    assert isinstance(model, TransformerClassifier)
    detection = ReplacedTokenDetection(model, generator_layers=1)
    optimizer = torch.optim.AdamW(detection.parameters(), lr=5e-3)
    for step in range(150):
        optimizer.zero_grad()
        detection(batch(step)).backward()
        optimizer.step()
    return detection.eval()


def test_it_finds_tokens_that_are_not_the_texts_own(pretrained: ReplacedTokenDetection) -> None:
    own = batch(seed=0)
    ids = own.targets.clone()
    ids[0, 5], ids[1, 9], ids[2, 0] = 33, 14, 22
    real = torch.arange(ids.shape[1]) < own.lengths.unsqueeze(1)
    scores = pretrained.scores(ids, real)
    replaced = ids != own.targets
    assert scores[replaced].min() > scores[~replaced & real].max()


def test_padding_and_what_lies_in_it_change_no_loss(pretrained: ReplacedTokenDetection) -> None:
    losses = []
    for padding in (0, 77):
        one = batch(seed=3)
        real = torch.arange(one.ids.shape[1]) < one.lengths.unsqueeze(1)
        ids, targets = (x.masked_fill(~real, padding) for x in (one.ids, one.targets))
        torch.manual_seed(5)
        losses.append(pretrained(MaskedBatch(ids, one.lengths, targets, one.masked)).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    torch.manual_seed(1)
    hidden, vocabulary = torch.randn(1, 8), torch.randn(5, 8)
    expected = (hidden @ vocabulary.T).softmax(dim=-1)[0]
    drawn = _sampled(hidden.expand(20_000, -1), vocabulary)
    torch.testing.assert_close(torch.bincount(drawn, minlength=5) / 20_000, expected, atol=0.015, rtol=0)
