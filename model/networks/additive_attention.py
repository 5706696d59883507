"""Attention with scores from a small network (lecture, "sim = FC(x, y)"), the ancestor of dot products.

Legend: B batch, T queries, S keys, E d_model. Masks are boolean, True = may be attended.
"""

from typing import Any

import torch
from torch import Tensor, nn

CHUNK = 2**18
"""Most numbers of (rows, T, S, E) held at once: 1 MB in float32, which stays in the cache of a core."""


class AdditiveAttention(nn.Module):
    """Attention with scores v . tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2).

    Keys are projected values: one product gives U k of a whole source, once for all its queries.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.score = nn.Parameter(torch.empty(d_model).uniform_(-1, 1) * d_model**-0.5)

    def forward(self, query: Tensor, projected: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from queries (B, T, E) to values (B, S, E), projected by `key`, under mask (B, S).

        Returns:
            contexts (B, T, E) and weights (B, T, S) in float32; each row of the weights sums to 1.
        """
        scores = additive_scores(self.query(query), projected, self.score)
        weights = scores.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=-1, dtype=torch.float32)
        return weights.to(value.dtype) @ value, weights


def additive_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Return weight (E) . tanh(query (B, T, E) + key (B, S, E)) for every query and key: (B, T, S).

    The sums of a batch (100 x 32 x 32 x 256) outgrow a CPU's caches, and autograd would keep several copies of them.
    Here they are computed a few rows at a time, in one buffer, and again for the gradients.
    """
    scores: Tensor = _AdditiveScores.apply(query, key, weight.to(query.dtype))  # type: ignore[no-untyped-call]
    return scores


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, weight)
        scores = query.new_empty(*query.shape[:2], key.shape[1])
        for rows, sums in _chunks(query, key):
            sums.tanh_()
            torch.mv(sums.view(-1, len(weight)), weight, out=scores[rows].view(-1))
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()  # (B, T, S)
        query_grad, key_grad = torch.empty_like(query), torch.empty_like(key)
        weight_grad = torch.zeros_like(weight, dtype=torch.float32)
        # With t the tanh, the gradient of a sum is g w (1 - t^2); the part of g alone is one number for all of E.
        for rows, sums in _chunks(query, key):
            B, T, S, E = sums.shape
            g = gradient[rows]
            tanh = sums.tanh_()
            weight_grad += torch.mv(tanh.view(-1, E).T, g.view(-1))
            squares = tanh.square_()
            of_keys = torch.bmm(g.reshape(B * T, 1, S), squares.view(B * T, S, E)).view(B, T, E)
            query_grad[rows] = g.sum(dim=2, keepdim=True) - of_keys
            of_queries = (g.transpose(1, 2).unsqueeze(2) @ squares.transpose(1, 2)).view(B, S, E)
            key_grad[rows] = g.sum(dim=1).unsqueeze(2) - of_queries
        return query_grad * weight, key_grad * weight, weight_grad.to(weight.dtype)


def _chunks(query: Tensor, key: Tensor) -> Any:
    """Yield slices of the batch, with query (B, T, E) + key (B, S, E) of their rows, (rows, T, S, E)."""
    B, T, E = query.shape
    S = key.shape[1]
    n_rows = max(1, CHUNK // (T * S * E))
    buffer = query.new_empty(min(n_rows, B), T, S, E)
    for start in range(0, B, n_rows):
        rows = slice(start, min(start + n_rows, B))
        sums = buffer[: rows.stop - rows.start]
        torch.add(query[rows].unsqueeze(2), key[rows].unsqueeze(1), out=sums)
        yield rows, sums
