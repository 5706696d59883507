import pytest
import torch
import torch.nn.functional as F

from model.training.loss import CHUNK, divergence, linear_cross_entropy


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


@pytest.mark.parametrize("n_tokens", [1, CHUNK // 2, CHUNK + 3])
def test_chunked_divergence_of_two_passes_equals_its_definition(n_tokens: int) -> None:
    hidden, weight = torch.randn(2 * n_tokens, 24, requires_grad=True), torch.randn(50, 24, requires_grad=True)
    targets = torch.randint(0, 50, (n_tokens,)).repeat(2)
    loss = linear_cross_entropy(hidden, weight, targets, label_smoothing=0.1, r_drop=3.0)
    gradients = torch.autograd.grad(3 * loss, (hidden, weight))
    logits = hidden @ weight.T
    first, second = F.log_softmax(logits, dim=-1).chunk(2)
    apart = F.kl_div(first, second, reduction="batchmean", log_target=True)
    apart = apart + F.kl_div(second, first, reduction="batchmean", log_target=True)
    torch.testing.assert_close(divergence(logits), apart / 4)
    expected = F.cross_entropy(logits, targets, label_smoothing=0.1) + 3.0 * apart / 4
    expected_gradients = torch.autograd.grad(3 * expected, (hidden, weight))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients, expected_gradients)
