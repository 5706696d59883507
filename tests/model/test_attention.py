import pytest
import torch

from model.networks.attention import MultiHeadAttention, hard_weights, one_hot_of_highest, scaled_dot_product_attention
from model.networks.masks import causal_mask, padding_mask

B, T, S, E, H = 2, 4, 5, 24, 3


def test_every_row_of_the_attention_matrix_sums_to_one_and_gives_nothing_to_masked_keys() -> None:
    mask = padding_mask(torch.tensor([5, 2]), S)[:, None, None, :]
    _, weights = scaled_dot_product_attention(
        torch.randn(B, H, T, 8), torch.randn(B, H, S, 8), torch.randn(B, H, S, 8), mask
    )
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, H, T))
    assert torch.all(weights[1, :, :, 2:] == 0)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("d_input", [None, (24, 16, 20), (12, 12, 12)])
@pytest.mark.parametrize(("beta", "hard"), [(None, False), (1.7, False), (None, True)])
def test_forward_equals_the_path_that_returns_the_attention_matrix(
    fused: bool, d_input: tuple[int, int, int] | None, beta: float | None, hard: bool
) -> None:
    attention = MultiHeadAttention(E, H, d_input, beta, hard)
    attention.fused = fused
    d_query, d_key, d_value = d_input or (E, E, E)
    query, key, value = torch.randn(B, T, d_query), torch.randn(B, S, d_key), torch.randn(B, S, d_value)
    mask = padding_mask(torch.tensor([5, 3]), S)[:, None, None, :]
    expected, weights = attention.attention_matrix(query, key, value, mask)
    torch.testing.assert_close(attention(query, key, value, mask), expected)
    assert weights.shape == (B, H, T, S)


def test_the_stacked_product_of_self_attention_equals_separate_projections() -> None:
    attention = MultiHeadAttention(E, H)
    x = torch.randn(B, T, E)
    q, k, v = attention.project_self(x)
    torch.testing.assert_close(q, attention.project_query(x))
    torch.testing.assert_close((k, v), attention.project_memory(x, x.clone()))


def test_the_causal_mask_leaks_nothing_from_the_future() -> None:
    attention = MultiHeadAttention(E, H)
    x = torch.randn(B, T, E)
    changed = x.clone()
    changed[:, -1] += 1
    before, after = (attention(y, y, y, causal_mask(T)) for y in (x, changed))
    torch.testing.assert_close(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


def test_heads_that_do_not_divide_the_width_are_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="d_model 24 is not a multiple of n_heads 5"):
        MultiHeadAttention(24, 5)


def test_beta_is_one_over_the_root_of_head_dim_unless_it_is_chosen() -> None:
    q, k, v = torch.randn(B, H, T, 8), torch.randn(B, H, S, 8), torch.randn(B, H, S, 8)
    default, _ = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, beta=8**-0.5)[0], default)
    _, weights = scaled_dot_product_attention(q, k, v, beta=1.7)
    torch.testing.assert_close(weights, (1.7 * q @ k.transpose(-2, -1)).softmax(dim=-1))


def test_hard_attention_is_soft_attention_of_a_large_beta() -> None:
    q, k, v = torch.randn(B, H, T, 8), torch.randn(B, H, S, 8), torch.randn(B, H, S, 8)
    first, second = (q @ k.transpose(-2, -1)).topk(2, dim=-1).values.unbind(dim=-1)
    assert (first - second).min() > 1e-3, "a tie"
    mask = padding_mask(torch.tensor([5, 2]), S)[:, None, None, :]
    hard, hard_matrix = scaled_dot_product_attention(q, k, v, mask, hard=True)
    soft, soft_matrix = scaled_dot_product_attention(q, k, v, mask, beta=1e5)
    torch.testing.assert_close(hard, soft)
    torch.testing.assert_close(hard_matrix, soft_matrix)


def test_the_highest_is_the_first_of_equals_and_never_masked() -> None:
    scores = torch.tensor([[1.0, 2.0, 2.0], [float("-inf"), -5.0, float("-inf")]])
    assert one_hot_of_highest(scores).tolist() == [[False, True, False], [False, True, False]]


def test_hard_weights_are_one_hot_and_have_the_gradient_of_soft_ones() -> None:
    scores, weight = torch.randn(B, H, T, S), torch.randn(B, H, T, S)
    scores[1, ..., 2:] = float("-inf")
    hard, soft = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    weights = hard_weights(hard)
    assert torch.equal(weights, one_hot_of_highest(scores).float())
    (weights * weight).sum().backward()
    (soft.softmax(dim=-1) * weight).sum().backward()
    assert hard.grad is not None
    assert soft.grad is not None
    assert torch.any(hard.grad != 0)
    torch.testing.assert_close(hard.grad, soft.grad)
