"""The ONNX operators around attention, as functions that `torch.onnx.export` turns into one node each.

`torch.onnx.ops.symbolic` only states the shape of its result and computes nothing, so modules with these functions can
be traced but not called.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, R decoder rows, E = H * D.
"""

from typing import Any

import torch
from torch import Tensor

from model.networks.masks import count

OPSET = 24
"""First opset whose `Attention` counts the valid keys of each row and which has `TensorScatter`."""


def attend(
    query: Tensor, key: Tensor, value: Tensor, n_keys: Tensor, n_heads: int, bias: Tensor | None = None
) -> Tensor:
    """Fused dot-product attention in which row b sees its first n_keys[b] keys, without a mask.

    Args:
        query, key, value: (B, T, E) and twice (B, S, E), heads side by side; or (B, H, T, D) and twice (B, H, S, D).
            Queries are already scaled.
        n_keys: (B) int64, each from 1 to S.
        n_heads: H.
        bias: numbers that are added to the scores, broadcastable to (B, H, T, S).

    Returns:
        The context, shaped like `query`.

    Source: ONNX operator `Attention`, version 24, input `nonpad_kv_seqlen`.
    """
    attributes: dict[str, Any] = {"scale": 1.0}
    if query.dim() == 3:
        attributes |= {"q_num_heads": n_heads, "kv_num_heads": n_heads}
    return torch.onnx.ops.symbolic(
        "Attention",
        (query, key, value, bias, None, None, n_keys),
        attrs=attributes,
        dtype=query.dtype,
        shape=query.shape,
        version=OPSET,
    )


