"""How the attention sublayers of a graph attend: with ONNX operators, around which the model's own layers stand.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, E d_model. In a decoder step R rows, one for
each hypothesis, of N sources, each with up to W hypotheses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from export.dense import scaled_input, scaled_query
from export.hard_attention import attend_to_one, attend_to_one_of_past
from export.onnx_attention import attend, attend_to_past, look_up, merge_heads, product, split_heads
from model.networks.attention import Attend, MultiHeadAttention, one_hot_of_highest

Past = Mapping[MultiHeadAttention, Sequence[Tensor]]
"""Key and value of each attention sublayer."""


@dataclass(frozen=True)
class Rows:
    """What a decoder step is told of its rows."""

    positions: Tensor
    """(R) int32, where each token is written, counted from 0."""
    positions_of_tokens: Tensor
    """The same as (R, 1)."""
    total_length: Tensor
    """(1) int32, the largest position and one more."""
    of_sources: Tensor
    """(N, W), the rows of each source, filled up with any row."""
    places: Tensor
    """(R), where in of_sources, flattened, each row stands."""
    source_lengths: Tensor
    """(N)."""


def fused(lengths: Tensor) -> Attend:
    """Self-attention in one operator: of row b the first lengths[b] (B) are tokens."""

    def attend_to_itself(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        q, k, v = attention.rotate(scaled_input(attention)(x)).chunk(3, dim=-1)
        if attention.hard:
            context = attend_to_one(q, k, v, lengths, attention.n_heads)
        elif attention.rotation is not None:
            # Heads apart: side by side, ONNX Runtime takes the width of what was joined after rotation for 0.
            q, k, v = (attention.split_heads(y) for y in (q, k, v))
            context = attention.merge_heads(attend(q, k, v, lengths, attention.n_heads))
        else:
            context = attend(q, k, v, lengths, attention.n_heads)
        output: Tensor = attention.output(context)
        return output

    return attend_to_itself


def fused_past(rows: Rows, past: Past, present: list[Tensor]) -> Attend:
    """Self-attention of one token of each row, written to its caches, which go to the end of `present`.

    Args:
        past: key and value (R, H, L, D).
    """

    def attend_to_target(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        qkv = attention.rotate(scaled_input(attention)(x), rows.positions_of_tokens)
        key, value = past[attention]
        if attention.hard:
            context, key, value = attend_to_one_of_past(qkv, key, value, rows.positions)
        else:
            context, key, value = attend_to_past(qkv, key, value, rows.positions, rows.total_length, attention.n_heads)
        present.extend((key, value))
        output: Tensor = attention.output(context)
        return output

    return attend_to_target


def fused_memory(rows: Rows, past: Past) -> Attend:
    """Cross-attention of one token of each row: the hypotheses of one source are the queries of one operator.

    Args:
        past: key and value (N, S, E).
    """

    def attend_to_source(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        E = attention.d_model
        q = look_up(scaled_query(attention)(x).view(-1, E), rows.of_sources)  # (N, W, E)
        key, value = past[attention]
        attend_to_keys = attend_to_one if attention.hard else attend
        context = attend_to_keys(q, key, value, rows.source_lengths, attention.n_heads)
        output: Tensor = attention.output(look_up(context.reshape(-1, 1, E), rows.places))
        return output

    return attend_to_source


def shown(mask: Tensor, matrices: list[Tensor], memory: Past | None = None, last: int | None = None) -> Attend:
    """Attention whose matrices (B, H, T, S), in float32, go to the end of `matrices`.

    Softmax is in float32. It makes an exact 0 of a masked score, so that no column of a matrix needs to be left out.

    Args:
        mask: broadcastable to (B, H, T, S).
        memory: key and value (B, S, E) of cross-attention; None for self-attention.
        last: the number of matrices after which none depends on what a sublayer says: it says nothing of use then.
    """

    def attend_and_show(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        H, E, is_last = attention.n_heads, attention.d_model, len(matrices) + 1 == last
        if memory is None:
            whole = scaled_input(attention)
            qkv = attention.rotate((whole.rows(slice(0, 2 * E)) if is_last else whole)(x))
            q, key, *value = torch.split(qkv, E, dim=-1)
        else:
            q, (key, *value) = scaled_query(attention)(x), memory[attention]
        scores = product(split_heads(q, H), split_heads(key, H, transposed=True)).float()  # (B, H, T, S)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = one_hot_of_highest(scores).float() if attention.hard else scores.softmax(dim=-1)
        matrices.append(weights)
        if is_last:
            return q
        output: Tensor = attention.output(merge_heads(product(weights.to(q.dtype), split_heads(value[0], H))))
        return output

    return attend_and_show
