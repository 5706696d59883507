"""Scores of self-attention by distance in a graph; queries are already scaled.

Legend: B batch, S tokens, H heads, D head_dim, E d_model, P rows of a table.
"""

import torch
from torch import Tensor

from export.onnx_attention import look_up, look_up_numbers, product, split_heads
from model.networks.attention import MultiHeadAttention, inverse_temperature
from model.networks.masks import count


def scores_by_distance(attention: MultiHeadAttention, q: Tensor, k: Tensor) -> Tensor:
    """Return the scores of q and k, each (B, H, S, D), with distances: (B, H, S, S).

    Args:
        attention: self-attention with such scores.
    """
    scores = attention.disentangled
    assert scores is not None, "the caller has asked"
    terms, H, middle = [], attention.n_heads, len(scores.rows) // 2
    shift = shift_on_cuda if q.dtype == torch.float16 else shift_on_cpu
    places = count(k.shape[2])  # from 1 to S
    rising = torch.cat([-places.flip(0), places - 1])  # (2 * S), the distances from -S to S - 1
    if scores.keys is not None:
        keys = look_up(scores.keys, look_up(scores.rows, -rising + middle))  # keys in order have falling distances
        terms.append(shift(product(q, split_heads(keys.unsqueeze(0), H, transposed=True))))
    if scores.queries is not None:
        # In float32, because ONNX Runtime folds no multiplications of float16 constants at load.
        table = (scores.queries.float() * inverse_temperature(attention.beta, attention.head_dim)).to(q.dtype)
        queries = look_up(table, look_up(scores.rows, rising + middle))
        terms.append(shift(product(k, split_heads(queries.unsqueeze(0), H, transposed=True))).transpose(-2, -1))
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def shift_on_cpu(of_distances: Tensor) -> Tensor:
    """Return, from scores (B, H, S, 2 * S) of each token with distances, those with other tokens (B, H, S, S).

    Column c of row i belongs to the other token i + c - S. Read as one long row and without its first S numbers, the
    matrix is one of 2 * S - 1 columns, in which each row begins one number earlier; its first S columns are the tokens.
    So whole rows are copied. To gather single numbers took up to twenty times as long.
    """
    B, H, S, _ = of_distances.shape
    return of_distances.flatten(2)[..., S:].reshape(B, H, S, 2 * S - 1)[..., :S]


def shift_on_cuda(of_distances: Tensor) -> Tensor:
    """Return the same as `shift_on_cpu`, without any size that a graph would compute on the CPU."""
    places = count(of_distances.shape[2])
    n = places[-1:]  # S
    return look_up_numbers(of_distances, (places.unsqueeze(1) - 1) * (2 * n - 1) + places + n - 1)