def attend_to_past(
    qkv: Tensor,
    key: Tensor,
    value: Tensor,
    positions: Tensor,
    total_length: Tensor,
    n_heads: int,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend from one new token per row to all tokens up to it; its key and value are written at its position.

    ONNX Runtime writes in place when one buffer is bound both as a cache and as its result. It reads only the valid
    part of a row, so a cache may be much longer than its content.

    Args:
        qkv: (R, 1, 3 * E), the heads of query, key and value side by side, queries already scaled.
        key, value: caches (R, H, L, D).
        positions: (R) int32.
        total_length: (1) int32, the largest of `positions` plus one.
        n_heads: H.
        bias: (R, H, 1, n), of the keys at `places_of_keys`; added to the scores.

    Returns:
        The context (R, 1, E) and both caches.

    Source: ONNX Runtime's operator `GroupQueryAttention` (Ainslie et al. 2023), here with as many groups as heads. It
    requires a head_dim that is a multiple of 8; others use `TensorScatter` and `Attention`, which read the whole cache.
    """
    R, _, width = qkv.shape
    if not is_grouped(key):
        query, *key_and_value = (x.view(R, n_heads, 1, -1) for x in qkv.chunk(3, dim=-1))
        key, value = (write_to_cache(*pair, positions) for pair in zip((key, value), key_and_value, strict=True))
        context = attend(query, key, value, positions.long() + 1, n_heads, bias)
        return context.view(R, 1, -1), key, value
    context, new_key, new_value = torch.onnx.ops.symbolic_multi_out(
        "com.microsoft::GroupQueryAttention",
        (qkv, None, None, key, value, positions, total_length, *([] if bias is None else [None, None, None, bias])),
        attrs={"num_heads": n_heads, "kv_num_heads": n_heads, "scale": 1.0},
        dtypes=(qkv.dtype, key.dtype, value.dtype),
        shapes=((R, 1, width // 3), key.shape, value.shape),
        version=1,
    )
    return context, new_key, new_value


def is_grouped(cache: Tensor) -> bool:
    """Whether attention to a cache (R, H, L, D) is `GroupQueryAttention`."""
    return cache.shape[-1] % 8 == 0


def places_of_keys(cache: Tensor, total_length: Tensor) -> Tensor:
    """Return the places (n) of the keys that attention to a cache (R, H, L, D) adds a bias to.

    `GroupQueryAttention` wants a bias for `total_length` (1) keys, other operators for all L. Neither length is known
    while tracing.
    """
    R, _, L, _ = cache.shape
    places = count(L) - 1
    if not is_grouped(cache):
        return places
    return torch.onnx.ops.symbolic(
        "Slice",
        (places, torch.tensor([0], dtype=torch.int32), total_length),
        dtype=places.dtype,
        shape=(R,),  # a size that tracing does not know
        version=OPSET,
    )


def write_to_cache(cache: Tensor, row: Tensor, positions: Tensor) -> Tensor:
    """Write row (R, H, 1, D) into cache (R, H, L, D) at each row's own position (R), in place if both are one buffer.

    Source: ONNX operator `TensorScatter`, version 24.
    """
    return torch.onnx.ops.symbolic(
        "TensorScatter",
        (cache, row, positions.long()),
        attrs={"axis": 2},
        dtype=cache.dtype,
        shape=cache.shape,
        version=OPSET,
    )


def top_k(scores: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return the k (1) highest scores (R, V) of each row in falling order, and their indices: each (R, k).

    This is a node of its own because `torch.topk` needs k while tracing, and here it is an input of the graph.
    """
    shape = (scores.shape[0], 2)  # any size will do for k: `export.graphs` names the real dimension
    values, indices = torch.onnx.ops.symbolic_multi_out(
        "TopK",
        (scores, k),
        attrs={"axis": -1, "largest": 1, "sorted": 1},
        dtypes=(scores.dtype, torch.int64),
        shapes=(shape, shape),
        version=OPSET,
    )
    return values, indices


def at_most(k: Tensor, n: int, unknown: int) -> Tensor:
    """Return the smaller of k (1) and n, as the size of a slice.

    CUDA reads k from main memory where it is the end of a slice or the k of a selection. It would compute a comparison
    on the device, with a copy there and back at every step.

    Args:
        unknown: a size that tracing does not know; a known size of the slice would become a constant.
    """
    kept = torch.onnx.ops.symbolic(
        "Slice",
        (torch.zeros(n), torch.tensor([0]), k),
        dtype=torch.float32,
        shape=(unknown,),
        version=OPSET,
    )
    return torch.onnx.ops.symbolic("Shape", (kept,), dtype=torch.int64, shape=(1,), version=OPSET)


def look_up(table: Tensor, indices: Tensor) -> Tensor:
    """Return table (V, ...) at indices of any shape: (*indices, ...). One node, where PyTorch's indexing takes two."""
    shape = (*indices.shape, *table.shape[1:])
    return torch.onnx.ops.symbolic("Gather", (table, indices), dtype=table.dtype, shape=shape, version=OPSET)


def look_up_numbers(x: Tensor, places: Tensor) -> Tensor:
    """Return the numbers at places (T, S) of each matrix of x (B, H, T, n), read as one row: (B, H, T, S)."""
    B, H, T, n = x.shape
    flat = torch.onnx.ops.symbolic(
        "Reshape", (x, torch.tensor([0, 0, -1])), dtype=x.dtype, shape=(B, H, T * n), version=OPSET
    )
    shape = (B, H, *places.shape)
    return torch.onnx.ops.symbolic(
        "Gather", (flat, places), attrs={"axis": 2}, dtype=x.dtype, shape=shape, version=OPSET
    )


def flatten_rows(x: Tensor) -> Tensor:
    """Return x (R, k, n) as (R, k * n), whatever k is when the graph runs."""
    R, k, n = x.shape
    return torch.onnx.ops.symbolic(
        "Reshape", (x, torch.tensor([0, -1])), dtype=x.dtype, shape=(R, k * n), version=OPSET
    )


def split_heads(x: Tensor, n_heads: int, transposed: bool = False) -> Tensor:
    """Return x (B, T, E) as (B, H, T, D), or transposed as (B, H, D, T).

    This and the next two are nodes of their own because PyTorch is slow to trace views of three unknown sizes.
    """
    B, T, E = x.shape
    D = E // n_heads
    heads = torch.onnx.ops.symbolic(
        "Reshape", (x, torch.tensor([0, 0, n_heads, D])), dtype=x.dtype, shape=(B, T, n_heads, D), version=OPSET
    )
    order, shape = ([0, 2, 3, 1], (B, n_heads, D, T)) if transposed else ([0, 2, 1, 3], (B, n_heads, T, D))
    return torch.onnx.ops.symbolic(
        "Transpose", (heads,), attrs={"perm": order}, dtype=x.dtype, shape=shape, version=OPSET
    )


def merge_heads(heads: Tensor) -> Tensor:
    """Return heads (B, H, T, D) as (B, T, E)."""
    B, H, T, D = heads.shape
    side_by_side = torch.onnx.ops.symbolic(
        "Transpose", (heads,), attrs={"perm": [0, 2, 1, 3]}, dtype=heads.dtype, shape=(B, T, H, D), version=OPSET
    )
    return torch.onnx.ops.symbolic(
        "Reshape", (side_by_side, torch.tensor([0, 0, H * D])), dtype=heads.dtype, shape=(B, T, H * D), version=OPSET
    )


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return left (B, H, T, D) times right (B, H, D, S): (B, H, T, S)."""
    return torch.onnx.ops.symbolic(
        "MatMul", (left, right), dtype=left.dtype, shape=(*left.shape[:-1], right.shape[-1]), version=OPSET
    )
