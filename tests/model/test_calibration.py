import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.batching import ReviewExample
from model.config import ClassifierConfig, NGramConfig, RegionConfig
from model.networks.transformer import TransformerClassifier
from model.training.calibration import calibrate, likeliest
from tests.model.tiny_configs import CLASSIFIER

N_GRAMS = NGramConfig(buckets=97, longest=3)
CONFIG = ClassifierConfig.model_validate(CLASSIFIER | {"pooling": "mean", "n_grams": N_GRAMS})


def examples(n: int) -> list[ReviewExample]:
    random = np.random.default_rng(3)
    texts = [random.integers(4, 50, random.integers(3, 20)).astype(np.int32) for _ in range(n)]
    return [ReviewExample(text, int(random.integers(3))) for text in texts]


def test_the_factors_are_those_by_which_the_logits_were_spoilt() -> None:
    torch.manual_seed(1)
    true = torch.randn(2, 20_000, 3)
    lengths = torch.randint(1, 200, (20_000,))
    counted = torch.stack([torch.ones(20_000), lengths / (lengths + 30)]).unsqueeze(-1)
    labels = torch.distributions.Categorical(logits=(counted * true).sum(dim=0)).sample()
    spoilt = true * torch.tensor([4.0, 0.2])[:, None, None]
    calibration = likeliest(spoilt, labels, lengths, has_prior=True)
    np.testing.assert_allclose(calibration.factors, [0.25, 5.0], rtol=0.1)
    np.testing.assert_allclose(calibration.prior, 30, rtol=0.2)


def test_the_factors_go_into_the_weights() -> None:
    torch.manual_seed(1)
    model = TransformerClassifier(CONFIG).eval()
    assert model.n_grams is not None
    torch.nn.init.normal_(model.n_grams.weight)
    held_out = examples(50)
    ids, lengths = torch.tensor([[5, 6, 7, 8]]), torch.tensor([4])
    n_grams = model.n_grams.pooled(ids, lengths)
    encoder = model(ids, lengths)[0] - n_grams
    calibration = calibrate(model, held_out)
    assert calibration is not None
    first, second = calibration.factors
    counted = 4 / (4 + calibration.prior)
    torch.testing.assert_close(model(ids, lengths)[0], first * encoder + counted * second * n_grams)


def test_every_part_gets_a_factor_of_its_own() -> None:
    torch.manual_seed(1)
    lengths = torch.randint(1, 200, (20_000,))
    true = torch.randn(3, 20_000, 3)
    counted = torch.stack([torch.ones(20_000), lengths / (lengths + 30), torch.ones(20_000)]).unsqueeze(-1)
    labels = torch.distributions.Categorical(logits=(counted * true).sum(dim=0)).sample()
    spoilt = true * torch.tensor([4.0, 0.2, 2.0])[:, None, None]
    calibration = likeliest(spoilt, labels, lengths, has_prior=True)
    np.testing.assert_allclose(calibration.factors, [0.25, 5.0, 0.5], rtol=0.1)
    without = likeliest(true[::2] * 2.0, labels, lengths, has_prior=False)
    assert without.prior == 0
    np.testing.assert_allclose(without.factors, [0.5, 0.5], rtol=0.2)


@pytest.mark.parametrize("n_grams", [N_GRAMS, None])
def test_the_factor_of_regions_goes_into_their_weights(n_grams: NGramConfig | None) -> None:
    torch.manual_seed(1)
    parts = {"n_grams": n_grams, "regions": RegionConfig(width=8, detectors=13)}
    model = TransformerClassifier(CONFIG.model_copy(update=parts)).eval()
    assert model.regions is not None
    ids, lengths = torch.tensor([[5, 6, 7, 8]]), torch.tensor([4])
    regions, text = model.regions.pooled(ids, lengths), model(ids, lengths)[0]
    calibration = calibrate(model, examples(50))
    assert calibration is not None
    encoder, *_, of_regions = calibration.factors
    torch.testing.assert_close(model.regions.pooled(ids, lengths), of_regions * regions)
    if n_grams is None:
        torch.testing.assert_close(model(ids, lengths)[0], encoder * (text - regions) + of_regions * regions)


def test_what_is_calibrated_is_not_changed_by_being_calibrated_again() -> None:
    torch.manual_seed(1)
    model = TransformerClassifier(CONFIG).eval()
    assert model.n_grams is not None
    torch.nn.init.normal_(model.n_grams.weight)
    held_out = examples(200)
    calibrate(model, held_out)
    again = calibrate(model, held_out)
    assert again is not None
    np.testing.assert_allclose(again.factors, 1, rtol=0.02)


def test_held_out_labels_become_likelier_and_no_text_alone_changes_its_label() -> None:
    torch.manual_seed(1)
    model = TransformerClassifier(CONFIG.model_copy(update={"n_grams": None})).eval()
    held_out = examples(50)

    def logits() -> torch.Tensor:
        return torch.cat([model(torch.tensor(e.ids)[None].long(), torch.tensor([len(e)]))[0] for e in held_out])

    labels = torch.tensor([example.label for example in held_out])
    before = logits()
    calibrate(model, held_out)
    assert F.cross_entropy(logits(), labels) < F.cross_entropy(before, labels)
    assert torch.equal(logits().argmax(dim=-1), before.argmax(dim=-1))
