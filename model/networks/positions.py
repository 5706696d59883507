"""Positions of tokens: a table that is added to embeddings, or a rotation of queries and keys.

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
