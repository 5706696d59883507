"""Scores of self-attention that depend on the distance of a query and a key.

Legend: B batch, T queries, S keys, H heads, D head_dim, P rows of a table.
"""

import torch
from torch import Tensor, nn

from model.config import Disentangled, LayerConfig
from model.networks.masks import distances

FAR = -1e4
"""Score of a key that is too far away: its weight is an exact 0. It is finite, so that padding that sees no token has
finite states, and within the range of float16."""


class DisentangledScores(nn.Module):
    """Scores between tokens and distances: a query with its distance to the key, and that distance with the key.

    Distance is the query's position minus the key's. The rows of both tables stand for distances in rising order.

    Source: He et al. 2021, "DeBERTa", section 3.1, and 2023, "DeBERTaV3".

    Attributes:
        keys: (P, H * D), what queries are multiplied with; None if they are not.
        queries: (P, H * D), what keys are multiplied with; None if they are not.
        rows: (2 * n_positions + 1), the row of each distance from -n_positions on, that of 0 in the middle.
    """

    rows: Tensor

    def __init__(self, layer: LayerConfig) -> None:
        super().__init__()
        config = layer.disentangled
        assert config is not None, "the layer is configured so"
        rows = row_of_distance(torch.arange(-layer.max_positions, layer.max_positions + 1), config)
        # Derived from the configuration alone, so they are kept out of checkpoints.
        self.register_buffer("rows", rows, persistent=False)
        self.keys, self.queries = (
            nn.Parameter(torch.randn(config.n_rows, layer.n_heads * layer.width_of_head) * 0.02) if wanted else None
            for wanted in (config.query_to_distance, config.distance_to_key)
        )

    def forward(self, query: Tensor, key: Tensor, scale: float) -> Tensor:
        """Return scores (B, H, S, S) of query and key, each (B, H, S, D)."""
        S = key.shape[2]
        rows = self.rows[len(self.rows) // 2 - distances(S, key.device)]  # (S, S)
        scores = query.new_zeros(*query.shape[:2], S, S)
        if self.keys is not None:
            scores = scores + (query @ self.heads(self.keys, query).transpose(-2, -1)).gather(
                -1, rows.expand_as(scores)
            )
        if self.queries is not None:
            scores = scores + (self.heads(self.queries, key) @ key.transpose(-2, -1)).gather(-2, rows.expand_as(scores))
        return scores * scale

    def heads(self, table: Tensor, like: Tensor) -> Tensor:
        """Split a table (n, H * D) into heads like those of (B, H, S, D): (H, n, D)."""
        return table.view(len(table), like.shape[1], -1).transpose(0, 1)


def row_of_distance(distances: Tensor, config: Disentangled) -> Tensor:
    """Return the row of each distance. With buckets, far distances share rows, more of them the farther they are."""
    rows = distances
    if config.buckets:
        # In float32 and with these very operations, as a rounded limit of a bucket decides.
        middle = config.buckets // 2
        far = torch.where(distances.abs() < middle, middle - 1, distances.abs())
        of_far = torch.ceil(
            torch.log(far / middle) / torch.log(torch.tensor((config.max_distance - 1) / middle)) * (middle - 1)
        )
        rows = torch.where(far <= middle, distances, ((of_far + middle) * distances.sign()).long())
    middle = config.n_rows // 2
    return (rows + middle).clamp(0, config.n_rows - 1)


def local_bias(size: int, reach: int, device: torch.device | None = None) -> Tensor:
    """Return what lets each of S = size tokens attend only to those at most `reach` tokens away: (S, S).

    Source: Beltagy et al. 2020, "Longformer".
    """
    return torch.where(distances(size, device).abs() <= reach, 0.0, FAR)
