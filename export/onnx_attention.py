"""The ONNX operators around attention, as functions that `torch.onnx.export` turns into one node each.

`torch.onnx.ops.symbolic` only states the shape of its result and computes nothing: what is made of these functions can
be traced, not called.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, R decoder rows, E = H * D.
"""

import torch
from torch import Tensor

OPSET = 24
"""The first opset whose `Attention` counts valid keys per row and which has `TensorScatter`."""


def attend(query: Tensor, key: Tensor, value: Tensor, n_keys: Tensor, n_heads: int) -> Tensor:
    """Fused scaled dot-product attention in which row b sees its first n_keys[b] keys: no mask is ever built.

    Args:
        query, key, value: (B, T, E) and twice (B, S, E), heads side by side; or (B, H, T, D) and twice (B, H, S, D).
        n_keys: (B) int64, each from 1 to S.
        n_heads: H.

    Returns:
        The context, shaped like `query`.

    Source: ONNX operator `Attention`, version 24, input `nonpad_kv_seqlen`.
    """
    heads_inside = query.dim() == 3
    return torch.onnx.ops.symbolic(
        "Attention",
        (query, key, value, None, None, None, n_keys),
        attrs={"q_num_heads": n_heads, "kv_num_heads": n_heads} if heads_inside else {},
        dtype=query.dtype,
        shape=query.shape,
        version=OPSET,
    )


def write_rows(cache: Tensor, update: Tensor, positions: Tensor) -> Tensor:
    """`cache` (R, H, L, D) with update (R, H, 1, D) written at each row's own position (R).

    ONNX Runtime writes in place when one buffer is bound both as the cache and as the result, and copies otherwise.

    Source: ONNX operator `TensorScatter`, version 24.
    """
    return torch.onnx.ops.symbolic(
        "TensorScatter",
        (cache, update, positions),
        attrs={"axis": 2},
        dtype=cache.dtype,
        shape=cache.shape,
        version=OPSET,
    )


def top_k(scores: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The k (1) highest scores (R, V) of each row, falling, and their indices: each (R, k).

    A node of its own because `torch.topk` wants k while tracing, and here it is an input of the graph.
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
