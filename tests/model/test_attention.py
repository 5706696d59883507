import math

import pytest
import torch

from model.networks.attention import MultiHeadAttention, hard_weights, one_hot_of_highest, scaled_dot_product_attention
from model.networks.masks import padding_mask

B, T, S, E, H = 2, 4, 5, 24, 3


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


def attend_in_columns(beta: float, *, hard: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The lecture's self-attention without weights, with vectors as columns of X, n = 2 by t = 3, H and A."""
    columns = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    rows = columns.T[None, None]
    context, weights = scaled_dot_product_attention(rows, rows, rows, beta=beta, hard=hard)
    H, A = context[0, 0].T, weights[0, 0].T
    torch.testing.assert_close(H, columns @ A)
    return H, A


def test_soft_attention_is_the_lectures_h_equals_x_a() -> None:
    """a = soft(arg)max_beta(X^T x) and h = Xa (lecture, "Self Attention (II)"); with beta = ln 2, e^beta is 2."""
    H, A = attend_in_columns(math.log(2))
    # X^T X is [1 0 1; 0 1 1; 1 1 2]: each column of A is 2 to these powers over their sum.
    torch.testing.assert_close(A, torch.tensor([[2 / 5, 1 / 5, 1 / 4], [1 / 5, 2 / 5, 1 / 4], [2 / 5, 2 / 5, 1 / 2]]))
    torch.testing.assert_close(H, torch.tensor([[4 / 5, 3 / 5, 3 / 4], [3 / 5, 4 / 5, 3 / 4]]))
    torch.testing.assert_close(A.norm(p=1, dim=0), torch.ones(3))


def test_hard_attention_is_the_lectures_one_hot_vector() -> None:
    """With an argmax, h is the column that x is most like, and the first of equals."""
    H, A = attend_in_columns(1.0, hard=True)
    assert torch.equal(A, torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    assert torch.equal(H, torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))


def test_a_query_finds_the_lectures_recipe_by_its_title() -> None:
    """One query against the titles of a book (lecture, "Key-value store"); a recipe is longer than its title."""
    titles = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])  # lasagne, something like it, something else
    recipes = torch.tensor([[7.0, 0.0, 0.0], [0.0, 7.0, 0.0], [0.0, 0.0, 7.0]])
    query = torch.tensor([[1.0, 0.0]])
    book = (query[None, None], titles[None, None], recipes[None, None])
    soft, _ = scaled_dot_product_attention(*book, beta=math.log(2))
    torch.testing.assert_close(soft[0, 0, 0], torch.tensor([4.0, 2.0, 1.0]))
    hard, _ = scaled_dot_product_attention(*book, hard=True)
    assert torch.equal(hard[0, 0, 0], recipes[0])


def test_multi_head_attention_is_the_lectures_code() -> None:
    """Lecture, "Code Summary": split heads, scaled dot products, group heads, W_h; W_q, W_k and W_v have no bias."""
    attention = MultiHeadAttention(E, H, (24, 16, 20))
    inputs = torch.randn(B, T, 24), torch.randn(B, S, 16), torch.randn(B, S, 20)
    dense = attention.query, attention.key, attention.value
    for layer in dense:
        torch.nn.init.zeros_(layer.bias)
    heads = []
    for weights in zip(*(layer.weight.chunk(H) for layer in dense), strict=True):
        q, k, v = (x @ weight.T for x, weight in zip(inputs, weights, strict=True))
        heads.append(torch.softmax(q / math.sqrt(E // H) @ k.transpose(1, 2), dim=-1) @ v)
    torch.testing.assert_close(attention(*inputs), attention.output(torch.cat(heads, dim=-1)))


def test_the_stacked_product_of_self_attention_equals_separate_projections() -> None:
    attention = MultiHeadAttention(E, H)
    x = torch.randn(B, T, E)
    q, k, v = attention.project_self(x)
    torch.testing.assert_close(q, attention.project_query(x))
    torch.testing.assert_close((k, v), attention.project_memory(x, x.clone()))


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
