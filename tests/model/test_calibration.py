import numpy as np
import torch
import torch.nn.functional as F

from model.batching import ReviewExample
from model.networks.transformer import TransformerClassifier
from model.training.calibration import best_factor, calibrate


def examples(n: int) -> list[ReviewExample]:
    random = np.random.default_rng(3)
    texts = [random.integers(4, 50, random.integers(3, 20)).astype(np.int32) for _ in range(n)]
    return [ReviewExample(text, int(random.integers(3))) for text in texts]


def logits(model: TransformerClassifier, held_out: list[ReviewExample]) -> torch.Tensor:
    return torch.cat([model(torch.tensor(e.ids)[None].long(), torch.tensor([len(e)]))[0] for e in held_out])


def test_the_factor_is_that_by_which_the_logits_were_spoilt() -> None:
    true = torch.randn(20_000, 3)
    labels = torch.distributions.Categorical(logits=true).sample()
    for spoilt in (0.2, 4.0):
        np.testing.assert_allclose(best_factor(spoilt * true, labels), 1 / spoilt, rtol=0.1)


def test_the_factor_goes_into_the_weights(classifier: TransformerClassifier) -> None:
    held_out = examples(50)
    before = logits(classifier, held_out)
    factor = calibrate(classifier, held_out)
    assert abs(factor - 1) > 0.1
    torch.testing.assert_close(logits(classifier, held_out), factor * before)


def test_what_is_calibrated_is_not_changed_by_being_calibrated_again(classifier: TransformerClassifier) -> None:
    held_out = examples(200)
    calibrate(classifier, held_out)
    np.testing.assert_allclose(calibrate(classifier, held_out), 1, rtol=0.02)


def test_held_out_labels_become_likelier_and_no_text_alone_changes_its_label(classifier: TransformerClassifier) -> None:
    held_out = examples(50)
    labels = torch.tensor([example.label for example in held_out])
    before = logits(classifier, held_out)
    calibrate(classifier, held_out)
    after = logits(classifier, held_out)
    assert F.cross_entropy(after, labels) < F.cross_entropy(before, labels)
    assert torch.equal(after.argmax(dim=-1), before.argmax(dim=-1))


def test_where_nothing_was_held_out_nothing_is_changed(classifier: TransformerClassifier) -> None:
    before = classifier.output.weight.clone()
    assert calibrate(classifier, []) == 1
    assert torch.equal(classifier.output.weight, before)
