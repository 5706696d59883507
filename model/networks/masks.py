"""Who may attend to what: True where it may.

Legend: B batch.
"""

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """lengths (B) to a mask (B, size), True where there is a token."""
    return count(size, lengths.device) <= lengths.unsqueeze(1)


def causal_mask(size: int, device: torch.device | None = None) -> Tensor:
    """(size, size) mask, True where the column is not in the row's future (lecture, masked self-attention)."""
    places = count(size, device)
    return places.unsqueeze(1) >= places


def count(size: int, device: torch.device | None = None) -> Tensor:
    """1 to size. A graph counts them where it runs; `arange` would be given its end by the CPU."""
    return torch.ones(size, dtype=torch.int64, device=device).cumsum(0)
