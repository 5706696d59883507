"""Attention masks: True where attention is allowed.

Legend: B batch.
"""

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """Return a mask (B, size) of lengths (B), True where there is a token."""
    return count(size, lengths.device) <= lengths.unsqueeze(1)


def causal_mask(size: int, device: torch.device | None = None) -> Tensor:
    """Return a mask (size, size), True where the column is not in the row's future (lecture, masked self-attention)."""
    places = count(size, device)
    return places.unsqueeze(1) >= places


def distances(size: int, device: torch.device | None = None) -> Tensor:
    """Return the position of each key minus that of each query, (size, size)."""
    places = count(size, device)
    return places - places.unsqueeze(1)


def count(size: int, device: torch.device | None = None) -> Tensor:
    """Return 1 to size, counted where a graph runs; `arange` would get its end from the CPU."""
    return torch.ones(size, dtype=torch.int64, device=device).cumsum(0)
