"""Dot-product attention, soft and hard, multi-head attention, and the ways in which a layer may attend.

Source: lecture, "Key-value store" and "Queries, keys and values".

Legend: B batch, T queries, S keys, L cache length, H heads, D head_dim, E d_model. Masks are boolean, True = may be
attended.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.networks.distances import DistanceScores
from model.networks.positions import Rotation


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    beta: float | None = None,
    hard: bool = False,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attend, and return the attention weights as well.

    Args:
        query: (B, H, T, D).
        key, value: (B, H, S, D).
        mask: boolean, broadcastable to (B, H, T, S).
        beta: inverse temperature of the scores; None is 1/sqrt(D).
        hard: whether each query attends to one key only.
        added: scores, broadcastable to (B, H, T, S), that are added to those of queries and keys.

    Returns:
        context (B, H, T, D) and weights (B, H, T, S); each row of the weights sums to 1.

    Source: lecture, "Queries, keys and values"; Vaswani et al. 2017, section 3.2.1.
    """
    scores = query @ key.transpose(-2, -1) * inverse_temperature(beta, query.shape[-1])  # (B, H, T, S)
    if added is not None:
        scores = scores + added
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = (hard_weights(scores) if hard else scores.softmax(dim=-1, dtype=torch.float32)).to(value.dtype)
    return weights @ value, weights


def inverse_temperature(beta: float | None, head_dim: int) -> float:
    """Return beta, by default 1 / sqrt(head_dim)."""
    return head_dim**-0.5 if beta is None else beta


def hard_weights(scores: Tensor) -> Tensor:
    """Return weights (..., S) of scores (..., S): one at the highest score and zero elsewhere, in float32.

    An argmax has no gradient, so that of soft attention over the same scores takes its place.

    Source: lecture, "Hard Attention"; Bengio et al. 2013, "Estimating or Propagating Gradients Through Stochastic
    Neurons for Conditional Computation", the straight-through estimator.
    """
    soft = scores.softmax(dim=-1, dtype=torch.float32)
    return one_hot_of_highest(scores).to(soft.dtype) + (soft - soft.detach())


def one_hot_of_highest(scores: Tensor) -> Tensor:
    """Return booleans (..., S), True at the highest of scores (..., S), the first of equals."""
    return torch.arange(scores.shape[-1], device=scores.device) == scores.argmax(dim=-1, keepdim=True)


