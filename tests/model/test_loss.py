import pytest
import torch
import torch.nn.functional as F

from model.training.loss import CHUNK, linear_cross_entropy


@pytest.mark.parametrize("n_tokens", [1, CHUNK, 2 * CHUNK + 3])
def test_chunked_loss_and_gradients_equal_pytorchs(n_tokens: int) -> None:
    hidden, weight = torch.randn(n_tokens, 24, requires_grad=True), torch.randn(50, 24, requires_grad=True)
    targets = torch.randint(0, 50, (n_tokens,))
    loss = linear_cross_entropy(hidden, weight, targets, label_smoothing=0.1)
    gradients = torch.autograd.grad(3 * loss, (hidden, weight))
    expected = F.cross_entropy(hidden @ weight.T, targets, label_smoothing=0.1)
    expected_gradients = torch.autograd.grad(3 * expected, (hidden, weight))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients, expected_gradients)


def test_the_loss_of_no_tokens_is_zero_and_has_no_gradients() -> None:
    """A batch of one short text may have no unmasked token."""
    hidden, weight = torch.randn(0, 24, requires_grad=True), torch.randn(50, 24, requires_grad=True)
    loss = linear_cross_entropy(hidden, weight, torch.empty(0, dtype=torch.long), label_smoothing=0.1)
    loss.backward()
    assert loss.item() == 0
    assert weight.grad is not None
    assert not weight.grad.any()
