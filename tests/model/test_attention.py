import pytest
import torch

from model.attention import MultiHeadAttention, scaled_dot_product_attention
from model.transformer import causal_mask, padding_mask

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
def test_forward_equals_the_path_that_returns_the_attention_matrix(
    fused: bool, d_input: tuple[int, int, int] | None
) -> None:
    attention = MultiHeadAttention(E, H, d_input)
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