class MultiHeadAttention(nn.Module):
    """Multi-head attention for self- and cross-attention.

    Queries, keys and values may come from inputs of different widths. If the widths are equal, the three projections
    are one stacked weight: self-attention computes q, k and v in one product (lecture, "we can speed up computation by
    stacking all the W's"), cross-attention k and v.

    Args:
        d_model: width of the output, divided evenly among the heads.
        n_heads: number of heads.
        d_input: width of the inputs: None for d_model, or (query, key, value) widths.
        beta: inverse temperature; None is 1/sqrt(head_dim).
        hard: whether each query attends to one key only.
        rotation: rotates queries and keys of self-attention by their positions.
        distances: scores of self-attention by distance.

    Attributes:
        fused: whether `attend` uses PyTorch's fused kernel; without it, training on short sequences is faster on a CPU.

    Raises:
        ValueError: d_model is not a multiple of n_heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_input: tuple[int, int, int] | None = None,
        beta: float | None = None,
        hard: bool = False,
        rotation: Rotation | None = None,
        distances: DistanceScores | None = None,
    ) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.head_dim = d_model // n_heads
        self.beta = beta
        self.hard = hard
        self.rotation = rotation
        self.distances = distances
        self.fused = True
        d_query, d_key, d_value = d_input or (d_model, d_model, d_model)
        self.stacked = d_query == d_key == d_value
        if self.stacked:
            self.input = nn.Linear(d_query, 3 * d_model)
        else:
            self.query = nn.Linear(d_query, d_model)
            self.key = nn.Linear(d_key, d_model)
            self.value = nn.Linear(d_value, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from `query` (B, T, d_query) to `key` (B, S, d_key) and `value` (B, S, d_value): (B, T, E)."""
        return self.attend(*self.project(query, key, value), mask)

    def attention_matrix(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the same as `forward`, unfused, with the attention matrix: (B, T, E) and (B, H, T, S)."""
        q, k, v = self.project(query, key, value)
        context, weights = scaled_dot_product_attention(q, k, v, mask, self.beta, self.hard, self.added_scores(q, k))
        return self.output(self.merge_heads(context)), weights

    def added_scores(self, q: Tensor, k: Tensor) -> Tensor | None:
        """Return the scores by distance of q and k, each (B, H, S, D), broadcastable to (B, H, S, S)."""
        return None if self.distances is None else self.distances(q, k, inverse_temperature(self.beta, self.head_dim))

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project inputs as in `forward` to q (B, H, T, D), k and v, each (B, H, S, D)."""
        if self.stacked and query is key is value:
            return self.project_self(query)
        return self.project_query(query), *self.project_memory(key, value)

    def project_self(self, x: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Project one sequence x (B, T, E) to q, k and v in one stacked product: each (B, H, T, D).

        Args:
            positions: (B, T), by default 0 .. T-1.
        """
        q, k, v = self.rotate(self.input(x), positions).chunk(3, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def rotate(self, qkv: Tensor, positions: Tensor | None = None) -> Tensor:
        """Rotate queries and keys at the left of qkv (B, T, 3 * E) by their positions (B, T), if they are rotary."""
        if self.rotation is None:
            return qkv
        B, T, _ = qkv.shape
        q_and_k, *v = torch.split(qkv, 2 * self.d_model, dim=-1)
        heads = q_and_k.view(B, T, 2 * self.n_heads, self.head_dim)
        return torch.cat([self.rotation(heads, positions).flatten(-2), *v], dim=-1)

    def project_query(self, query: Tensor) -> Tensor:
        """Project queries (B, T, d_query) to q (B, H, T, D)."""
        if not self.stacked:
            return self.split_heads(self.query(query))
        d = self.d_model
        return self.split_heads(F.linear(query, self.input.weight[:d], self.input.bias[:d]))

    def project_memory(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project key (B, S, d_key) and value (B, S, d_value) inputs to k and v, each (B, H, S, D)."""
        if not self.stacked:
            return self.split_heads(self.key(key)), self.split_heads(self.value(value))
        d = self.d_model
        weight, bias = self.input.weight, self.input.bias
        if key is value:
            k, v = F.linear(key, weight[d:], bias[d:]).chunk(2, dim=-1)
        else:
            k = F.linear(key, weight[d : 2 * d], bias[d : 2 * d])
            v = F.linear(value, weight[2 * d :], bias[2 * d :])
        return self.split_heads(k), self.split_heads(v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend over projected heads, merge them and project to (B, T, E)."""
        added = self.added_scores(q, k)
        if self.fused and not self.hard:
            if added is not None:
                mask = added if mask is None else added.masked_fill(~mask, float("-inf"))
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.beta)
        else:
            context, _ = scaled_dot_product_attention(q, k, v, mask, self.beta, self.hard, added)
        output: Tensor = self.output(self.merge_heads(context))
        return output

    def split_heads(self, x: Tensor) -> Tensor:
        """Split (B, T, E) into (B, H, T, D)."""
        B, T, _ = x.shape
        return x.view(B, T, self.n_heads, self.head_dim).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Merge (B, H, T, D) to (B, T, E)."""
        B, _, T, _ = x.shape
        return x.transpose(1, 2).reshape(B, T, self.d_model)


Attend = Callable[[MultiHeadAttention, Tensor], Tensor]
"""Function that an attention sublayer attends with: from its input (B, T, E) to (B, T, E)."""


def masked_attention(mask: Tensor | None, memory: Tensor | None = None) -> Attend:
    """Return attention under a mask that broadcasts to (B, H, T, S), to memory (B, S, d_memory) or the input itself."""

    def attend(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        read = x if memory is None else memory
        output: Tensor = attention(x, read, read, mask)
        return output

    return attend


@dataclass
class Cache:
    """Keys and values that an attention sublayer keeps between steps."""

    key: Tensor  # (B, H, L, D) of self-attention, (B, H, S, D) of cross-attention
    value: Tensor


Caches = dict[MultiHeadAttention, Cache]
"""Caches by attention sublayer of a decoder."""


def cached_attention(caches: Caches, positions: Tensor) -> Attend:
    """Return self-attention of further tokens at positions (B, T), which see their row up to there.

    Their keys and values are written to the caches in place.
    """
    rows = torch.arange(positions.shape[0], device=positions.device).unsqueeze(1)

    def attend(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        cache = caches[attention]
        q, k, v = attention.project_self(x, positions)
        cache.key[rows, :, positions] = k.transpose(1, 2)  # (B, T, H, D)
        cache.value[rows, :, positions] = v.transpose(1, 2)
        places = torch.arange(cache.key.shape[2], device=positions.device)
        written = (places <= positions.unsqueeze(-1)).unsqueeze(1)  # (B, 1, T, L)
        return attention.attend(q, cache.key, cache.value, written)

    return attend


def cached_cross_attention(caches: Caches, mask: Tensor) -> Attend:
    """Return cross-attention to cached keys and values, under a mask that broadcasts to (B, H, T, S)."""
    return lambda attention, x: attention.attend(
        attention.project_query(x), caches[attention].key, caches[attention].value, mask
    )
