"""Scaled dot-product attention and its multi-head form (lecture, "Key-value store" and "Queries, keys and values").

Legend: B batch, T queries, S keys, H heads, D head_dim, E d_model. Masks are boolean, True = may be attended.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Soft attention with inverse temperature 1/sqrt(D), returning what was attended to as well.

    Args:
        query: (B, H, T, D).
        key, value: (B, H, S, D).
        mask: boolean, broadcastable to (B, H, T, S).

    Returns:
        context (B, H, T, D) and weights (B, H, T, S); each row of the weights sums to 1.

    Source: lecture, "Queries, keys and values"; Vaswani et al. 2017, section 3.2.1.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(value.dtype)
    return weights @ value, weights


class MultiHeadAttention(nn.Module):
    """Multi-head attention for self- and cross-attention.

    Queries, keys and values may come from inputs of different widths. Where the widths are equal, the three projections
    are one stacked weight, so that self-attention computes q, k and v in one product (lecture, "we can speed up
    computation by stacking all the W's"), and cross-attention computes k and v in one.

    Args:
        d_model: width of the output, divided evenly among the heads.
        n_heads: number of heads.
        d_input: width of the inputs: None for d_model, or (query, key, value) widths.

    Attributes:
        fused: whether `attend` uses PyTorch's fused kernel. Off, it is faster in training short sequences on a CPU.

    Raises:
        ValueError: d_model is not a multiple of n_heads.
    """

    def __init__(self, d_model: int, n_heads: int, d_input: tuple[int, int, int] | None = None) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.head_dim = d_model // n_heads
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
        if self.stacked and query is key is value:
            q, k, v = self.project_self(query)
        else:
            q = self.project_query(query)
            k, v = self.project_memory(key, value)
        return self.attend(q, k, v, mask)

    def attention_matrix(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The same result as `forward`, unfused, with the attention matrix: (B, T, E) and (B, H, T, S)."""
        q = self.project_query(query)
        k, v = self.project_memory(key, value)
        context, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.output(self.merge_heads(context)), weights

    def project_self(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of one sequence x (B, T, E) in one stacked product: each (B, H, T, D)."""
        q, k, v = self.input(x).chunk(3, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def project_query(self, query: Tensor) -> Tensor:
        """q (B, H, T, D) of queries (B, T, d_query)."""
        if not self.stacked:
            return self.split_heads(self.query(query))
        d = self.d_model
        return self.split_heads(F.linear(query, self.input.weight[:d], self.input.bias[:d]))

    def project_memory(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """k and v, each (B, H, S, D), of key (B, S, d_key) and value (B, S, d_value) inputs."""
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
        """Soft attention over projected heads, merged and projected to (B, T, E)."""
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            context, _ = scaled_dot_product_attention(q, k, v, mask)
        output: Tensor = self.output(self.merge_heads(context))
        return output

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, E) to (B, H, T, D)."""
        B, T, _ = x.shape
        return x.view(B, T, self.n_heads, self.head_dim).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """(B, H, T, D) to (B, T, E)."""
        B, _, T, _ = x.shape
        return x.transpose(1, 2).reshape(B, T, self.d_model)
