"""Dot-product attention, soft and hard, multi-head attention, and the ways in which a layer may attend.

Source: lecture, "Key-value store" and "Queries, keys and values".

Legend: B batch, T queries, S keys, L cache length, H heads, D head_dim, E d_model. Masks are boolean, True = may be
attended, or numbers that are added to scores.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.networks.distances import DisentangledScores
from model.networks.positions import Rotation


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    beta: float | None = None,
    hard: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attend, and return the attention weights as well.

    Args:
        query: (B, H, T, D).
        key, value: (B, H, S, D).
        mask: broadcastable to (B, H, T, S).
        beta: inverse temperature of the scores; None is 1/sqrt(D).
        hard: whether each query attends to one key only.

    Returns:
        context (B, H, T, D) and weights (B, H, T, S); each row of the weights sums to 1.

    Source: lecture, "Queries, keys and values"; Vaswani et al. 2017, section 3.2.1.
    """
    scores = query @ key.transpose(-2, -1) * inverse_temperature(beta, query.shape[-1])  # (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
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
        d_model: width of the output.
        n_heads: number of heads.
        d_input: width of the inputs: None for d_model, or (query, key, value) widths.
        beta: inverse temperature; None is 1/sqrt(head_dim).
        hard: whether each query attends to one key only.
        rotation: rotates queries and keys of self-attention by their positions.
        head_dim: D; None divides d_model evenly among the heads.
        bias: whether the projections have biases.
        disentangled: scores of self-attention between tokens and distances.

    Attributes:
        width: H * D, of all heads side by side.
        fused: whether `attend` uses PyTorch's fused kernel; without it, training on short sequences is faster on a CPU.

    Raises:
        ValueError: d_model is not a multiple of n_heads, and there is no head_dim.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_input: tuple[int, int, int] | None = None,
        beta: float | None = None,
        hard: bool = False,
        rotation: Rotation | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        disentangled: DisentangledScores | None = None,
    ) -> None:
        super().__init__()
        if head_dim is None and d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.head_dim = head_dim or d_model // n_heads
        self.width = width = n_heads * self.head_dim
        self.beta = beta
        self.hard = hard
        self.rotation = rotation
        self.disentangled = disentangled
        self.fused = True
        d_query, d_key, d_value = d_input or (d_model, d_model, d_model)
        self.stacked = d_query == d_key == d_value
        if self.stacked:
            self.input = nn.Linear(d_query, 3 * width, bias)
        else:
            self.query = nn.Linear(d_query, width, bias)
            self.key = nn.Linear(d_key, width, bias)
            self.value = nn.Linear(d_value, width, bias)
        self.output = nn.Linear(width, d_model, bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from `query` (B, T, d_query) to `key` (B, S, d_key) and `value` (B, S, d_value): (B, T, E)."""
        return self.attend(*self.project(query, key, value), mask)

    def attention_matrix(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the same as `forward`, unfused, with the attention matrix: (B, T, E) and (B, H, T, S)."""
        q, k, v = self.project(query, key, value)
        mask = self.with_distances(mask, q, k)
        context, weights = scaled_dot_product_attention(q, k, v, mask, self.beta, self.hard)
        return self.output(self.merge_heads(context)), weights

    def with_distances(self, mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
        """Add the scores of q and k, each (B, H, S, D), with distances to a mask, if there are such scores."""
        if self.disentangled is None:
            return mask
        return with_mask(self.disentangled(q, k, inverse_temperature(self.beta, self.head_dim)), mask)

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
        """Rotate queries and keys at the left of qkv (B, T, 3 * H * D) by positions (B, T), if they are rotary."""
        if self.rotation is None:
            return qkv
        B, T, _ = qkv.shape
        q_and_k, *v = torch.split(qkv, 2 * self.width, dim=-1)
        heads = q_and_k.view(B, T, 2 * self.n_heads, self.head_dim)
        return torch.cat([self.rotation(heads, positions).flatten(-2), *v], dim=-1)

    def project_query(self, query: Tensor) -> Tensor:
        """Project queries (B, T, d_query) to q (B, H, T, D)."""
        if not self.stacked:
            return self.split_heads(self.query(query))
        return self.split_heads(self.project_rows(query, slice(0, self.width)))

    def project_memory(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project key (B, S, d_key) and value (B, S, d_value) inputs to k and v, each (B, H, S, D)."""
        if not self.stacked:
            return self.split_heads(self.key(key)), self.split_heads(self.value(value))
        d = self.width
        if key is value:
            k, v = self.project_rows(key, slice(d, 3 * d)).chunk(2, dim=-1)
        else:
            k, v = self.project_rows(key, slice(d, 2 * d)), self.project_rows(value, slice(2 * d, 3 * d))
        return self.split_heads(k), self.split_heads(v)

    def project_rows(self, x: Tensor, rows: slice) -> Tensor:
        """Project x (B, T, E) by some rows of the stacked weight."""
        bias = self.input.bias
        return F.linear(x, self.input.weight[rows], None if bias is None else bias[rows])

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend over projected heads, merge them and project to (B, T, E)."""
        mask = self.with_distances(mask, q, k)
        if self.fused and not self.hard:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.beta)
        else:
            context, _ = scaled_dot_product_attention(q, k, v, mask, self.beta, self.hard)
        output: Tensor = self.output(self.merge_heads(context))
        return output

    def split_heads(self, x: Tensor) -> Tensor:
        """Split (B, T, H * D) into (B, H, T, D)."""
        B, T, _ = x.shape
        return x.view(B, T, self.n_heads, self.head_dim).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Merge (B, H, T, D) to (B, T, H * D)."""
        B, _, T, _ = x.shape
        return x.transpose(1, 2).reshape(B, T, self.width)


Attend = Callable[[MultiHeadAttention, Tensor], Tensor]
"""Function that an attention sublayer attends with: from its input (B, T, E) to (B, T, E)."""
Biases = Mapping[MultiHeadAttention, Tensor]
"""Numbers that are added to the scores of attention sublayers, each broadcastable to (B, H, T, S)."""


def masked_attention(mask: Tensor | None, memory: Tensor | None = None, biases: Biases | None = None) -> Attend:
    """Return attention under a mask that broadcasts to (B, H, T, S), to memory (B, S, d_memory) or the input itself."""

    def attend(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        read = x if memory is None else memory
        output: Tensor = attention(x, read, read, biased_mask(mask, biases, attention))
        return output

    return attend


def biased_mask(mask: Tensor | None, biases: Biases | None, attention: MultiHeadAttention) -> Tensor | None:
    """Return a boolean mask, or the sublayer's bias with -inf where the mask is false."""
    bias = biases.get(attention) if biases else None
    return mask if bias is None else with_mask(bias, mask)


def with_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return scores (B, H, T, S) with -inf where the boolean mask is false."""
    return scores if mask is None else scores.masked_fill(~mask, float("-inf"))


@dataclass
class Cache:
    """Keys and values that an attention sublayer keeps between steps."""

    key: Tensor  # (B, H, L, D) of self-attention, (B, H, S, D) of cross-attention
    value: Tensor


Caches = dict[MultiHeadAttention, Cache]
"""Caches by attention sublayer of a decoder."""


def cached_attention(caches: Caches, positions: Tensor, biases: Biases | None = None) -> Attend:
    """Return self-attention of further tokens at positions (B, T), which see their row up to there.

    Their keys and values are written to the caches in place. Biases are those of all keys of the caches.
    """
    rows = torch.arange(positions.shape[0], device=positions.device).unsqueeze(1)

    def attend(attention: MultiHeadAttention, x: Tensor) -> Tensor:
        cache = caches[attention]
        q, k, v = attention.project_self(x, positions)
        cache.key[rows, :, positions] = k.transpose(1, 2)  # (B, T, H, D)
        cache.value[rows, :, positions] = v.transpose(1, 2)
        places = torch.arange(cache.key.shape[2], device=positions.device)
        written = (places <= positions.unsqueeze(-1)).unsqueeze(1)  # (B, 1, T, L)
        return attention.attend(q, cache.key, cache.value, biased_mask(written, biases, attention))

    return attend


def cached_cross_attention(caches: Caches, mask: Tensor) -> Attend:
    """Return cross-attention to cached keys and values, under a mask that broadcasts to (B, H, T, S)."""
    return lambda attention, x: attention.attend(
        attention.project_query(x), caches[attention].key, caches[attention].value, mask
    )
