"""Attention sublayers of a graph: ONNX operators between the model's own projections.

Legend: B batch, T queries, S keys, H heads, D head_dim, L cache length, E = H * D. In a decoder step R rows, one for
each hypothesis, of N sources, each with up to W hypotheses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from export.dense import scaled_input, scaled_query
from export.distances import scores_by_distance
from export.hard_attention import attend_to_one, attend_to_one_of_past
from export.onnx_attention import attend, attend_to_past, look_up, merge_heads, product, split_heads
from model.networks.attention import Attend, Biases, MultiHeadAttention, one_hot_of_highest

Past = Mapping[MultiHeadAttention, Sequence[Tensor]]
"""Keys and values by attention sublayer."""


@dataclass(frozen=True)
class RowLayout:
    """Positions and sources of the rows of a decoder step."""

    positions: Tensor
    """(R) int32: the position at which each token is written, from 0."""
    positions_of_tokens: Tensor
    """The same positions as (R, 1)."""
    total_length: Tensor
    """(1) int32: the largest position plus one."""
    of_sources: Tensor
    """(N, W): the rows of each source; unused places hold any row."""
    places: Tensor
    """(R): the place of each row in flattened of_sources."""
    source_lengths: Tensor
    """(N): tokens of each source."""


def encoder_attention(lengths: Tensor, biases: Biases) -> Attend:
    """Return self-attention in one operator, where the first lengths[b] (B) keys of row b are tokens."""

    def attend_to_itself(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        q, k, v = attention.rotate(scaled_input(attention)(x)).chunk(3, dim=-1)
        if attention.hard:
            context = attend_to_one(q, k, v, lengths, attention.n_heads)
        elif attention.rotation is not None or attention.disentangled is not None:
            # Split into heads: otherwise ONNX Runtime takes the width of what was joined after rotation for 0.
            q, k, v = (split_heads(y, attention.n_heads) for y in (q, k, v))
            bias = biases.get(attention) if attention.disentangled is None else scores_by_distance(attention, q, k)
            context = merge_heads(attend(q, k, v, lengths, attention.n_heads, bias))
        else:
            context = attend(q, k, v, lengths, attention.n_heads, biases.get(attention))
        output: Tensor = attention.output(context)
        return output

    return attend_to_itself


def decoder_attention(rows: RowLayout, past: Past, present: list[Tensor], biases: Biases) -> Attend:
    """Return self-attention of one new token per row, which writes its caches and appends them to `present`.

    Args:
        past: caches of keys and values (R, H, L, D).
        biases: see `attend_to_past`.
    """

    def attend_to_target(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        qkv = attention.rotate(scaled_input(attention)(x), rows.positions_of_tokens)
        key, value = past[attention]
        if attention.hard:
            context, key, value = attend_to_one_of_past(qkv, key, value, rows.positions)
        else:
            context, key, value = attend_to_past(
                qkv, key, value, rows.positions, rows.total_length, attention.n_heads, biases.get(attention)
            )
        present.extend((key, value))
        output: Tensor = attention.output(context)
        return output

    return attend_to_target


def cross_attention(rows: RowLayout, past: Past) -> Attend:
    """Return cross-attention of one new token per row: the hypotheses of a source are the queries of one operator.

    Args:
        past: keys and values (N, S, E).
    """

    def attend_to_source(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        E = attention.width
        q = look_up(scaled_query(attention)(x).view(-1, E), rows.of_sources)  # (N, W, E)
        key, value = past[attention]
        attend_to_keys = attend_to_one if attention.hard else attend
        context = attend_to_keys(q, key, value, rows.source_lengths, attention.n_heads)
        output: Tensor = attention.output(look_up(context.reshape(-1, 1, E), rows.places))
        return output

    return attend_to_source


def visible_attention(
    mask: Tensor,
    matrices: list[Tensor],
    memory: Past | None = None,
    last: int | None = None,
    biases: Biases | None = None,
) -> Attend:
    """Return attention that appends its matrices (B, H, T, S), in float32, to `matrices`.

    Softmax is in float32. It turns a masked score into an exact 0, so no column of a matrix needs to be left out.

    Args:
        mask: broadcastable to (B, H, T, S).
        memory: keys and values (B, S, E) of cross-attention; None for self-attention.
        last: the number of matrices after which none is left to compute; the last sublayer's output means nothing.
    """

    def attend_and_show(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        H, E, is_last = attention.n_heads, attention.width, len(matrices) + 1 == last
        if memory is None:
            whole = scaled_input(attention)
            qkv = attention.rotate((whole.rows(slice(0, 2 * E)) if is_last else whole)(x))
            q, key, *value = torch.split(qkv, E, dim=-1)
        else:
            q, (key, *value) = scaled_query(attention)(x), memory[attention]
        scores = product(split_heads(q, H), split_heads(key, H, transposed=True)).float()  # (B, H, T, S)
        bias = biases.get(attention) if biases else None
        if attention.disentangled is not None:
            bias = scores_by_distance(attention, split_heads(q, H), split_heads(key, H))
        if bias is not None:
            scores = scores + bias.float()
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = one_hot_of_highest(scores).float() if attention.hard else scores.softmax(dim=-1)
        matrices.append(weights)
        if is_last:
            return x
        output: Tensor = attention.output(merge_heads(product(weights.to(q.dtype), split_heads(value[0], H))))
        return output

    return attend_and_show
