"""Positions of tokens: a table that is added to embeddings, a rotation of queries and keys, or a bias of scores.

Legend: B batch, T positions, H heads, D head_dim, E d_model.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sinusoidal_encoding(n_positions: int, d_model: int) -> Tensor:
    """Return a table (n_positions, d_model): sines in even columns, cosines in odd ones (Vaswani et al. 2017, 3.5)."""
    angles = angles_of(n_positions, d_model)
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table.float()


def angles_of(n_positions: int, width: int, base: float = 10000.0) -> Tensor:
    """Return angles (n_positions, width / 2 rounded up): position p times base^(-2i / width), in radians, float64."""
    position = torch.arange(n_positions, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(base) / width))
    return position * frequency


def rows_of(table: Tensor, n: int, positions: Tensor | None) -> Tensor:
    """Return rows of a table (n_positions, width): the first n, (n, width), or those at positions, (B, T, width)."""
    return table[:n] if positions is None else F.embedding(positions, table)


class Rotation(nn.Module):
    """Rotary positions: each pair of a head's numbers is rotated by its position times the pair's frequency.

    The scalar product of a query and a key then depends only on the distance of their positions.

    Args:
        n_positions: the number of positions.
        head_dim: D, even.
        base: the angles of one position are from 1 down to nearly 1 / base.

    Raises:
        ValueError: head_dim is odd.

    Source: Su et al. 2021, "RoFormer", section 3.2; number i is paired with number i + D / 2.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, n_positions: int, head_dim: int, base: float = 10000.0) -> None:
        super().__init__()
        if head_dim % 2 != 0:
            raise ValueError(f"rotary positions need an even head_dim, not {head_dim}")
        self.base = base
        angles = angles_of(n_positions, head_dim, base)  # (n_positions, D / 2)
        # Derived from the shape alone, so they are kept out of checkpoints.
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Rotate x (B, T, H, D) at positions (B, T), by default 0 .. T-1: (B, T, H, D)."""
        T = x.shape[1]
        cos, sin = (rows_of(table, T, positions).unsqueeze(-2) for table in (self.cos, self.sin))  # (..., T, 1, D / 2)
        left, right = x.chunk(2, dim=-1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(x.dtype)


class DistanceBias(nn.Module):
    """A bias of self-attention's scores for each head, by the distance of the key from the query.

    Args:
        n_heads: H.
        buckets, max_distance: see `RelativePositions`.
        both_ways: whether there are keys after the query, as in an encoder.

    Attributes:
        table: (buckets, H).
        first: the least distance that differs from those below it; negative distances are keys before the query.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer".
    """

    buckets: Tensor

    def __init__(self, n_heads: int, buckets: int, max_distance: int, both_ways: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(buckets, n_heads))
        self.first = -max_distance
        last = max_distance if both_ways else 0
        of_distances = buckets_of(torch.arange(self.first, last + 1), buckets, max_distance, both_ways)
        # Derived from the shape alone, so they are kept out of checkpoints.
        self.register_buffer("buckets", of_distances, persistent=False)

    @property
    def by_distance(self) -> Tensor:
        """Biases (n, H) of the distances from `first` on."""
        return F.embedding(self.buckets, self.table)

    def rows_of(self, distances: Tensor) -> Tensor:
        """Return the row of each distance in `by_distance`; those beyond its ends have the first or the last."""
        return distances.clamp(self.first, self.first + len(self.buckets) - 1) - self.first

    def forward(self, distances: Tensor) -> Tensor:
        """Return biases (B, H, T, S) of distances (B, T, S)."""
        return F.embedding(self.rows_of(distances), self.by_distance).permute(0, 3, 1, 2)


def buckets_of(distances: Tensor, buckets: int, max_distance: int, both_ways: bool) -> Tensor:
    """Return the bucket of each distance, in the order of T5's tables: keys before the query first, near ones first.

    Half of a direction's buckets are for one distance each.
    """
    of_direction = buckets // 2 if both_ways else buckets
    far = distances.abs() if both_ways else distances.clamp(max=0).abs()
    n_near = of_direction // 2
    # In float32, as T5 rounds down what it was trained with.
    share = (far.clamp(min=1).float() / n_near).log() / math.log(max_distance / n_near)
    distant = (n_near + (share * (of_direction - n_near)).long()).clamp(max=of_direction - 1)
    after = of_direction * (distances > 0) if both_ways else 0
    return torch.where(far < n_near, far, distant) + after
