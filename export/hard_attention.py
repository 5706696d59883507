"""Hard attention in a graph: products, an argmax and a look-up, as no fused operator computes it.

Scores are not scaled: no argmax depends on a scale.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, R decoder rows, E = H * D.
"""

import torch
from torch import Tensor

from export.onnx_attention import write_to_cache
from model.networks.masks import padding_mask


def attend_to_one(query: Tensor, key: Tensor, value: Tensor, n_keys: Tensor, n_heads: int) -> Tensor:
    """Return for each query the value of its highest-scoring key among the first n_keys[b] of row b.

    Args:
        query: (B, T, E), heads side by side.
        key, value: (B, S, E).
        n_keys: (B) int64, each from 1 to S.
        n_heads: H.

    Returns:
        The context (B, T, E).
    """
    mask = padding_mask(n_keys, key.shape[1])[:, None, None, :]
    q, k, v = (x.view(*x.shape[:2], n_heads, -1).transpose(1, 2) for x in (query, key, value))
    return value_of_highest(q, k, v, mask).transpose(1, 2).reshape(query.shape)


def attend_to_one_of_past(qkv: Tensor, key: Tensor, value: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Attend from one new token per row to one of the tokens up to it; its key and value are written at its position.

    Args:
        qkv: (R, 1, 3 * E), the heads of query, key and value side by side.
        key, value: caches (R, H, L, D).
        positions: (R) int32.

    Returns:
        The context (R, 1, E) and both caches.
    """
    R, H, L, D = key.shape
    query, new_key, new_value = (x.view(R, H, 1, D) for x in qkv.chunk(3, dim=-1))
    key, value = write_to_cache(key, new_key, positions), write_to_cache(value, new_value, positions)
    written = torch.arange(L, dtype=positions.dtype) <= positions.unsqueeze(1)  # (R, L)
    return value_of_highest(query, key, value, written[:, None, None, :]).view(R, 1, H * D), key, value


def value_of_highest(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Return the value (B, H, T, D) of the key with the highest score of each query, the first of equal ones.

    Args:
        query: (B, H, T, D).
        key, value: (B, H, S, D).
        mask: broadcastable to (B, H, T, S), True = may be attended.
    """
    scores = query @ key.transpose(-2, -1)  # (B, H, T, S)
    highest = scores.masked_fill(~mask, float("-inf")).argmax(dim=-1)  # (B, H, T)
    return value.gather(2, highest.unsqueeze(-1).expand(-1, -1, -1, value.shape[-1]))
