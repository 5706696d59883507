"""Hard attention in a graph: products, an argmax and a look-up. No fused operator has it.

It takes what `export.onnx_attention` takes, but no scale, which no argmax depends on.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, R decoder rows, E = H * D.
"""

import torch
from torch import Tensor

from export.onnx_attention import write_to_cache
from model.transformer import padding_mask


def attend_to_one(query: Tensor, key: Tensor, value: Tensor, n_keys: Tensor, n_heads: int) -> Tensor:
    """Each query's context is the value of one key: of the first n_keys[b] of row b the one with the highest score.

    Args:
        query, key, value: (B, T, E) and twice (B, S, E), heads side by side; or (B, H, T, D) and twice (B, H, S, D).
        n_keys: (B) int64, each from 1 to S.
        n_heads: H.

    Returns:
        The context, shaped like `query`.
    """
    if query.dim() == 3:
        q, k, v = (split_heads(x, n_heads) for x in (query, key, value))
        return attend_to_one(q, k, v, n_keys, n_heads).transpose(1, 2).flatten(2)
    return value_of_highest(query, key, value, padding_mask(n_keys, key.shape[2])[:, None, None, :])


def attend_to_one_of_past(
    qkv: Tensor, key: Tensor, value: Tensor, positions: Tensor, n_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """One new token per row: its key and value are written at the row's own position; it sees one of all up to there.

    Args:
        qkv: (R, 1, 3 * E), the heads of query, key and value side by side.
        key, value: caches (R, H, L, D).
        positions: (R) int32.
        n_heads: H.

    Returns:
        The context (R, 1, E), and both caches.
    """
    query, new_key, new_value = (split_heads(x, n_heads) for x in qkv.chunk(3, dim=-1))  # each (R, H, 1, D)
    key, value = write_to_cache(key, new_key, positions), write_to_cache(value, new_value, positions)
    written = torch.arange(key.shape[2]) <= positions.unsqueeze(1)  # (R, L)
    context = value_of_highest(query, key, value, written[:, None, None, :])
    return context.transpose(1, 2).flatten(2), key, value


def value_of_highest(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """The value (B, H, T, D) of the key with each query's highest score, the first of equals.

    Args:
        query: (B, H, T, D).
        key, value: (B, H, S, D).
        mask: broadcastable to (B, H, T, S), True = may be attended.
    """
    scores = query @ key.transpose(-2, -1)  # (B, H, T, S)
    highest = scores.masked_fill(~mask, float("-inf")).argmax(dim=-1)  # (B, H, T)
    return value.gather(2, highest.unsqueeze(-1).expand(-1, -1, -1, value.shape[-1]))


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, E) to (B, H, T, D)."""
    B, T, E = x.shape
    return x.view(B, T, n_heads, E // n_heads).transpose(1, 2)
